"""Processors as frames: each step is planned on the output of the previous one, with notes for failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from penstock.engine.letters.notes import Watch
from penstock.engine.plan.flow import Flow, Part
from penstock.engine.plan.python_steps import Cut, Limits, PythonStep, PythonSteps
from penstock.errors import Invalid
from penstock.frames.hidden import EVENT, EVENT_TYPE, NOTE, NOTE_TYPE
from penstock.frames.known import event_from
from penstock.frames.noting import note, shown_schema
from penstock.processors.base import BatchProcessor, FrameProcessor, Processor, RowProcessor, Stage
from penstock.sql.carry import FAILED, carry
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

SQL_FAILED = "sql_failed"


@dataclass(frozen=True)
class Step:
    """One or more adjacent processors as a frame."""

    parts: tuple[Part[Processor], ...]
    columns: tuple[StructType, ...]
    """The visible columns after each processor."""
    noted: DataFrame
    """The output with notes."""
    frame: DataFrame
    """The events for the next step."""

    @property
    def id(self) -> str:
        """The name of the step's figures."""
        return self.parts[-1].id


def with_event(df: DataFrame) -> DataFrame:
    """The frame with the hidden column, whose fields are all NULL if the source has no metadata."""
    return df if EVENT in df.columns else df.withColumn(EVENT, event_from())


def make_steps(
    flow: Flow,
    df: DataFrame,
    watch: Watch | None = None,
    *,
    first: int = 0,
    testing: bool = False,
    given: Mapping[str, Any] | None = None,
) -> Iterator[Step]:
    """The steps of a flow from the `first` processor on, on a frame with the hidden column.

    Raises `Invalid` with paths in the document. In a test run each processor is a separate step.
    """
    maker = _Maker(flow, watch, testing, given or {})
    parts = flow.processors[first:]
    for in_python, group in groupby(parts, lambda part: isinstance(part.component, BatchProcessor)):
        together = list(group)
        for some in [together] if in_python and not testing else [[part] for part in together]:
            step = maker.step(df, some)
            yield step
            df = step.frame


class _Maker:
    def __init__(self, flow: Flow, watch: Watch | None, testing: bool, given: Mapping[str, Any]) -> None:
        self.flow, self.watch, self.testing, self.given = flow, watch, testing, given

    def step(self, df: DataFrame, parts: list[Part[Processor]]) -> Step:
        for part in parts:
            if refused := list(self.flow.site.policy.problems(part.component)):
                raise Invalid(*map(part.place.locate, refused))
        if isinstance(parts[0].component, BatchProcessor):
            columns, noted = self.in_python(df, parts)
        else:
            noted = self.in_spark(df, parts[0])
            columns = [shown_schema(noted)]
        return Step(tuple(parts), tuple(columns), noted, cleared(noted, parts[-1].id, self.watch))

    def in_spark(self, df: DataFrame, part: Part[Processor]) -> DataFrame:
        processor = part.component
        try:
            if isinstance(processor, RowProcessor):
                return _noted(carry(df, EVENT, processor.apply), part.id)
            assert isinstance(processor, FrameProcessor)
            return self.over_frame(df, processor, self.stage(part))
        except Invalid as error:
            raise Invalid(*map(part.place.locate, error.problems)) from None

    def over_frame(self, df: DataFrame, processor: FrameProcessor, stage: Stage) -> DataFrame:
        early = []
        for prepare in (processor.sift, processor.prepare):
            df = prepare(df, stage)
            if NOTE in df.columns:
                early.append(df)
                df = cleared(df, None, self.watch)
        made = processor.apply(df, stage)
        for noted in early if self.testing else ():  # there is no watch: notes must be visible after the step
            notes = noted.filter(f.col(quote(NOTE)).isNotNull()).select(quote(NOTE))
            made = made.unionByName(notes, allowMissingColumns=True)
        return made

    def in_python(self, df: DataFrame, parts: list[Part[Processor]]) -> tuple[list[StructType], DataFrame]:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        shown = shown_schema(df)
        event, hidden = _hidden(df.sparkSession)
        columns, steps = [], []
        for part in parts:
            processor = part.component
            assert isinstance(processor, BatchProcessor)
            try:
                shown = processor.output(shown, self.stage(part))
            except Invalid as error:
                raise Invalid(*map(part.place.locate, error.problems)) from None
            columns.append(shown)
            arrow = to_arrow_schema(StructType([*_nullable(shown), event]), timezone="UTC")
            steps.append(PythonStep(part.id, processor, arrow, self.given.get(part.id)))
        arrow_note = to_arrow_schema(StructType([hidden]), timezone="UTC").field(0)
        site, cut = self.flow.site, self.cut(parts[0])
        limits = Limits(self.flow.batch.max_events, self.flow.batch.max_bytes)
        work = PythonSteps(
            site.flow, steps, arrow_note, cut, limits=limits, policy=site.policy, testing=self.testing
        )
        return columns, df.mapInArrow(work, StructType([*_nullable(shown), event, hidden]))

    def cut(self, part: Part[Processor]) -> Cut:
        """How to form the batches of a Python step: as in the stream, unless an earlier step moves events."""
        before = self.flow.processors[: self.flow.processors.index(part)]
        if any(each.component.stateful for each in before):
            return "partition"
        return "offset" if self.flow.by_offset and not self.testing else "limits"

    def stage(self, part: Part[Processor]) -> Stage:
        flow = self.flow
        finite = "availableNow" in flow.source.component.trigger(flow.batch)
        sinks = tuple(sink.id for sink in flow.sinks)
        given = self.given.get(part.id)
        return Stage(
            part.id, flow.site, flow.batch, sinks, finite, self.testing, given, delay_ms=flow.delay_ms
        )


def cleared(noted: DataFrame, name: str | None, watch: Watch | None) -> DataFrame:
    """The events without notes; `watch` counts them under a name, if given, and spools the notes."""
    if watch is None:
        return noted.filter(f.col(quote(NOTE)).isNull()).drop(NOTE) if NOTE in noted.columns else noted
    events = watch.events(noted) if NOTE in noted.columns else noted
    return events if name is None else watch.figures(events, name, [f.count(f.lit(1)).alias("given")])


def _noted(df: DataFrame, step: str) -> DataFrame:
    """Convert the failures of a row-by-row step to notes."""
    if FAILED not in df.columns:
        return df
    failed = f.col(quote(FAILED))
    made = note("fault", step, SQL_FAILED, row=failed, event=f.col(quote(EVENT)))
    return df.withColumn(NOTE, f.when(failed.isNotNull(), made)).drop(FAILED)


def _hidden(spark: SparkSession) -> list[StructField]:
    """The fields of the hidden columns."""
    columns = {EVENT: EVENT_TYPE, NOTE: NOTE_TYPE}
    empty = spark.range(0).select(*(f.lit(None).cast(kind).alias(name) for name, kind in columns.items()))
    return list(empty.schema.fields)


def _nullable(schema: StructType) -> list[StructField]:
    """The fields of a schema, all nullable: a row with a note has none of them."""
    from pyspark.sql.types import StructField

    return [StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
