"""The `generate` source: synthetic events at a steady rate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.connectors.base import Site, Source
from penstock.connectors.python_source import LONGEST_WAIT_S, inflight, register
from penstock.specs.policies import Batch
from penstock.sql.frames import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NEVER = 2**62

EVENTS = "seq BIGINT, time TIMESTAMP"
"""The columns of an event before `row`."""


class GenerateSource(Source):
    """Makes events: a counter and a clock, or any columns computed from them.

    Each event starts as `seq BIGINT` (0, 1, 2, …) and `time TIMESTAMP`; `row` replaces these by columns
    of its own, each a Spark SQL expression over them. After a pause the numbers go on where they stopped.
    With `count` the source is finite: the pipeline ends as `completed`.
    """

    type: Literal["generate"] = "generate"
    rate: float | None = Field(
        default=None, gt=0, description="Events per second; absent: as fast as possible."
    )
    count: int | None = Field(default=None, ge=0, description="Stop after this many; absent: never.")
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
        register(spark, GenerateDataSource)
        options = {
            "rate": json.dumps(self.rate),
            "count": json.dumps(self.count),
            "max_events": str(batch.max_events),
            "max_ms": str(batch.max_ms),
            "max_inflight": str(inflight(batch)),
        }
        return self._rows(spark.readStream.format(GenerateDataSource.name()).options(**options).load())

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        return self._rows(spark.createDataFrame([], EVENTS)).schema

    def _rows(self, events: DataFrame) -> DataFrame:
        if self.row is None:
            return events
        return events.select(
            *(column(events, text, field=f"row.{name}").alias(name) for name, text in self.row.items())
        )

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return {"availableNow": True} if self.count is not None else super().trigger(batch)


class GenerateDataSource(DataSource):
    """What Spark reads the generated events through."""

    @classmethod
    def name(cls) -> str:
        return "penstock_generate"

    def schema(self) -> str:
        return EVENTS

    def streamReader(self, schema: Any) -> GenerateReader:
        return GenerateReader(self.options)


class Slice(InputPartition):
    """One batch: the events `first` to `last` (exclusive), made between two moments in microseconds."""

    def __init__(self, first: int, last: int, from_us: int, to_us: int) -> None:
        self.first, self.last, self.from_us, self.to_us = first, last, from_us, to_us


class GenerateReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Paces the events.

    An offset is `{n, from_us, to_us}`: how many events there are so far, and when those of the last
    micro-batch were made. It holds all that is needed to make the same events again.
    """

    def __init__(self, options: Any) -> None:
        self.rate: float | None = json.loads(options["rate"])
        self.count: int | None = json.loads(options["count"])
        self.max_events = int(options["max_events"])
        self.max_ms = int(options["max_ms"])
        self.max_inflight = int(options["max_inflight"])
        self.begin: tuple[float, int] | None = None  # when this run began, and how many events there were

    def initialOffset(self) -> dict[str, int]:
        now = int(time.time() * 1e6)
        return {"n": 0, "from_us": now, "to_us": now}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.max_events * self.max_inflight)

    def prepareForTriggerAvailableNow(self) -> None:
        """All of `count` is there to be read; the pace is kept by waiting."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        n = start["n"]
        end = NEVER if self.count is None else self.count
        if n >= end:
            return start
        most = min(end - n, getattr(limit, "max_rows", NEVER))
        due = self._wait(n, most)
        if due == 0 and self.count is None:
            return start
        # For a finite query no new offset would be the end, so one that only has a later time keeps it
        # alive: a micro-batch without events.
        now = int(time.time() * 1e6)
        since = start["to_us"] if self._going_on(n) else now
        return {"n": n + due, "from_us": since, "to_us": max(now, since + 1)}

    def _going_on(self, n: int) -> bool:
        """Whether the last micro-batch was made by this run, not before a pause."""
        return self.begin is not None and n > self.begin[1]

    def _wait(self, n: int, most: int) -> int:
        """How many events are due. Sleeps until a batch is full or its first event has waited enough."""
        if self.rate is None:
            return most
        if self.begin is None:
            self.begin = (time.time(), n)
        began, base = self.begin
        size = min(self.max_events, most)
        full_at = began + (n + size - base) / self.rate
        waited_at = began + (n + 1 - base) / self.rate + self.max_ms / 1000
        time.sleep(max(0.0, min(full_at, waited_at, time.time() + LONGEST_WAIT_S) - time.time()))
        now = time.time()
        return min(most, base + int((now - began) * self.rate) - n) if now >= min(full_at, waited_at) else 0

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, last = start["n"], end["n"]

        def at(n: int) -> int:
            return end["from_us"] + (end["to_us"] - end["from_us"]) * (n - first) // (last - first)

        return [
            Slice(n, stop := min(n + self.max_events, last), at(n), at(stop))
            for n in range(first, last, self.max_events)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        count = partition.last - partition.first
        span = partition.to_us - partition.from_us
        steps = np.arange(count, dtype=np.int64)
        seq = pa.array(partition.first + steps)
        times = pa.array(partition.from_us + span * steps // count).cast(pa.timestamp("us", tz="UTC"))
        yield pa.RecordBatch.from_arrays([seq, times], names=["seq", "time"])
