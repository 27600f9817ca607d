"""Scripts on plain Arrow: planned, pickled as for a task, and run through the engine's own wrapper."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.engine.plan.python_steps import Limits, PythonStep, PythonSteps
from penstock.errors import Invalid, Problem
from penstock.frames.columns import as_arrow, as_struct
from penstock.frames.hidden import EVENT, NOTE
from penstock.policy import UNRESTRICTED
from penstock.processors.base import Stage
from penstock.processors.javascript import JavascriptProcessor
from penstock.processors.js.sandbox import close_all
from penstock.specs.policies import Batch
from penstock.streams.ddl import Parser
from tests.flows import NO_STREAMS
from tests.processors.arrow_kit import EVENT_COLUMN

EVENT_FIELD = pa.field(EVENT, EVENT_COLUMN)
NOTE_FIELD = pa.field(
    NOTE,
    pa.struct(
        [
            *((name, pa.string()) for name in ("kind", "step", "code", "message", "row")),
            ("event", EVENT_FIELD.type),
            ("taken", pa.int64()),
            ("given", pa.int64()),
            ("ms", pa.float64()),
        ]
    ),
)
LIMITS = Limits(10_000, 2**24)
SINKS = ("lake", "audit")


@dataclass
class Ran:
    """What came out: rows without the hidden columns, the hidden one, and the notes."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def faults(self) -> list[tuple[int | None, str]]:
        """Offset and code of what was refused."""
        return [(n["event"] and n["event"]["offset"], n["code"]) for n in self.notes if n["kind"] == "fault"]

    @property
    def message(self) -> str:
        """That of the only fault."""
        (message,) = [note["message"] for note in self.notes if note["kind"] == "fault"]
        return str(message)

    @property
    def logs(self) -> list[str]:
        return [note["message"] for note in self.notes if note["kind"] == "log"]


class Script:
    """A step that was planned on a schema."""

    def __init__(self, given: str | pa.Schema, **spec: Any) -> None:
        self.given = pa.schema(list(Parser(given).columns())) if isinstance(given, str) else given
        processor = JavascriptProcessor.model_validate(spec)
        made = processor.output(as_struct(self.given), Stage("step", NO_STREAMS, Batch(), sinks=SINKS))
        step = PythonStep("step", processor, as_arrow(made).append(EVENT_FIELD))
        steps = PythonSteps(
            "pipeline:test", [step], NOTE_FIELD, limits=LIMITS, policy=UNRESTRICTED, testing=False
        )
        self.steps: PythonSteps = pickle.loads(pickle.dumps(steps))

    def __call__(self, *rows: dict[str, Any], **events: list[Any]) -> Ran:
        """Rows through the step as one batch. `events` are the hidden fields by name, else offsets."""
        columns = {"offset": list(range(len(rows))), **events}
        hidden = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        batch = pa.RecordBatch.from_pylist(
            [{**row, EVENT: event} for row, event in zip(rows, hidden, strict=True)],
            self.given.append(EVENT_FIELD),
        )
        ran = Ran()
        for made in self.steps([batch]):
            made.validate(full=True)
            for row in made.to_pylist(maps_as_pydicts="strict"):
                event, note = row.pop(EVENT), row.pop(NOTE)
                if note is not None:
                    ran.notes.append(note)
                else:
                    ran.rows.append(row)
                    ran.events.append(event)
        return ran


def run(inline: str, *rows: dict[str, Any], given: str = "id BIGINT", **spec: Any) -> Ran:
    """Rows through the body of `processBatch(events)`."""
    return Script(given, inline=f"function processBatch(events) {{ {inline} }}", **spec)(*rows)


def ids(*values: int) -> list[dict[str, Any]]:
    return [{"id": value} for value in values]


def refusals(given: str, **spec: Any) -> list[Problem]:
    """What a step says against being planned."""
    try:
        Script(given, **spec)
    except Invalid as error:
        return error.problems
    raise AssertionError("it was planned")


@contextmanager
def no_processes_left() -> Iterator[None]:
    close_all()  # those of other tests
    try:
        yield
    finally:
        close_all()
