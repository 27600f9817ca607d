"""Python steps on plain Arrow: planned, pickled as for a task, opened and run, without Spark."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import Invalid, Problem
from penstock.frames.columns import as_arrow, as_struct
from penstock.frames.hidden import EVENT, EVENT_TYPE
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.processors.base import BatchProcessor, Desk, Outcome, Stage
from penstock.specs.policies import Batch
from penstock.streams.ddl import Parser
from penstock.streams.home import StreamPlace

EVENT_COLUMN = next(Parser(f"event {EVENT_TYPE}").columns()).type


@dataclass
class Result:
    """What came out: rows with their offsets, and what was refused."""

    outcome: Outcome

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows = self.outcome.batch.to_pylist(maps_as_pydicts="strict")
        return [{name: value for name, value in row.items() if name != EVENT} for row in rows]

    @property
    def offsets(self) -> list[int]:
        return [event["offset"] for event in self.outcome.batch.column(EVENT).to_pylist()]

    @property
    def bad(self) -> dict[int, str]:
        return {each.row: each.code for each in self.outcome.bad}

    def message(self, row: int) -> str:
        return next(each.message for each in self.outcome.bad if each.row == row)


def batch_of(ddl: str, rows: list[dict[str, Any]], windows: list[str] | None = None) -> pa.RecordBatch:
    """Events of a schema, with the hidden column; they may belong to windows."""
    schema = pa.schema([*Parser(ddl).columns(), pa.field(EVENT, EVENT_COLUMN)])
    known = ({"offset": i, "batch": windows and windows[i]} for i in range(len(rows)))
    return pa.RecordBatch.from_pylist(
        [{**row, EVENT: event} for row, event in zip(rows, known, strict=True)], schema
    )


def raw(*values: str | bytes | None) -> pa.RecordBatch:
    """Raw events. Bytes that are no UTF-8 are in a STRING, as they come out of a stream."""
    data = [value.encode() if isinstance(value, str) else value for value in values]
    column = pa.array(data, pa.binary()).view(pa.string())
    events = pa.array([{"offset": i} for i in range(len(values))], EVENT_COLUMN)
    return pa.RecordBatch.from_arrays([column, events], names=["value", EVENT])


def stage(
    *, given: Any = None, testing: bool = False, state: Path | None = None, allow_python: bool = False
) -> Stage:
    def nowhere(id: str) -> StreamPlace:
        raise LookupError(id)

    site = Site(
        "pipeline:test:1", 0, nowhere, "test.in", state=state, allow_python=allow_python, policy=UNRESTRICTED
    )
    return Stage("step", site, Batch(), testing=testing, given=given)


def opened(processor: BatchProcessor, like: pa.RecordBatch, at: Stage | None = None) -> Any:
    """The work of a step after it has been sent to a task; checks that it gives what it has announced."""
    at = at or stage()
    columns = as_struct(pa.schema([field for field in like.schema if field.name != EVENT]))
    announced = as_arrow(processor.output(columns, at))
    sent = pickle.loads(pickle.dumps(processor))
    work = sent.open(Desk(at.step, at.site.flow, testing=at.testing, given=at.given, policy=at.site.policy))

    def checked(batch: pa.RecordBatch) -> Result:
        outcome = work(batch)
        outcome.batch.validate(full=True)
        given = pa.schema([field for field in outcome.batch.schema if field.name != EVENT])
        assert outcome.batch.schema.names[-1] == EVENT
        assert given.names == announced.names
        assert given.types == announced.types
        return Result(outcome)

    return checked


def run(processor: BatchProcessor, batch: pa.RecordBatch, at: Stage | None = None) -> Result:
    """One batch through a step."""
    result: Result = opened(processor, batch, at)(batch)
    return result


def refusals(processor: BatchProcessor, batch: pa.RecordBatch, at: Stage | None = None) -> list[Problem]:
    """What a step says against being planned on such events."""
    try:
        opened(processor, batch, at)
    except Invalid as error:
        return error.problems
    raise AssertionError("it was planned")
