"""The `filter` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.processors.base import RowProcessor
from penstock.sql.frames import condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FilterProcessor(RowProcessor):
    """Keeps the events for which a condition is true.

    An event for which the condition is false or NULL is dropped. The condition applies to one event at a
    time: it can use its columns and Spark's functions, and nothing else.
    """

    example: ClassVar[str] = """\
type: filter
where: amount > 0 AND country IN ('DE', 'FR')
"""

    type: Literal["filter"] = "filter"
    where: str = Field(
        min_length=1,
        description="A condition in Spark SQL over the event's columns.",
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """The events that satisfy the condition."""
        return df.filter(condition(df, self.where, field="where"))
