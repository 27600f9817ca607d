"""The Python Data Source behind the `generate` source."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.frames.python_source import LONGEST_WAIT_S

NEVER = 2**62

EVENTS = "seq BIGINT, time TIMESTAMP"
"""The columns of a generated event."""


class GenerateDataSource(DataSource):
    """The generated events as a data source of Spark."""

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
        """All of `count` can be read; waiting keeps the pace."""

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
        """The number of due events. Sleeps until a batch is full or its first event has waited enough."""
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
