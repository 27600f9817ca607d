"""From a flow to DataFrames: the one way for running, validating and testing a pipeline.

Every frame has the visible columns and `$event`; see `penstock.processors.base`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.connectors.base import Sink
from penstock.connectors.faults import fault_text
from penstock.engine.flow import Flow, Part
from penstock.engine.notes import SOURCE, watch
from penstock.engine.steps import Step, Watch, cleared, make_steps, with_event
from penstock.errors import Invalid, Problem
from penstock.processors.base import EVENT
from penstock.processors.noting import shown
from penstock.sql.frames import condition
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

LOST_EVENT = fault_text("lost_event", "a step has lost the hidden column of an event, which has its sinks")


@dataclass(frozen=True)
class Plan:
    """A flow with its frames: the input, then the output of each step."""

    flow: Flow
    input: DataFrame
    steps: list[Step]
    conditions: dict[str, Column]
    """By sink: which events it gets. Others get all."""

    @property
    def output(self) -> DataFrame:
        """What the sinks get."""
        return self.steps[-1].frame if self.steps else self.input

    @property
    def columns(self) -> list[tuple[str, StructType]]:
        """The visible columns after the source and after each processor."""
        after = [
            (part.id, found)
            for step in self.steps
            for part, found in zip(step.parts, step.columns, strict=True)
        ]
        return [("source", shown(self.input).schema), *after]

    def chosen(self, df: DataFrame, sink: Part[Sink]) -> DataFrame:
        """What of a frame with the columns of the output a sink gets."""
        if sink.id in self.conditions:
            df = df.filter(self.conditions[sink.id])
        event, only = f.col(quote(EVENT)), f.col(quote(EVENT, "sinks"))
        # NULL sinks mean all of them, and those of a NULL struct are NULL: it must not pass for a choice.
        lost = f.raise_error(f.lit(LOST_EVENT))
        chosen = only.isNull() | f.array_contains(only, sink.id)
        df = df.filter(f.when(event.isNull(), lost).otherwise(chosen))
        return df if sink.component.meta else df.drop(EVENT)


def plan_run(flow: Flow, spark: SparkSession) -> Plan:
    """Plan a flow that is to run, in a session of its own: it must not see settings and views of others."""
    session = spark.newSession()
    # A batch of a stream is one partition, and steps in Python are to see it whole.
    whole = flow.source.component.reread(session, flow.site, 0, 0) is not None
    most = 2**31 - 1 if whole else flow.batch.max_events
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(most))
    return plan_flow(flow, session)


def plan_flow(flow: Flow, spark: SparkSession) -> Plan:
    """Plan a flow in a session of its own. Runs nothing; raises `Invalid` with what Spark finds wrong."""
    flow = pinned(flow, spark)
    try:
        df = flow.source.component.read(spark, flow.batch, flow.site)
    except Invalid as error:
        raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    return plan_frame(flow, cleared(with_event(df), SOURCE, watch), watch)


def plan_frame(flow: Flow, df: DataFrame, watch: Watch | None, *, first: int = 0) -> Plan:
    """Plan the processors of a flow from the `first` on, and its sinks, over a frame with `$event`."""
    steps = list(make_steps(flow, df, watch, first=first))
    return Plan(flow, df, steps, _conditions(flow, shown(steps[-1].frame if steps else df)))


def pinned(flow: Flow, spark: SparkSession) -> Flow:
    """The flow with its source's guesses made explicit."""
    try:
        source = flow.source.component.pinned(spark, flow.site)
    except Invalid as error:
        raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    return replace(flow, source=replace(flow.source, component=source))


def _conditions(flow: Flow, df: DataFrame) -> dict[str, Column]:
    """The condition of each sink that has one, once all sinks agree with the columns."""
    problems: list[Problem] = []
    conditions: dict[str, Column] = {}
    for sink in flow.sinks:
        found = list(sink.component.check(df.schema, flow.site))
        if sink.when is not None:
            try:
                conditions[sink.id] = condition(df, sink.when, field="when")
            except Invalid as error:
                found += error.problems
        problems += map(sink.place.locate, found)
    if problems:
        raise Invalid(*problems)
    return conditions
