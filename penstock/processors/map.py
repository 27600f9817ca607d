"""The `map` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.processors.base import RowProcessor
from penstock.sql.frames import column
from penstock.sql.names import case_sensitive, quote, same
from penstock.sql.problems import told

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class MapProcessor(RowProcessor):
    """Sets columns to the values of expressions.

    Every expression uses the input event, not the results of the others. With `keep`, an existing column is
    replaced in place and a new one is added at the end; without `keep`, only the named columns remain, in the
    given order.
    """

    example: ClassVar[str] = """\
type: map
set:
  gross: amount * 1.1
  country: upper(country)
"""

    type: Literal["map"] = "map"
    set: dict[str, str] = Field(
        min_length=1, description="Column name → expression in Spark SQL over the event's columns."
    )
    keep: bool = Field(default=True, description="Whether to keep the columns that are not set.")

    def apply(self, df: DataFrame) -> DataFrame:
        """The events with the columns set."""
        from pyspark.sql import functions as f

        sensitive = case_sensitive(df)
        made: dict[str, Column] = {}
        problems: list[Problem] = []
        for name, text in self.set.items():
            try:
                if same(name, sensitive) in made:
                    message = f"column '{name}' is set twice: names are case-insensitive"
                    raise Invalid(Problem(code="duplicate_column", message=message, path=f"set.{name}"))
                made[same(name, sensitive)] = column(df, text, field=f"set.{name}").alias(name)
            except Invalid as error:
                problems += error.problems
        if problems:
            raise Invalid(*problems)
        kept = df.columns if self.keep else []
        columns = [made.pop(same(name, sensitive), f.col(quote(name))) for name in kept]
        with told("set", df.columns):
            return df.select(*columns, *made.values())
