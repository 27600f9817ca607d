"""The `generate` source: synthetic events at a steady rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Source
from penstock.frames.site import Site
from penstock.spark.planned_source import FORMAT, options
from penstock.specs.policies import Batch
from penstock.sql.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class GenerateSource(Source):
    """Generates events: a counter and a clock, or any columns computed from them.

    Each event starts as `seq BIGINT` (0, 1, 2, …) and `time TIMESTAMP`; `row` replaces these by columns of
    its own, each a Spark SQL expression over them. After a pause the numbers continue from where they
    stopped. With `count` the source is finite: the pipeline ends as `completed`.
    """

    type: Literal["generate"] = "generate"
    rate: float | None = Field(
        default=None, gt=0, description="Events per second; absent: as fast as possible."
    )
    count: int | None = Field(default=None, ge=0, description="Stop after this many events; absent: never.")
    row: dict[str, str] | None = Field(
        default=None, min_length=1, description="Column name → Spark SQL expression over `seq` and `time`."
    )

    position_fields: ClassVar = ("type",)
    batch_fields: ClassVar = frozenset({"max_events", "max_ms", "max_inflight"})
    example: ClassVar = """\
type: generate
rate: 100
row:
  id: seq
  customer: concat('c', seq % 50)
  amount: round(rand() * 100, 2)
  at: time
"""

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        from penstock.connectors.generate_planner import EVENTS, reading

        given = options(spark, reading(self.rate, self.count, batch))
        return self._rows(spark.readStream.format(FORMAT).options(**given).schema(EVENTS).load())

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        from penstock.connectors.generate_planner import EVENTS

        return self._rows(spark.createDataFrame([], EVENTS)).schema

    def _rows(self, events: DataFrame) -> DataFrame:
        if self.row is None:
            return events
        return events.select(
            *(column(events, text, field=f"row.{name}").alias(name) for name, text in self.row.items())
        )

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return {"availableNow": True} if self.count is not None else super().trigger(batch)
