"""The entry at which a replayed dead letter enters its flow, and the row with which it enters.

A letter holds the input of its step, so it can enter right before that step. To replay it from the start, its
event is read again from the source, if the source supports that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from penstock.engine.letters.reader import Letter
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import OUTPUTS, Plan
from penstock.errors import Problem, did_you_mean
from penstock.frames.hidden import EVENT
from penstock.spark.tables import frame_of, table_of
from penstock.streams.decode.results import Mismatch
from penstock.streams.decode.values import load, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Begin = Literal["step", "start"]

START, SOURCE = "start", "source"

MOST_RANGES = 16
"""The maximum number of ranges in which scattered events are read from the source."""


class Unfit(Exception):
    """The reason why a letter cannot be replayed."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(code=code, message=message, hint=hint)


@dataclass(frozen=True)
class Entry:
    """A place where letters enter: before a processor, at one sink, or at the start."""

    name: str
    first: int
    """The number of the first processor that they pass through."""
    sink: str | None = None
    """The only sink that gets the letters; None: all sinks."""


@dataclass
class Fitting:
    """Letters as a table with the columns of their entry, and the letters that do not match them."""

    table: pa.Table
    letters: dict[int, list[Letter]] = field(default_factory=dict)
    """The letters by `offset` in `$event`."""
    unfit: dict[int, Problem] = field(default_factory=dict)
    """The problems of letters that do not fit, by offset of the letter."""


class Entries:
    """The entries of a flow in its current revision."""

    def __init__(self, plan: Plan, spark: SparkSession) -> None:
        self._plan, self._flow, self._spark = plan, plan.flow, spark
        self._steps = [part.id for part in plan.flow.processors]
        source = plan.flow.source.component
        self._rereadable = source.reread(spark, plan.flow.site, 0, 0) is not None

    def entry(self, letter: Letter, begin: Begin) -> Entry:
        """The entry of a letter; raises `Unfit` if the letter cannot be replayed."""
        own = _own(letter)
        if begin == "step" or own in (f"step/{SOURCE}", *(f"step/{step}" for step in self._steps[:1])):
            return self.named(own)
        self._require_original(letter)
        return self.named(START)

    def named(self, name: str) -> Entry:
        """The entry with a name; raises `Unfit` if it does not exist, or a step after it is stateful."""
        return entry_named(self._flow, name)

    def table(self, entry: Entry, letters: Sequence[Letter]) -> Fitting:
        """The letters as rows of their entry."""
        return self._reread(letters) if entry.name == START else self._decoded(entry, letters)

    def frame(self, table: pa.Table) -> DataFrame:
        """A table as a single partition, so that Python steps get all rows at once."""
        return frame_of(self._spark, table).coalesce(1)

    def _decoded(self, entry: Entry, letters: Sequence[Letter]) -> Fitting:
        from pyspark.sql.pandas.types import to_arrow_schema

        columns = to_arrow_schema(self._plan.columns[entry.first][1], timezone="UTC")
        columns = pa.schema([column.with_nullable(True) for column in columns])
        event = to_arrow_schema(self._plan.input.select(f"`{EVENT}`").schema, timezone="UTC").field(0)
        rows, events = [], []
        fitting = Fitting(pa.table({}))
        for letter in letters:
            try:
                _require_sinks(self._flow, letter)
                rows.append(_row(letter, columns))
            except Unfit as unfit:
                fitting.unfit[letter.offset] = unfit.problem
                continue
            fitting.letters[identity(letter)] = [letter]
            known = letter.event
            headers = None if known["headers"] is None else list(known["headers"].items())
            events.append({**known, "offset": identity(letter), "headers": headers})
        batch = rows_of(columns).batch(rows)
        schema = columns.append(event)
        arrays = [*batch.columns, pa.array(events, event.type)]
        fitting.table = pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=schema)])
        return fitting

    def _reread(self, letters: Sequence[Letter]) -> Fitting:
        from pyspark.sql import functions as f

        by_offset: dict[int, list[Letter]] = {}
        for letter in letters:
            by_offset.setdefault(letter.source_offset or 0, []).append(letter)
        frames = [self._between(first, end) for first, end in ranges(sorted(by_offset))]
        df = frames[0]
        for more in frames[1:]:
            df = df.unionAll(more)
        offset = f.col(f"`{EVENT}`.offset")
        table = table_of(df.filter(offset.isin(*by_offset)))
        fitting = Fitting(table)
        there = {event["offset"] for event in table.column(EVENT).to_pylist()}
        gone = Problem(code="evicted", message="the source no longer has the event")
        for number, those in by_offset.items():
            if number in there:
                fitting.letters[number] = those
            else:
                fitting.unfit |= {letter.offset: gone for letter in those}
        return fitting

    def _between(self, first: int, end: int) -> DataFrame:
        df = self._flow.source.component.reread(self._spark, self._flow.site, first, end)
        assert df is not None
        return df

    def _require_original(self, letter: Letter) -> None:
        """Raise unless the original event can be read again from the source."""
        if letter.mark.edit is not None:
            message = (
                f"the edit applies to the input of '{letter.step}', but the source has the original event"
            )
            raise Unfit("edited_letter", message, "replay it from the step")
        if not self._rereadable or letter.source_offset is None:
            hint = "replay it from the step, or send the event again"
            raise Unfit("not_rereadable", "the source can't read this event again", hint)
        if letter.headers.get("origin") != self._flow.position_key:
            message = "the pipeline now reads another source"
            raise Unfit("source_changed", message, "replay it from the step")


def entry_named(flow: Flow, name: str) -> Entry:
    """The entry with a name; raises `Unfit` if it does not exist, or a step after it is stateful."""
    part, _, part_id = name.partition("/")
    steps, sinks = [step.id for step in flow.processors], [sink.id for sink in flow.sinks]
    if part == "sink":
        if part_id not in sinks:
            message = f"sink '{part_id}' no longer exists"
            raise Unfit("unknown_step", message, did_you_mean(part_id, sinks))
        return Entry(name, len(steps), part_id)
    if part == "step" and part_id == OUTPUTS and part_id not in steps:
        return Entry(name, len(steps))
    if part == "step" and part_id not in (SOURCE, *steps):
        raise Unfit("unknown_step", f"step '{part_id}' no longer exists", "replay it from the start")
    first = steps.index(part_id) if part_id in steps else 0
    for step in flow.processors[first:]:
        if step.component.stateful:
            message = f"step '{step.id}' keeps state: a replayed event would change its results"
            raise Unfit("stateful_replay", message, "send the event to the input of the pipeline")
    return Entry(name, first)


def obstacle(flow: Flow, letter: Letter) -> Problem | None:
    """The reason why a letter cannot be replayed from its step, if it is known from the flow's document."""
    try:
        entry_named(flow, _own(letter))
        _require_sinks(flow, letter)
    except Unfit as unfit:
        return unfit.problem
    return None


def _own(letter: Letter) -> str:
    """The name of the entry right before the step or sink that a letter comes from."""
    return f"{'sink' if letter.of_sink else 'step'}/{letter.step}"


def _require_sinks(flow: Flow, letter: Letter) -> None:
    """Raise if none of the sinks that a step has chosen for the event still exists."""
    chosen = letter.event["sinks"]
    if chosen is not None and not set(chosen) & {sink.id for sink in flow.sinks}:
        message = f"the event is for the sink '{chosen[0]}', which no longer exists"
        raise Unfit("unknown_sink", message, "replay it from the start")


def identity(letter: Letter) -> int:
    """The key of a letter in `$event`, unique in its slice: the offset in the source, or the letter's own."""
    return letter.offset if letter.source_offset is None else letter.source_offset


def ranges(offsets: Sequence[int], most: int = MOST_RANGES) -> list[tuple[int, int]]:
    """Up to `most` ranges that cover ascending offsets, split at the largest gaps."""
    gaps = sorted(range(1, len(offsets)), key=lambda i: offsets[i - 1] - offsets[i])[: most - 1]
    cuts = sorted(i for i in gaps if offsets[i] - offsets[i - 1] > 1)
    starts, ends = [0, *cuts], [*cuts, len(offsets)]
    return [(offsets[start], offsets[end - 1] + 1) for start, end in zip(starts, ends, strict=True)]


def _row(letter: Letter, columns: pa.Schema) -> tuple[Any, ...]:
    """The event of a letter as a row; raises `Unfit` if it does not match the columns."""
    rows, names = rows_of(columns), {name.lower(): name for name in columns.names}
    try:
        event = load(letter.text, exact=rows.exact)
        if isinstance(event, dict):  # in Spark, names are case-insensitive
            event = {names.get(name.lower(), name): value for name, value in event.items()}
        row = rows.row(event)
    except Mismatch as mismatch:
        raise Unfit("does_not_fit", str(mismatch), "edit it, or replay it from the start") from None
    for name in event:
        if name not in columns.names:
            message = f"the input of '{letter.step}' has no column '{name}'"
            raise Unfit("does_not_fit", message, did_you_mean(name, columns.names))
    return row
