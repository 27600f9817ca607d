"""Plans the reading of a stream: the ends of micro-batches, and the tasks that read them.

Spark calls the planner in the thread of the query (`penstock.spark.planned_source`); its tasks read in Java.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from penstock.frames.faults import Fault
from penstock.frames.logs import LOGS
from penstock.frames.python_source import BEGIN, UNENDED
from penstock.frames.streams.batches import Batch, Batches, Limits
from penstock.frames.streams.cursors import cursor_in
from penstock.frames.streams.pace import Pace
from penstock.frames.streams.paced_batches import PacedBatches
from penstock.frames.streams.pieces import Pieces, slice_of
from penstock.spark.planned_source import PLANNERS, Slice
from penstock.specs.positions import parse_position
from penstock.streams.log import Log
from penstock.streams.storage import Cursor, Fenced

PATIENCE_S, IDLE_PATIENCE_S, GROWTH = 0.3, 0.8, 1.05
"""Maximum seconds of one poll, shortly after events and much later: stopping a pipeline has to wait for it,
and each poll costs a round of Spark's trigger. It grows by this factor with each poll without new events."""

TASKS_PER_CORE = 2
"""Tasks of a micro-batch per core: more would cost more than they gain by balancing."""

TASK_BYTES = 1024 * 1024
"""With `max_inflight: auto`, the minimum bytes per task: a smaller task costs more than it saves."""

FIRST, SIZE = "first", "size"
KIND = "stream"

_PLANNERS: WeakValueDictionary[str, StreamPlanner] = WeakValueDictionary()
"""The planners by reader."""


def reading(
    directory: Path,
    reader: str,
    epoch: int,
    position: str,
    until: str | None,
    gap: str,
    limits: Limits,
    tasks: int,
) -> dict[str, Any]:
    """The parameters of a flow's planner for a stream; a micro-batch has up to `tasks` tasks."""
    return {
        "kind": KIND,
        "directory": str(directory),
        "reader": reader,
        "epoch": epoch,
        "position": position,
        "until": until,
        "gap": gap,
        "tasks": tasks,
        "limits": asdict(limits),
    }


def batches_of(reader: str, first: int, end: int) -> list[int]:
    """The first offsets of the batches in a range; empty if the reader has no planner now."""
    planner = _PLANNERS.get(reader)
    return [] if planner is None else planner.begins(first, end)


def pace_of(reader: str) -> Pace | None:
    """The pace of a reader; None if it has no latency goal, or no planner now."""
    planner = _PLANNERS.get(reader)
    return None if planner is None else planner.pace


def lost_before(reader: str, end: int) -> int:
    """The number of lost events in the micro-batch that ends at an offset."""
    planner = _PLANNERS.get(reader)
    return 0 if planner is None else planner.lost(end)


Offset = dict[str, Any]
"""`offset` is that of the next event. `begin` marks the first offset of a flow: Spark treats the first
response of a source as new data, even if there is none yet. For a reader with an end, `end` is the offset to
which its position `until` resolved at the start: a restart ends at the same event. At the end of the first
batch with events, `first` is the offset of its first event. `unended` reports transactions that did not end
in time, so that their events were read without the rest. `size` is the size of the batches, if the planner
has chosen it for this micro-batch."""


class StreamPlanner:
    """Plans the reading of a stream from a position on, and stores the flow's progress in a cursor.

    With a new checkpoint a flow resumes from its cursor; without a cursor, it starts at the position.
    """

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self.directory = Path(reading["directory"])
        self.reader, self.epoch = str(reading["reader"]), int(reading["epoch"])
        self.position, self.gap = parse_position(reading["position"]), reading["gap"]
        self.until: str | None = reading["until"]
        self.tasks, self.limits = int(reading["tasks"]), Limits(**reading["limits"])
        # With a user-defined `max_inflight`, batches are processed in parallel, however small they are.
        self.task_bytes = 1 if self.limits.max_inflight_bytes is None else TASK_BYTES
        self._plan, self.pace = self._batches()
        self._sizes: dict[int, int | None] = {}  # batch sizes, by the end of their micro-batch
        self._pieces = Pieces(self._log)
        self._kind = self._log.storage.kind
        _PLANNERS[self.reader] = self
        self._cursor: Cursor | None = None
        self._lost: dict[int, int] = {}  # numbers of lost events, by the end of their micro-batch
        self._present: int | None = None  # for a finite query: later events are not read
        self._patience_s = 0.0  # the first response is immediate, to show that the flow runs

    def initial(self) -> Offset:
        cursor = cursor_in(self._log, self.reader)
        begin = self._log.resolve(self.position) if cursor is None else cursor.next
        return {"offset": begin, BEGIN: True}

    def available_now(self) -> None:
        self._present = self._log.bounds().next

    def latest(self, start: Offset) -> Offset | None:
        # Spark requests more when everything before was delivered, so the cursor need not wait for `commit`,
        # which is only called with the next events. Moving the cursor also fences an older epoch of the flow.
        self._move(start)
        self._pieces.clear()
        self._sizes.clear()
        first = start["offset"]
        if self.until is None and self._present is not None:
            return self._present_after(start)
        if self.until is None:
            end = self._plan.await_end(first, self._patience_s)
            grown = min(max(self._patience_s * GROWTH, PATIENCE_S), IDLE_PATIENCE_S)
            self._patience_s = grown if end == first else PATIENCE_S
            if end == first:
                return None
            share = self._plan.share()
            size = {} if share is None else {SIZE: share}
            return {"offset": end, **_beginning(start), **self._unended(end), **size}
        known = start.get("until") == self.until
        end = start["end"] if known else self._log.resolve(parse_position(self.until))
        last = min(end, self._log.bounds().next if self._present is None else self._present)
        if first >= last:
            return None
        found = self._plan.end_before(first, last)
        return {"offset": found, **_beginning(start), "end": end, "until": self.until}

    def _present_after(self, start: Offset) -> Offset | None:
        """The end of the next micro-batch of a query that reads only the events that existed at its start."""
        first, last = start["offset"], self._present
        if last is None or first >= last:
            return None
        return {"offset": self._plan.end_before(first, last), **_beginning(start)}

    def partitions(self, start: Offset, end: Offset) -> list[Slice]:
        # Spark does not store the start of the first batch, and the cursor may already be past it.
        first = end[FIRST] if BEGIN in start and FIRST in end else start["offset"]
        size = self._sizes[end["offset"]] = end.get(SIZE)
        batches = self._plan.between(first, end["offset"], size)
        self._lost[end["offset"]] = sum(batch.lost for batch in batches)
        storage = self._log.storage
        if storage.kind != self._kind:
            _prepare(storage.kind)  # the stream was moved while the flow was running
            self._kind = storage.kind
        raw = storage.spec.schema_ is None
        return [
            slice_of(self._pieces.of(run for batch in group for run in batch.runs), self.gap, raw=raw)
            for group in grouped(batches, self.tasks, self.task_bytes if size is None else 1)
        ]

    def begins(self, first: int, end: int) -> list[int]:
        """The first offsets of the batches in a range."""
        return [batch.first for batch in self._plan.between(first, end, self._sizes.get(end))]

    def lost(self, end: int) -> int:
        """The number of unreadable events in the planned micro-batch that ends at an offset."""
        return self._lost.get(end, 0)

    def commit(self, end: Offset) -> None:
        self._move(end)

    def stop(self) -> None:
        self._pieces.clear()

    def _batches(self) -> tuple[Batches, Pace | None]:
        if self.limits.latency_ms is None or self.until is not None:
            return Batches(self._log, self.limits, self.gap), None
        cores = max(1, self.tasks // TASKS_PER_CORE)
        paced = PacedBatches(self._log, self.limits, self.gap, cores)
        return paced, paced.pace

    @property
    def _log(self) -> Log:
        return LOGS.log(self.directory)

    def _unended(self, end: int) -> Offset:
        """The part of an offset that reports transactions that did not end in time."""
        if not (found := self._plan.unended(end)):
            return {}
        transaction = min(found, key=found.__getitem__)
        return {UNENDED: {"count": len(found), "id": transaction, "first": found[transaction]}}

    def _move(self, reached: Offset) -> None:
        """Store the progress of the flow."""
        to = int(reached["offset"])
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
            self._log.count(skipped_by_readers=lost)  # invariant 5
        if (known is None or known.next < to) and UNENDED in reached:
            self._log.count(unended_transactions=reached[UNENDED]["count"])


def _prepare(kind: str) -> None:
    """Enable the tasks of the running session to read a storage."""
    from pyspark.sql import SparkSession

    from penstock.frames.streams.read import prepare_kafka

    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if kind == "kafka" and spark is not None:
        prepare_kafka(spark)


def _beginning(start: Offset) -> Offset:
    """The part of the offset after the first batch that records the start of the flow."""
    return {FIRST: start["offset"]} if BEGIN in start else {}


def grouped(batches: Sequence[Batch], most: int, task_bytes: int = TASK_BYTES) -> list[list[Batch]]:
    """Group consecutive batches into up to `most` tasks of about the same size, at least `task_bytes`."""
    total = sum(batch.bytes for batch in batches)
    tasks = min(most, max(1, math.ceil(total / task_bytes)))
    share = total / tasks
    groups: list[list[Batch]] = []
    size = 0.0
    for batch in batches:
        if not groups or (size + batch.bytes / 2 > share * len(groups) and len(groups) < tasks):
            groups.append([])
        groups[-1].append(batch)
        size += batch.bytes
    return groups


PLANNERS[KIND] = StreamPlanner
