"""From a flow to DataFrames: the one way for running, validating and testing a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.flow import Flow
from penstock.errors import Invalid, Problem
from penstock.sql.frames import condition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Plan:
    """A flow with its frames: the input, then the output of each processor."""

    flow: Flow
    input: DataFrame
    steps: list[DataFrame]
    conditions: dict[str, Column]
    """By sink: which events it gets. Others get all."""

    @property
    def output(self) -> DataFrame:
        """What the sinks get."""
        return self.steps[-1] if self.steps else self.input


def plan_flow(flow: Flow, spark: SparkSession) -> Plan:
    """Plan a flow in a session of its own. Runs nothing; raises `Invalid` with what Spark finds wrong."""
    flow = pinned(flow, spark)
    try:
        df = flow.source.component.read(spark, flow.batch, flow.site)
    except Invalid as error:
        raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    steps = _apply(flow, df)
    return Plan(flow, df, steps, _conditions(flow, steps[-1] if steps else df))


def pinned(flow: Flow, spark: SparkSession) -> Flow:
    """The flow with its source's guesses made explicit."""
    try:
        source = flow.source.component.pinned(spark, flow.site)
    except Invalid as error:
        raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    return replace(flow, source=replace(flow.source, component=source))


def _apply(flow: Flow, df: DataFrame) -> list[DataFrame]:
    steps: list[DataFrame] = []
    for part in flow.processors:
        try:
            df = part.component.apply(df)
        except Invalid as error:
            raise Invalid(*map(part.place.locate, error.problems)) from None
        steps.append(df)
    return steps


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
