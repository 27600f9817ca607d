"""The `sql` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.processors.base import RowProcessor
from penstock.sql.frames import run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SqlProcessor(RowProcessor):
    """Transforms events with a Spark SQL query over the table `input`.

    Columns, functions and types are Spark's, with its pipe syntax (`FROM input |> WHERE … |> SELECT …`) and
    `value:path::type` on VARIANT. The query sees nothing but the events: no files, no other tables, no
    functions that reach outside. It works row by row: `explode` and joins with `VALUES` are fine, while
    GROUP BY, DISTINCT, ORDER BY, LIMIT, window functions and joins of `input` with itself are refused.
    The names of the result's columns must differ.
    """

    example: ClassVar[str] = """\
type: sql
query: SELECT id, amount * 1.1 AS gross FROM input WHERE amount > 0
"""

    type: Literal["sql"] = "sql"
    query: str = Field(
        min_length=1,
        description="SQL query over the table `input`, the incoming events. Its result is the output.",
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """The result of the query."""
        return run_query(df, self.query)
