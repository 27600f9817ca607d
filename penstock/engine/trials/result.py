"""The result of a test run, and its rendering of events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, Field

from penstock.engine.letters.notes import Note
from penstock.engine.plan.analysis import Column
from penstock.engine.runtime.sql_queries import SHOWN_AS_THEY_ARE
from penstock.engine.trials.samples import META
from penstock.errors import Problem
from penstock.frames.hidden import EVENT, NOTE
from penstock.sql.names import quote
from penstock.streams.rendering import plain_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

Event = dict[str, Any]

SHOWN = {"offset": "sample", "time": "time", "key": "key", "headers": "headers", "sinks": "sinks"}
"""The members of `$meta`, and the corresponding fields of `$event`."""


class EventError(BaseModel):
    """An event on which a step has failed: in a running pipeline it would become a dead letter."""

    code: str
    message: str
    event: Event = Field(description="Input of the step.")


class StepResult(BaseModel):
    """The output, errors and counts of a step."""

    id: str
    type: str
    columns: list[Column] = Field(description="Output columns with their types.")
    output: list[Event] = Field(description="Output events. `$meta.offset` is the number of the sample.")
    dropped: int = Field(description="Number of events filtered out by the step; not errors.")
    dropped_events: list[Event] = Field(description="The dropped events, where they can be identified.")
    errors: list[EventError]
    late: list[Event] = Field(description="Events that arrived after their window closed.")
    logs: list[str] = Field(description="Script output.")
    ms: float = Field(description="Duration in this run, including planning.")


class TestResult(BaseModel):
    """The result of a test run."""

    ok: bool = Field(description="Whether the run finished. Single events may have failed.")
    input: list[Event] = Field(
        default_factory=list, description="The parsed sample events: input of the first step."
    )
    steps: list[StepResult] = Field(default_factory=list)
    output: dict[str, list[Event]] = Field(default_factory=dict, description="Output events by sink.")
    errors: list[Problem] = Field(default_factory=list, description="Why the run stopped early.")
    warnings: list[Problem] = Field(default_factory=list)
    ms: float = 0.0


def columns_of(schema: StructType) -> list[Column]:
    """The columns of a schema, for display."""
    return [Column(name=field.name, type=field.dataType.simpleString()) for field in schema.fields]


def renderable(schema: StructType) -> bool:
    """Whether all columns can be represented in Arrow and in JSON."""
    return not any(map(_is_odd, schema.fields))


def rendered(df: DataFrame) -> DataFrame:
    """The frame in a form that can be collected: columns of unsupported types, such as VARIANT, are text."""
    from pyspark.sql import functions as f

    changed = {}
    for have, loose in zip(df.schema.fields, df.schema.toNullable().fields, strict=True):
        if _is_odd(have):
            changed[have.name] = f.col(quote(have.name)).cast("string")
        elif have.dataType != loose.dataType:
            # Arrow does not accept a null struct if its fields are not nullable.
            changed[have.name] = f.col(quote(have.name)).cast(loose.dataType)
    return df.withColumns(changed) if changed else df


def sorted_out(table: pa.Table) -> tuple[pa.Table, list[Note]]:
    """The events of a step, and its notes."""
    if NOTE not in table.schema.names:
        return table, []
    notes = table.column(NOTE)
    return table.filter(notes.is_null()).drop_columns([NOTE]), [_note(n) for n in notes.to_pylist() if n]


def as_events(table: pa.Table) -> list[Event]:
    """Events for display: their columns, and their metadata in `$meta`."""
    names = [name for name in table.schema.names if name != EVENT]
    columns = [plain_values(table.column(name).combine_chunks()) for name in names]
    rows: list[Event] = [{} for _ in range(table.num_rows)]
    for name, values in zip(names, columns, strict=True):
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    for row, known in zip(rows, _known(table), strict=True):
        row[META] = known
    return rows


def as_event(note: Note) -> Event:
    """The input event of a note."""
    known = {name: value for name, field in SHOWN.items() if (value := note.event.get(field)) is not None}
    if isinstance(moment := known.get("time"), datetime):
        known["time"] = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {**json.loads(note.row or "{}"), META: known}


def numbers(table: pa.Table) -> list[int | None]:
    """The sample number of each event; None for an event that comes from several samples."""
    return [event["sample"] for event in table.column(EVENT).to_pylist()]


def sinks_of(table: pa.Table) -> list[list[str] | None]:
    """The sinks that steps have chosen for each event; None: all."""
    return [event["sinks"] for event in table.column(EVENT).to_pylist()]


def _is_odd(field: StructField) -> bool:
    return field.dataType.typeName().partition("(")[0] not in SHOWN_AS_THEY_ARE


def _note(values: dict[str, Any]) -> Note:
    event = dict(values.pop("event") or {})
    event["headers"] = dict(event.get("headers") or ()) or None
    return Note(event=event, **{name: value for name, value in values.items() if value is not None})


def _known(table: pa.Table) -> list[dict[str, Any]]:
    events = plain_values(table.column(EVENT).combine_chunks())
    return [
        {name: event[field] for name, field in SHOWN.items() if event[field] is not None} for event in events
    ]
