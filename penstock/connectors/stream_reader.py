"""What Spark reads a stream through: a Python Data Source that yields Arrow.

Three processes have a part in it. The reader that Spark asks where a micro-batch ends is alone in a process
of its own; the batches are read in the Python workers of Spark's tasks; the driver only plans.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.connectors.cursors import cursor_in
from penstock.connectors.faults import Fault
from penstock.connectors.logs import LOGS
from penstock.connectors.python_source import BEGIN, settle
from penstock.connectors.stream_batches import Batches, Limits, gap
from penstock.specs.positions import parse_position
from penstock.streams.events import HEADERS, KEY, conform
from penstock.streams.log import Chunk, Log
from penstock.streams.storage import Cursor, Fenced

PATIENCE_S, IDLE_PATIENCE_S, GROWTH = 0.3, 0.8, 1.05
"""How long one poll may take, soon after events and much later: stopping a pipeline has to wait for it, and
each poll costs a round of Spark's trigger. It grows by this factor with each poll that finds nothing."""

OFFSET, TIME = "_offset", "_time"
RENAMED = {KEY: "key", HEADERS: "headers"}
"""What a raw stream has beside its value is stored under names that no column of a typed one can have."""


class StreamDataSource(DataSource):
    """A stream as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        return "penstock_stream"

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(json.loads(self.options["reading"]), schema)


def options(
    directory: Path,
    reader: str,
    epoch: int,
    position: str,
    until: str | None,
    gap: str,
    limits: Limits,
    *,
    raw: bool,
) -> dict[str, str]:
    """The options that a stream is read with."""
    reading = {
        "directory": str(directory),
        "reader": reader,
        "epoch": epoch,
        "position": position,
        "until": until,
        "gap": gap,
        "raw": raw,
        "limits": asdict(limits),
    }
    return {"reading": json.dumps(reading)}


class Slice(InputPartition):
    """One batch, and how many of its events are known to be lost."""

    def __init__(self, first: int, next: int, lost: int) -> None:
        self.first, self.next, self.lost = first, next, lost


Offset = dict[str, Any]
"""`offset` is that of the next event. `begin` marks the first one of a flow: Spark takes the first answer of
a source for news, also the answer that there is nothing yet. Of a reader that has an end, `end` is the offset
that its position `until` meant when it began: a restart ends at the same event."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream from a position on, and keeps a cursor of how far the flow has come.

    Under a new checkpoint a flow goes on where its cursor is; the position counts if it has none.
    """

    def __init__(self, reading: dict[str, Any], schema: StructType) -> None:
        self.directory = Path(reading["directory"])
        self.reader, self.epoch = str(reading["reader"]), int(reading["epoch"])
        self.position, self.gap = parse_position(reading["position"]), reading["gap"]
        self.until: str | None = reading["until"]
        self.raw, self.limits = bool(reading["raw"]), Limits(**reading["limits"])
        self.schema = schema
        self._batches: Batches | None = None
        self._cursor: Cursor | None = None
        self._lost: dict[int, int] = {}  # by the end of a micro-batch: how many of its events are lost
        self._present: int | None = None  # with an end: what comes later is not read
        self._patience_s = 0.0  # the first answer comes at once: it is what shows that the flow runs

    def initialOffset(self) -> Offset:
        cursor = cursor_in(self._log, self.reader)
        begin = self._log.resolve(self.position) if cursor is None else cursor.next
        return {"offset": begin, BEGIN: True}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()  # `latestOffset` keeps the limits of `batch:`

    def prepareForTriggerAvailableNow(self) -> None:
        self._present = self._log.bounds().next

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        # Spark asks for more when all before was delivered, so the cursor need not wait for `commit`,
        # which comes only with the next events. It is also what fences an older epoch of the flow.
        self._move(first := start["offset"])
        if self.until is None:
            end = self._plan.await_end(first, self._patience_s)
            grown = min(max(self._patience_s * GROWTH, PATIENCE_S), IDLE_PATIENCE_S)
            self._patience_s = grown if end == first else PATIENCE_S
            return start if end == first else {"offset": end}
        known = start.get("until") == self.until
        end = start["end"] if known else self._log.resolve(parse_position(self.until))
        last = min(end, self._log.bounds().next if self._present is None else self._present)
        if first >= last:
            return start
        return {"offset": self._plan.end_before(first, last), "end": end, "until": self.until}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        batches = self._plan.between(start["offset"], end["offset"])
        self._lost[end["offset"]] = sum(batch.lost for batch in batches)
        return [Slice(batch.first, batch.next, batch.lost) for batch in batches]

    def commit(self, end: Offset) -> None:
        self._move(end["offset"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        settle()
        target = to_arrow_schema(self.schema, timezone="UTC")
        lost = 0
        for chunk in self._log.read(partition.first, partition.next):
            if chunk.batch is not None:
                yield shaped(chunk, target, raw=self.raw)
                continue
            lost += chunk.next - chunk.base
            if self.gap == "fail":
                raise gap(chunk.base, chunk.next, chunk.lost or "unknown")
        if lost > partition.lost:  # not known before they were read (invariant 5)
            self._log.storage.count(skipped_by_readers=lost - partition.lost)

    @property
    def _log(self) -> Log:
        return LOGS.log(self.directory)

    @property
    def _plan(self) -> Batches:
        if self._batches is None:
            self._batches = Batches(self._log, self.limits, self.gap)
        return self._batches

    def _move(self, to: int) -> None:
        """Keep the progress of the flow."""
        if self._cursor is not None and self._cursor.next >= to:
            return
        known = self._cursor or cursor_in(self._log, self.reader)
        passed = [end for end in self._lost if end <= to]
        lost = sum(self._lost.pop(end) for end in passed)
        skipped = lost + (known.skipped if known else 0)
        cursor = Cursor(self.reader, to, self.epoch, time.time(), skipped)
        try:
            self._log.move_cursor(cursor)
        except Fenced as error:
            raise Fault("fenced", str(error)) from None
        self._cursor = cursor
        if lost:
            self._log.storage.count(skipped_by_readers=lost)  # invariant 5


def shaped(chunk: Chunk, target: pa.Schema, *, raw: bool) -> pa.RecordBatch:
    """Events with the columns that Spark was promised."""
    assert chunk.batch is not None
    stored = _as_text(_renamed(chunk.batch) if raw else chunk.batch, target)
    payload = pa.schema([field for field in target if field.name not in (OFFSET, TIME)])
    columns = dict(zip(payload.names, conform(stored, payload).columns, strict=True))
    if OFFSET in target.names:
        times = pa.array(np.full(stored.num_rows, chunk.time_us, np.int64))
        columns[OFFSET] = pa.array(np.arange(chunk.base, chunk.next, dtype=np.int64))
        columns[TIME] = times.cast(target.field(TIME).type)
    return pa.RecordBatch.from_arrays([columns[name] for name in target.names], schema=target)


def _renamed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Raw events under the names that people know."""
    return batch.rename_columns([RENAMED.get(name, name) for name in batch.schema.names])


def _as_text(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Bytes that Spark is to see as text are seen so.

    Nothing is copied and nothing is checked: Spark keeps any bytes in a string, and gives them back.
    """
    fields, columns = list(batch.schema), batch.columns
    for i, field in enumerate(fields):
        at = target.get_field_index(field.name)
        if at >= 0 and target.field(at).type == pa.string() and field.type == pa.binary():
            fields[i], columns[i] = pa.field(field.name, pa.string()), columns[i].view(pa.string())
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
