"""Test runs: sample events in, what every step makes of them out.

The steps are the very ones that a flow runs, on a frame that has an end. Each starts from what was collected
of the one before, so its time is its own. Nothing is read from the source and nothing reaches a sink; a step
that asks the outside lives on the answers that were given.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import Sink
from penstock.engine.analysis import analyse
from penstock.engine.failures import failure_of
from penstock.engine.flow import Flow, Lookup, Part, resolve_flow
from penstock.engine.notes import Note
from penstock.engine.plan import Plan, plan_frame
from penstock.engine.reasons import explained
from penstock.engine.samples import Given, read_samples
from penstock.engine.sites import declared_site
from penstock.engine.steps import Step, make_steps
from penstock.engine.tested import (
    EventError,
    StepResult,
    TestResult,
    as_event,
    as_events,
    columns_of,
    numbers,
    renderable,
    rendered,
    sinks_of,
    sorted_out,
)
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.processors.base import BatchProcessor, Processor
from penstock.processors.noting import shown
from penstock.specs.documents import derive_id, runs
from penstock.specs.validation import Known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS = 10_000
"""Events that a step may make of the samples: one that explodes must not fill the memory."""


@dataclass
class Trial:
    """What came of a test run: as people see it, and as tables with `$event`."""

    result: TestResult
    outputs: dict[str, pa.Table] = field(default_factory=dict)
    """By step: what left it."""
    sinks: dict[str, pa.Table] = field(default_factory=dict)
    final: pa.Table | None = None
    """What left the last step; None if the run did not come that far."""


@dataclass(frozen=True)
class Bench:
    """Where documents are tried: the documents they may refer to, and what they may do."""

    spark: SparkSession
    lookup: Lookup
    known: Known
    defaults: Mapping[str, Any] = field(default_factory=dict)
    allow_python: bool = False


def try_out(
    bench: Bench, raw: Any, samples: Given, given: Mapping[str, Any] | None = None, at: str = "events"
) -> Trial:
    """Try a document on samples. What is wrong with the document is part of the result.

    Raises `Invalid` for samples and answers that do not fit it; `at` is where a person has written them.
    """
    began = time.perf_counter()
    analysis = analyse(raw, bench.lookup, bench.known, bench.defaults)
    if not analysis.valid:
        return Trial(TestResult(ok=False, errors=analysis.errors))
    session = bench.spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    result = TestResult(ok=True)
    run = Trial(result)
    try:
        site = declared_site(raw, bench.lookup, bench.defaults, allow_python=bench.allow_python)
        flow = resolve_flow(_runnable(raw), bench.lookup, site, bench.defaults)
        try:
            columns = flow.source.component.columns(session, site)
        except Invalid as error:
            raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    except Invalid as error:
        result.ok, result.errors = False, error.problems
        return run
    _require_steps(flow, given or {})
    # A task that lends its steps to pipelines may be given any source.
    known = raw["kind"] == "Task" or flow.source.component.reads(site) is not None
    read = read_samples(samples, columns, session, at, known=known)
    result.input, result.warnings = as_events(read.table), read.warnings
    try:
        _Run(flow, session, given or {}, run).go(session.createDataFrame(read.table, read.schema), read.table)
    except Invalid as error:
        result.ok, result.errors = False, error.problems
    result.ms = round((time.perf_counter() - began) * 1000, 1)
    return run


class _Run:
    """One test run of a flow."""

    def __init__(self, flow: Flow, session: SparkSession, given: Mapping[str, Any], run: Trial) -> None:
        self.flow, self.session, self.given, self.run = flow, session, given, run
        self.steps: list[Step] = []

    def go(self, df: DataFrame, table: pa.Table) -> None:
        """All steps, then the sinks. Raises `Invalid` at the place where the run cannot go on."""
        self.input = df
        for number, part in enumerate(self.flow.processors):
            df, table = self.step(number, part, df, table)
        self.run.final = table
        self.deliver(df, table)

    def step(
        self, number: int, part: Part[Processor], df: DataFrame, table: pa.Table
    ) -> tuple[DataFrame, pa.Table]:
        """One step: the frame for the next one, and what it holds."""
        began = time.perf_counter()
        if part.component.asks() and part.id not in self.given:
            raise Invalid(_needs_answer(part))
        if isinstance(part.component, BatchProcessor):
            df = df.coalesce(1)  # all samples are one batch
        step = next(make_steps(self.flow, df, first=number, testing=True, given=self.given))
        self.steps.append(step)
        made, notes = self.collect(step, part)
        ms = (time.perf_counter() - began) * 1000
        self.run.outputs[part.id] = made
        self.run.result.steps.append(self.told(part, step, table, made, notes, ms))
        if not renderable(step.frame.schema):
            return step.frame, made
        rows = made if made.num_rows else []  # PySpark fails on a table without a chunk
        return self.session.createDataFrame(rows, step.frame.schema.toNullable()), made

    def collect(self, step: Step, part: Part[Processor]) -> tuple[pa.Table, list[Note]]:
        """The events that leave a step, and its notes."""
        try:
            found = rendered(step.noted).limit(MOST_ROWS + 1).toArrow().combine_chunks()
        except Exception as error:  # Spark, and what runs in it, may raise anything
            raise Invalid(part.place.locate(failure_of(error).problem)) from None
        if found.num_rows > MOST_ROWS:
            message = f"the step makes more than {MOST_ROWS} events of the samples"
            raise Invalid(part.place.locate(Problem(code="too_many_events", message=message)))
        return sorted_out(found)

    def told(
        self,
        part: Part[Processor],
        step: Step,
        taken: pa.Table,
        made: pa.Table,
        notes: Sequence[Note],
        ms: float,
    ) -> StepResult:
        """What a step did, for people."""
        plan = Plan(self.flow, self.input, self.steps, {})
        faults = explained([note for note in notes if note.kind == "fault"], plan, self.session)
        late = [note for note in notes if note.kind == "late"]
        dropped, which = _dropped(taken, made, [note.event.get("sample") for note in (*faults, *late)])
        return StepResult(
            id=part.id,
            type=part.component.type,  # type: ignore[attr-defined]
            columns=columns_of(step.columns[-1]),
            output=as_events(made),
            dropped=dropped,
            dropped_events=as_events(taken.take(pa.array(which, pa.int64()))),
            errors=[
                EventError(code=note.code or "", message=note.message or "", event=as_event(note))
                for note in faults
            ],
            late=[as_event(note) for note in late],
            logs=[note.message or "" for note in notes if note.kind == "log"],
            ms=round(ms, 1),
        )

    def deliver(self, df: DataFrame, table: pa.Table) -> None:
        """What each sink would get."""
        conditions = plan_frame(self.flow, df, None, first=len(self.flow.processors)).conditions
        chosen = sinks_of(table)
        for sink in self.flow.sinks:
            wanted = self.judged(shown(df), sink, conditions[sink.id]) if sink.id in conditions else None
            rows = [
                i
                for i, only in enumerate(chosen)
                if (only is None or sink.id in only) and (wanted is None or wanted[i])
            ]
            self.run.sinks[sink.id] = table.take(pa.array(rows, pa.int64()))
            self.run.result.output[sink.id] = as_events(self.run.sinks[sink.id])

    def judged(self, df: DataFrame, sink: Part[Sink], condition: Any) -> list[bool | None]:
        """Which events the condition of a sink chooses."""
        try:
            return list(df.select(condition.alias("chosen")).toArrow().column(0).to_pylist())
        except Exception as error:  # a condition may raise on an event, as it would in a flow
            raise Invalid(sink.place.locate(failure_of(error).problem)) from None


def _dropped(taken: pa.Table, made: pa.Table, noted: Sequence[int | None]) -> tuple[int, list[int]]:
    """How many events a step has dropped, and which of them, where the numbers of their samples tell.

    Several may have the same one: a step before has made them of one sample.
    """
    before, after = numbers(taken), numbers(made)
    if None in before:
        return max(0, len(before) - len(after) - len(noted)), []
    if None in after:
        return 0, []  # it makes new events of several, as a window does
    left = Counter(after) + Counter(noted)
    gone = Counter(before) - left
    return gone.total(), [i for i, number in enumerate(before) if number in gone and number not in left]


def _runnable(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document, or for a task that needs a pipeline to run one that has its steps."""
    if raw["kind"] != "Task" or runs(raw):
        return raw
    spec = raw["spec"]
    stream = spec.get("input")
    source = {"type": "stream", "stream": derive_id(stream)} if stream else SAMPLED
    whole = {"source": source, "processors": spec["processors"], "sinks": [{"id": "output", "type": "drop"}]}
    return {**raw, "kind": "Pipeline", "spec": whole}


SAMPLED = {"type": "file", "path": "samples", "format": "json"}
"""A source that is never read, and whose columns are those of the samples."""


def _require_steps(flow: Flow, given: Mapping[str, Any]) -> None:
    ids = [part.id for part in flow.processors]
    if unknown := [
        Problem(
            code="unknown_step",
            message=f"there is no step '{id}' to give answers to",
            path=f"given.{id}",
            hint=did_you_mean(id, ids),
        )
        for id in given
        if id not in ids
    ]:
        raise Invalid(*unknown)


def _needs_answer(part: Part[Processor]) -> Problem:
    return part.place.locate(
        Problem(
            code="needs_answer",
            message=f"the step '{part.id}' asks outside, which a test run does not",
            hint=f"say what it would be answered: given: {{{part.id}: …}}",
        )
    )
