"""From a flow to DataFrames: the one way for running, validating and testing a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.flow import Flow
from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Plan:
    """A flow with its frames: the input, then the output of each processor."""

    flow: Flow
    input: DataFrame
    steps: list[DataFrame]

    @property
    def output(self) -> DataFrame:
        """What the sinks get."""
        return self.steps[-1] if self.steps else self.input


def plan_flow(flow: Flow, spark: SparkSession) -> Plan:
    """Plan a flow in a session of its own. Runs nothing; raises `Invalid` with what Spark finds wrong."""
    flow = pinned(flow, spark)
    try:
        df = flow.source.component.read(spark, flow.batch)
    except Invalid as error:
        raise Invalid(*map(flow.source.place.locate, error.problems)) from None
    return Plan(flow, df, _apply(flow, df))


def pinned(flow: Flow, spark: SparkSession) -> Flow:
    """The flow with its source's guesses made explicit."""
    try:
        source = flow.source.component.pinned(spark)
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
    problems: list[Problem] = [
        sink.place.locate(problem) for sink in flow.sinks for problem in sink.component.check(df.schema)
    ]
    if problems:
        raise Invalid(*problems)
    return steps
