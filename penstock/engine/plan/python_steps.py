"""Python steps, as they run in Spark's Python workers.

Adjacent steps run in one pass. Each batch of the flow goes through them one after the other; failures,
printed lines and the time of each step are returned as rows with a note.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT, NOTE
from penstock.frames.known import known_of
from penstock.frames.python_source import settle
from penstock.policy import Policy
from penstock.processors.base import BadEvent, BatchProcessor, Desk, Outcome, Refused, Work
from penstock.streams.rendering import plain_values, text_or_base64

BATCHES = "penstock.batches"
"""The local property with the first offsets of the batches of a micro-batch, as JSON."""

Cut = Literal["limits", "offset", "partition"]
"""How a partition is divided into batches: as large as the limits allow, at the first offsets in `BATCHES`,
or not at all."""

CHUNK = 1000
"""Events that Spark passes at once; this bounds its memory. With its own limit in bytes, Spark would compute
the size of all columns at each event, which takes quadratic time for nested columns."""


@dataclass(frozen=True)
class Limits:
    """The largest batch of a step, for a source that does not define batches itself."""

    events: int
    bytes: int


FAILED = "step_failed"
LONGEST = 2000
"""The maximum length of a message; longer messages are truncated."""


@dataclass(frozen=True)
class PythonStep:
    """One step, its output columns, and the given responses of external systems in a test run."""

    id: str
    processor: BatchProcessor
    output: pa.Schema
    """Its visible columns and `$event`."""
    given: Any = None


@dataclass
class _Tally:
    """The counts and notes of a step in this task."""

    step: str
    taken: int = 0
    given: int = 0
    seconds: float = 0.0
    notes: list[dict[str, Any]] = field(default_factory=list)

    def flush(self) -> list[dict[str, Any]]:
        """Return the notes so far, and clear them."""
        notes, self.notes = self.notes, []
        return notes


class PythonSteps:
    """The function that Spark maps over the Arrow batches of a partition."""

    def __init__(
        self,
        flow: str,
        steps: Sequence[PythonStep],
        note: pa.Field,
        cut: Cut = "limits",
        *,
        limits: Limits,
        policy: Policy,
        testing: bool,
    ) -> None:
        self.flow, self.steps, self.cut, self.limits = flow, list(steps), cut, limits
        self.policy, self.testing = policy, testing
        self.output = self.steps[-1].output.append(note)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        tallies = [_Tally(step.id) for step in self.steps]
        works: list[Work] | None = None
        for batch in self._batches(batches):
            works = works or [step.processor.open(self._desk(step)) for step in self.steps]
            for step, work, tally in zip(self.steps, works, tallies, strict=True):
                batch = _through(step, work, batch, tally)
            if batch.num_rows:
                empty = pa.nulls(batch.num_rows, self.output.field(NOTE).type)
                yield pa.RecordBatch.from_arrays([*batch.columns, empty], schema=self.output)
            yield from self._noted([note for tally in tallies for note in tally.flush()])
        yield from self._noted([_stats(tally) for tally in tallies if tally.taken])

    def _batches(self, chunks: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """Group the chunks that Spark passes into the batches of the flow."""
        if self.cut == "limits":
            return gathered(chunks, self.limits)
        from pyspark import TaskContext

        task = TaskContext.get()
        begins = (task and task.getLocalProperty(BATCHES)) if self.cut == "offset" else None
        return regrouped(chunks, json.loads(begins) if begins else [])

    def _desk(self, step: PythonStep) -> Desk:
        from pyspark import TaskContext

        task = TaskContext.get()
        number = (task and task.getLocalProperty("streaming.sql.batchId")) or 0
        partition = task.partitionId() if task else 0
        return Desk(step.id, self.flow, int(number), partition, self.testing, step.given, policy=self.policy)

    def _noted(self, notes: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        if not notes:
            return
        empty = [pa.nulls(len(notes), column.type) for column in self.output][:-1]
        column = pa.array(notes, type=self.output.field(NOTE).type)
        yield pa.RecordBatch.from_arrays([*empty, column], schema=self.output)


def gathered(chunks: Iterable[pa.RecordBatch], limits: Limits) -> Iterator[pa.RecordBatch]:
    """Group events into batches as large as the limits allow; a larger event is a batch of its own."""
    held: list[pa.RecordBatch] = []
    events = size = 0
    for chunk in chunks:
        each = max(1, chunk.nbytes // max(1, chunk.num_rows))
        at = 0
        while at < chunk.num_rows:
            room = min(limits.events - events, (limits.bytes - size) // each)
            if room < 1 and held:
                yield _merged(held, held[0].schema)
                held, events, size = [], 0, 0
                continue
            part = chunk.slice(at, max(1, room))
            held.append(part)
            at += part.num_rows
            events += part.num_rows
            size += part.num_rows * each
    if held:
        yield _merged(held, held[0].schema)


def regrouped(chunks: Iterable[pa.RecordBatch], begins: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Group events into batches that begin at these offsets; an event without one joins the event before."""
    held: list[pa.RecordBatch] = []
    current = last = -1
    for chunk in chunks:
        if not chunk.num_rows:
            continue
        known = pc.struct_field(chunk.column(EVENT), "offset")
        offsets = pc.fill_null(pc.fill_null_forward(known), last).to_numpy(zero_copy_only=False)
        last = int(offsets[-1])
        numbers = np.searchsorted(begins, offsets, side="right")
        borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), chunk.num_rows]
        for start, end in itertools.pairwise(borders):
            if held and numbers[start] != current:
                yield _merged(held, held[0].schema)
                held = []
            current = numbers[start]
            held.append(chunk.slice(start, end - start))
    if held:
        yield _merged(held, held[0].schema)


def _through(step: PythonStep, work: Work, batch: pa.RecordBatch, tally: _Tally) -> pa.RecordBatch:
    """Run one step on one batch; events on which it fails become notes."""
    began = time.perf_counter()
    parts: list[pa.RecordBatch] = []
    tally.taken += batch.num_rows
    for part, outcome in _attempts(work, batch):
        if isinstance(outcome, BadEvent):
            tally.notes.append(_fault(part, outcome, step.id))
            continue
        parts.append(_shaped(outcome.batch, step.output))
        tally.notes += [_fault(part, bad, step.id) for bad in outcome.bad]
        tally.notes += [_note("log", step.id, message=line) for line in outcome.logs]
    merged = _merged(parts, step.output)
    tally.given += merged.num_rows
    tally.seconds += time.perf_counter() - began
    return merged


def _attempts(work: Work, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Outcome | BadEvent]]:
    """The outcomes of a batch, as a whole or in the largest parts that do not fail."""
    try:
        yield batch, work(batch)
        return
    except (Fault, Retryable):
        raise
    except Exception as error:
        failure = error
    if batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _attempts(work, batch.slice(0, half))
        yield from _attempts(work, batch.slice(half))
        return
    code, message = FAILED, f"{type(failure).__name__}: {failure}"
    if isinstance(failure, Refused):
        code, message = failure.code, failure.message
    yield batch, BadEvent(0, code, message)


def _merged(parts: list[pa.RecordBatch], output: pa.Schema) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    merged = pa.Table.from_batches(parts, output).combine_chunks().to_batches()
    return merged[0] if merged else pa.RecordBatch.from_pylist([], output)


def _shaped(batch: pa.RecordBatch, output: pa.Schema) -> pa.RecordBatch:
    """The columns of a step in the declared order and with the declared types, `$event` last."""
    columns = [batch.column(field.name) for field in output]
    columns[-1] = known_of(columns[-1])
    cast = [
        c if c.type == field.type else c.cast(field.type) for c, field in zip(columns, output, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cast, schema=output)


def _fault(batch: pa.RecordBatch, bad: BadEvent, step: str) -> dict[str, Any]:
    one = batch.slice(bad.row, 1)
    row = {
        name: _value(column)
        for name, column in zip(one.schema.names, one.columns, strict=True)
        if name != EVENT
    }
    return _note("fault", step, bad.code, bad.message[:LONGEST], json.dumps(row), _event(one.column(EVENT)))


def _value(column: pa.Array) -> Any:
    """A value as JSON. A string of a raw stream may be any bytes; invalid UTF-8 becomes base64."""
    if pa.types.is_string(column.type):
        return text_or_base64(column.cast(pa.binary())[0].as_py())
    return plain_values(column)[0]


def _event(column: pa.StructArray) -> dict[str, Any]:
    """The metadata of an event as JSON. Invalid UTF-8 in a key is replaced."""
    known = {field.name: pc.struct_field(column, field.name) for field in column.type}
    key = known["key"].cast(pa.binary())[0].as_py()
    event = {name: value[0].as_py() for name, value in known.items() if name != "key"}
    return {**event, "key": None if key is None else key.decode(errors="replace")}


def _stats(tally: _Tally) -> dict[str, Any]:
    ms = tally.seconds * 1000
    return {**_note("stats", tally.step), "taken": tally.taken, "given": tally.given, "ms": ms}


def _note(
    kind: str,
    step: str,
    code: str | None = None,
    message: str | None = None,
    row: str | None = None,
    event: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {"kind": kind, "step": step, "code": code, "message": message, "row": row, "event": event}
