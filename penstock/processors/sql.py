"""The `sql` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.processors.base import RowProcessor
from penstock.sql.frames import run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SqlProcessor(RowProcessor):
    """Transforms events with one Spark SQL query over the table `input`.

    Functions and types are Spark's, including its pipe syntax (`FROM input |> WHERE … |> SELECT …`) and
    `value:path::type` on VARIANT. The query can access only the events: no files, no other tables, and no
    functions that reach external systems. It works row by row: `explode` and joins with `VALUES` are allowed,
    while GROUP BY, DISTINCT, ORDER BY, LIMIT, window functions and joins of `input` with itself are rejected.
    The columns of the result must have different names.
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
