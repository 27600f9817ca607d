"""Planning: converts a flow to DataFrames, for running, validating and testing it.

Every frame has the visible columns and `$event`; see `penstock.processors.base`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from penstock.connectors.base import Sink
from penstock.engine.letters.notes import SOURCE, StreamWatch, Watch
from penstock.engine.plan.flow import Flow, Part
from penstock.engine.plan.python_steps import CHUNK
from penstock.engine.plan.reach import out_of_reach
from penstock.engine.plan.steps import Step, cleared, make_steps, with_event
from penstock.errors import Invalid, PenstockError, Problem
from penstock.frames.faults import fault_text
from penstock.frames.hidden import EVENT, NOTE
from penstock.frames.noting import noted, shown, shown_schema
from penstock.sql.frames import condition
from penstock.sql.names import quote
from penstock.sql.tries import tried

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

OUTPUTS = "outputs"
"""Used in place of a step's id for the conditions of a task's outputs."""

COLLECTED_EVENTS = 100_000
"""Events per Arrow batch that a task sends to the driver: many small batches cost more to create and join."""

LOST_EVENT = fault_text("lost_event", "a step has lost the hidden column of an event, which has its sinks")


@dataclass(frozen=True)
class Judged:
    """The output of the last step, with and without events on which a sink's condition fails."""

    noted: DataFrame
    frame: DataFrame


@dataclass(frozen=True)
class Plan:
    """A flow with its frames: the input, then the output of each step."""

    flow: Flow
    input: DataFrame
    steps: list[Step]
    conditions: dict[str, Column]
    """The conditions by sink. Sinks without a condition get all events."""
    judged: Judged | None = None
    """The events that the conditions apply to, if there are any conditions."""
    routed: bool = True
    """Whether a step may have chosen the sinks of an event."""

    @property
    def output(self) -> DataFrame:
        """The frame that the sinks get."""
        if self.judged is not None:
            return self.judged.frame
        return self.steps[-1].frame if self.steps else self.input

    @property
    def columns(self) -> list[tuple[str, StructType]]:
        """The visible columns after the source and after each processor."""
        after = [
            (part.id, found)
            for step in self.steps
            for part, found in zip(step.parts, step.columns, strict=True)
        ]
        return [("source", shown_schema(self.input)), *after]

    @property
    def only_sink(self) -> Part[Sink] | None:
        """The only sink, if there is just one and the query itself can convert events to its shape."""
        sinks = self.flow.sinks
        return sinks[0] if len(sinks) == 1 and sinks[0].component.by_row else None

    @cached_property
    def delivered(self) -> DataFrame:
        """The frame that the query computes: the output, in the shape of `only_sink` if there is one."""
        only = self.only_sink
        return self.output if only is None else self.shaped(self.output, only)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns of the frame that the query computes."""
        return arrow_of(self.delivered)

    @cached_property
    def task_writer(self) -> Any:
        """The Java function with which `only_sink` writes in the tasks; None if it has none."""
        only = self.only_sink
        if only is None:
            return None
        return only.component.task_writer(self.input.sparkSession, self.arrow, self.flow.site)

    def shaped(self, df: DataFrame, sink: Part[Sink]) -> DataFrame:
        """The rows of an output frame that are routed to a sink, in the shape of the sink."""
        return sink.component.shape(self.chosen(df, sink), self.flow.site)

    def chosen(self, df: DataFrame, sink: Part[Sink]) -> DataFrame:
        """The rows of an output frame that are routed to a sink."""
        if sink.id in self.conditions:
            df = df.filter(self.conditions[sink.id])
        if not self.routed:
            return df if sink.component.meta else df.drop(EVENT)
        event, only = f.col(quote(EVENT)), f.col(quote(EVENT, "sinks"))
        # NULL sinks mean all sinks. The sinks of a NULL struct are NULL too, and must not mean all sinks.
        lost = f.raise_error(f.lit(LOST_EVENT))
        chosen = only.isNull() | f.array_contains(only, sink.id)
        df = df.filter(f.when(event.isNull(), lost).otherwise(chosen))
        return df if sink.component.meta else df.drop(EVENT)


def plan_run(flow: Flow, spark: SparkSession) -> Plan:
    """Plan a flow for a run, in a separate session, isolated from settings and views of other flows."""
    _require_source(flow)
    session = spark.newSession()
    # Without a Python step, only the driver gets Arrow batches. Batches of a stream are limited in bytes.
    most = max(flow.batch.max_events, COLLECTED_EVENTS)
    if flow.in_python:
        most = flow.batch.max_events if flow.by_offset else CHUNK
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(most))
    if flow.by_offset or flow.in_python:
        # Otherwise Spark would compute the size of all columns at each event, which takes quadratic time for
        # nested columns; only this value prevents that.
        session.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))
    return plan_flow(flow, session)


def _require_source(flow: Flow) -> None:
    """Check the source against the policy; a source with a receiver is checked on each connection."""
    if not flow.source.component.held:
        try:
            flow.site.policy.require(flow.source.component)
        except Invalid as error:
            raise Invalid(*map(flow.source.place.locate, error.problems)) from None


def plan_flow(flow: Flow, spark: SparkSession) -> Plan:
    """Plan a flow in a given session, without running it; raises `Invalid` with the errors found by Spark."""
    if unseen := list(out_of_reach(flow, spark)):
        raise Invalid(*unseen)
    flow = pinned(flow, spark)
    try:
        df = flow.source.component.read(spark, flow.batch, flow.site)
    except PenstockError as error:
        raise type(error)(*map(flow.source.place.locate, error.problems)) from None
    watch = StreamWatch(counted_outside(flow))
    plan = plan_frame(flow, cleared(with_event(df), SOURCE, watch), watch)
    return replace(plan, routed=_routed(flow))


def arrow_of(df: DataFrame) -> pa.Schema:
    """The Arrow schema with which Spark collects a frame."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(df.schema, timezone="UTC")


def counted_outside(flow: Flow) -> set[str]:
    """The names of figures that need not be observed: their counts follow from offsets or the only sink."""
    found = {SOURCE} if flow.by_offset else set()
    only = flow.sinks[0] if len(flow.sinks) == 1 else None
    whole = only is not None and only.component.takes == "table" and only.component.by_row
    if only is not None and whole and only.when is None and flow.processors and not _routed(flow):
        found.add(flow.processors[-1].id)
    return found


def _routed(flow: Flow) -> bool:
    return any(part.component.routes for part in flow.processors)


def plan_frame(flow: Flow, df: DataFrame, watch: Watch | None, *, first: int = 0) -> Plan:
    """Plan the processors of a flow from number `first` on, and its sinks, on a frame with `$event`."""
    steps = list(make_steps(flow, df, watch, first=first))
    last = steps[-1].frame if steps else df
    conditions = _conditions(flow, last)
    judged = _judged(last, conditions, watch) if conditions else None
    return Plan(flow, df, steps, conditions, judged)


def _judged(df: DataFrame, conditions: dict[str, Column], watch: Watch | None) -> Judged:
    raising = [f.when(tried(df, c.alias("0")).isNull(), f.lit(sink)) for sink, c in conditions.items()]
    names = f.concat_ws(", ", *raising)
    message = f.concat(f.lit("the condition of this output failed on the event: "), names)
    note = f.when(names != "", noted(df, OUTPUTS, "condition_failed", message))
    found = df.withColumn(NOTE, note)
    return Judged(found, cleared(found, OUTPUTS, watch))


def require_fitting_sinks(flow: Flow, schema: StructType) -> None:
    """Raise `Invalid` if a sink of a flow cannot accept these visible columns; ignores conditions."""
    problems = [
        sink.place.locate(problem)
        for sink in flow.sinks
        for problem in sink.component.check(schema, flow.site)
    ]
    if problems:
        raise Invalid(*problems)


def pinned(flow: Flow, spark: SparkSession) -> Flow:
    """The flow with the inferred settings of its source made explicit."""
    found, policy = flow.source.component, flow.site.policy
    try:
        # Without a schema, it is read from the source.
        policy.require(found, resolve=getattr(found, "schema_", None) is None)
        source = found.pinned(spark, flow.site)
    except PenstockError as error:
        raise type(error)(*map(flow.source.place.locate, error.problems)) from None
    return replace(flow, source=replace(flow.source, component=source))


def _conditions(flow: Flow, df: DataFrame) -> dict[str, Column]:
    """The condition of each sink that has one; raises `Invalid` if a sink cannot accept the columns."""
    problems: list[Problem] = []
    conditions: dict[str, Column] = {}
    schema = shown_schema(df)
    for sink in flow.sinks:
        found = list(sink.component.check(schema, flow.site))
        if sink.when is not None:
            try:
                conditions[sink.id] = condition(shown(df), sink.when, field="when")
            except Invalid as error:
                found += error.problems
        problems += map(sink.place.locate, found)
    if problems:
        raise Invalid(*problems)
    return conditions
