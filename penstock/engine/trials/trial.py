"""Test runs: sample events go through every step, and the output of each step is returned.

The steps are the same that a flow runs, on a finite frame. Each starts from the collected output of the
previous step, so its time is measured separately. Nothing is read from the source and nothing reaches a sink;
a step that calls an external system uses the given responses.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.letters.notes import Note
from penstock.engine.letters.reasons import Reasons
from penstock.engine.plan.analysis import analyse
from penstock.engine.plan.declared_site import declared_site
from penstock.engine.plan.flow import Flow, Lookup, Part, resolve_flow
from penstock.engine.plan.plan import OUTPUTS, Plan, plan_frame
from penstock.engine.plan.steps import Step, make_steps
from penstock.engine.runtime.failures import failure_of
from penstock.engine.trials.result import (
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
from penstock.engine.trials.samples import Given, read_samples
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.frames.noting import shown
from penstock.policy import UNRESTRICTED, Policy
from penstock.processors.base import BatchProcessor, Processor
from penstock.spark.tables import table_of
from penstock.specs.documents import derive_id, runs
from penstock.specs.validation import Known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS = 10_000
"""The maximum number of output events of a step: a step that explodes events must not exhaust the memory."""


@dataclass
class Trial:
    """The outcome of a test run: the result to show, and tables with `$event`."""

    result: TestResult
    outputs: dict[str, pa.Table] = field(default_factory=dict)
    """The output of each step."""
    sinks: dict[str, pa.Table] = field(default_factory=dict)
    final: pa.Table | None = None
    """The output of the last step; None if the run did not reach it."""


@dataclass(frozen=True)
class Bench:
    """The environment of a test run: documents to refer to, and permissions."""

    spark: SparkSession
    lookup: Lookup
    known: Known
    defaults: Mapping[str, Any] = field(default_factory=dict)
    allow_python: bool = False
    policy: Policy = UNRESTRICTED


def try_out(
    bench: Bench, raw: Any, samples: Given, given: Mapping[str, Any] | None = None, at: str = "events"
) -> Trial:
    """Run a document on samples. Errors of the document are part of the result.

    Raises `Invalid` for samples and responses that do not match it; `at` is the path of the samples in the
    document or request.
    """
    began = time.perf_counter()
    analysis = analyse(raw, bench.lookup, bench.known, bench.defaults, policy=bench.policy)
    if not analysis.valid:
        return Trial(TestResult(ok=False, errors=analysis.errors))
    session = bench.spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    result = TestResult(ok=True)
    run = Trial(result)
    try:
        site = declared_site(raw, bench.lookup, bench.defaults, bench.policy, allow_python=bench.allow_python)
        flow = resolve_flow(_runnable(raw), bench.lookup, site, bench.defaults)
        try:
            columns = flow.source.component.columns(session, site)
        except Invalid as error:
            raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    except Invalid as error:
        result.ok, result.errors = False, error.problems
        return run
    _require_steps(flow, given or {})
    # A task whose steps are used in pipelines may have any source.
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
        """Run all steps, then the sinks. Raises `Invalid` with the place where the run cannot continue."""
        self.input = df
        for number, part in enumerate(self.flow.processors):
            df, table = self.step(number, part, df, table)
        self.run.final = table
        self.deliver(df, table)

    def step(
        self, number: int, part: Part[Processor], df: DataFrame, table: pa.Table
    ) -> tuple[DataFrame, pa.Table]:
        """Run one step; returns the frame for the next step, and its rows."""
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
        """The output events of a step, and its notes."""
        try:
            found = table_of(rendered(step.noted).limit(MOST_ROWS + 1)).combine_chunks()
        except Exception as error:  # Spark, and code that runs in it, may raise anything
            raise Invalid(part.place.locate(failure_of(error).problem)) from None
        if found.num_rows > MOST_ROWS:
            message = f"the step produces more than {MOST_ROWS} events from the samples"
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
        """The result of a step, for display."""
        plan = Plan(self.flow, self.input, self.steps, {})
        faults = Reasons(plan, self.session).explained([note for note in notes if note.kind == "fault"])
        late = [note for note in notes if note.kind == "late"]
        dropped, which = _dropped(taken, made, [note.event.get("sample") for note in (*faults, *late)])
        return StepResult(
            id=part.id,
            type=part.component.type,  # type: ignore[attr-defined]
            columns=columns_of(step.columns[-1]),
            output=as_events(made),
            dropped=dropped,
            dropped_events=as_events(taken.take(pa.array(which, pa.int64()))),
            errors=list(map(_error, faults)),
            late=[as_event(note) for note in late],
            logs=[note.message or "" for note in notes if note.kind == "log"],
            ms=round(ms, 1),
        )

    def deliver(self, df: DataFrame, table: pa.Table) -> None:
        """Determine the events that each sink would get."""
        plan = plan_frame(self.flow, df, None, first=len(self.flow.processors))
        if plan.judged is not None:
            table = self.judge(plan.judged.noted, table)
        chosen = sinks_of(table)
        for sink in self.flow.sinks:
            wanted = None
            if sink.id in plan.conditions:
                found = shown(plan.output).select(plan.conditions[sink.id].alias("chosen"))
                wanted = table_of(found).column(0).to_pylist()
            rows = [
                i
                for i, only in enumerate(chosen)
                if (only is None or sink.id in only) and (wanted is None or wanted[i])
            ]
            self.run.sinks[sink.id] = table.take(pa.array(rows, pa.int64()))
            self.run.result.output[sink.id] = as_events(self.run.sinks[sink.id])

    def judge(self, df: DataFrame, table: pa.Table) -> pa.Table:
        """The events on which the conditions of the outputs succeed; others become errors of a step."""
        began = time.perf_counter()
        made, notes = sorted_out(table_of(rendered(df)).combine_chunks())
        if notes:
            self.run.result.steps.append(
                StepResult(
                    id=OUTPUTS,
                    type=OUTPUTS,
                    columns=columns_of(shown(df).schema),
                    output=as_events(made),
                    dropped=0,
                    dropped_events=[],
                    errors=list(map(_error, notes)),
                    late=[],
                    logs=[],
                    ms=round((time.perf_counter() - began) * 1000, 1),
                )
            )
        return made if notes else table


def _error(note: Note) -> EventError:
    return EventError(code=note.code or "", message=note.message or "", event=as_event(note))


def _dropped(taken: pa.Table, made: pa.Table, noted: Sequence[int | None]) -> tuple[int, list[int]]:
    """The number of dropped events of a step, and the indexes of input events whose sample is gone entirely.

    Several events may have the same sample number, if an earlier step has created them from one sample.
    """
    before, after = numbers(taken), numbers(made)
    if None in before:
        return max(0, len(before) - len(after) - len(noted)), []
    if None in after:
        return 0, []  # it aggregates several events into new ones, as a window does
    left = Counter(after) + Counter(noted)
    gone = Counter(before) - left
    return gone.total(), [i for i, number in enumerate(before) if number in gone and number not in left]


def _runnable(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document, or a pipeline with its steps if it is a task that doesn't run on its own."""
    if raw["kind"] != "Task" or runs(raw):
        return raw
    spec = raw["spec"]
    stream = spec.get("input")
    source = {"type": "stream", "stream": derive_id(stream)} if stream else SAMPLED
    whole = {"source": source, "processors": spec["processors"], "sinks": [{"id": "output", "type": "drop"}]}
    return {**raw, "kind": "Pipeline", "spec": whole}


SAMPLED = {"type": "file", "path": "samples", "format": "json"}
"""A source that is never read; its columns are those of the samples."""


def _require_steps(flow: Flow, given: Mapping[str, Any]) -> None:
    ids = [part.id for part in flow.processors]
    if unknown := [
        Problem(
            code="unknown_step",
            message=f"there is no step '{step}' to give answers to",
            path=f"given.{step}",
            hint=did_you_mean(step, ids),
        )
        for step in given
        if step not in ids
    ]:
        raise Invalid(*unknown)


def _needs_answer(part: Part[Processor]) -> Problem:
    return part.place.locate(
        Problem(
            code="needs_answer",
            message=f"the step '{part.id}' calls an external system, which test runs don't do",
            hint=f"provide the answer: given: {{{part.id}: …}}",
        )
    )
