"""A stream as a table: a snapshot of its events, for batch queries."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.frames.logs import LOGS
from penstock.frames.streams.batches import Run
from penstock.frames.streams.pieces import Pieces, slice_of
from penstock.frames.streams.read import columns_of, prepare
from penstock.spark.planned_source import FORMAT, TABLES, Slice, options
from penstock.streams.home import StreamPlace
from penstock.streams.log import Log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION = 100_000
"""The number of events per Spark task: few enough that other tasks soon get a core."""

MOST_PARTITIONS = 1_000

KIND = "table"

KEPT_S = 3600.0
"""Seconds after which the files that were written for a query are removed. No query takes that long."""

_made: deque[tuple[float, Pieces]] = deque()
_lock = threading.Lock()


def read_table(spark: SparkSession, place: StreamPlace) -> DataFrame:
    """The current readable events of a stream, with `_offset` and `_time`."""
    bounds = LOGS.log(place.directory).bounds()
    return read_range(spark, place, bounds.first, bounds.next)


def read_range(spark: SparkSession, place: StreamPlace, first: int, end: int) -> DataFrame:
    """The events from offset `first` to before `end`, with all their metadata."""
    prepare(spark, place)
    reading = {"kind": KIND, "directory": str(place.directory), "first": first, "next": end}
    reader = spark.read.format(FORMAT).options(**options(spark, reading))
    return reader.schema(columns_of(spark, place, metadata=True)).load()


def _tasks(reading: Mapping[str, Any]) -> list[Slice]:
    """A range of offsets, divided into tasks."""
    log: Log = LOGS.log(Path(reading["directory"]))
    first, end = int(reading["first"]), int(reading["next"])
    size = max(PARTITION, -(-(end - first) // MOST_PARTITIONS))
    groups: dict[int, list[Run]] = {}
    for span in log.storage.spans(first) if first < end else ():
        if span.base >= end:
            break
        if span.lost is None:
            run = Run(span.base, span.next, span.time_us, span.raw_bytes, None, span)
            run = run.part(first, end)
            groups.setdefault((run.base - first) // size, []).append(run)
    pieces, raw = _kept(Pieces(log)), log.storage.spec.schema_ is None
    return [slice_of(pieces.of(runs), "skip", raw=raw) for runs in groups.values()]


def _kept(pieces: Pieces) -> Pieces:
    """Retain the files of a query until it must have ended: Spark does not report its end."""
    now = time.monotonic()
    with _lock:
        while _made and _made[0][0] < now - KEPT_S:
            _made.popleft()[1].clear()
        _made.append((now, pieces))
    return pieces


@atexit.register
def _clear() -> None:
    while _made:
        _made.popleft()[1].clear()


TABLES[KIND] = _tasks
