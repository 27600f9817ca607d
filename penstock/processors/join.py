"""The `join` step."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.frames.hidden import EVENT, NOTE, TIME, visible
from penstock.frames.known import event_from
from penstock.frames.logs import place_of
from penstock.frames.noting import noted, shown
from penstock.frames.site import Site, reader_of
from penstock.frames.streams.read import columns_of, read_stream
from penstock.processors.base import FrameProcessor, Stage
from penstock.processors.support.event_time import LATEST, SYSTEM, TIME_FIELD, passed_by, timed
from penstock.processors.support.keys import comparable
from penstock.specs.durations import DurationText, SpanText, parse_duration
from penstock.specs.positions import PositionText
from penstock.sql.joins import join_condition
from penstock.sql.names import case_sensitive, find, leaf_type, paths, quote, same
from penstock.sql.problems import unknown_column
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

OTHER_TIME = "$other_time"
LATE = "$late."
"""Before the name of a step: how many events of the other stream were late is observed under it."""


class JoinProcessor(FrameProcessor):
    """Joins events with the matching events of another stream that are close in time.

    Two events belong together if the columns that `on` names are equal, or if the SQL condition there is
    true, and if they are no further apart than `within`. In the condition the columns of the other stream are
    fields of a struct that is called like the stream, or as `into` says; the result has that struct as its
    last column. An event with several partners comes out once for each. With `kind: left` one without a
    partner comes out alone, once it is certain that none will come: when the latest times in both streams are
    past it by twice `within` and `allowed_lateness`. While one of the two streams is silent that is not
    certain.

    An event is late if one that was read before it from the same stream is later by more than `within` and
    `allowed_lateness`. It is left out and counted. This is decided event by event, in the order of each
    stream, so it does not matter how events are cut into batches. In a test run the events of the other
    stream are those given.
    """

    example: ClassVar[str] = """\
type: join
stream: payments
on: {id: order_id}
within: 1h
kind: left
"""

    type: Literal["join"] = "join"
    stream: str = Field(min_length=1, description="Id of the other Stream.")
    position: PositionText = Field(
        default="earliest",
        description="Start position in the other stream: earliest, latest, offset:N or time:ISO 8601.",
    )
    on: list[str] | dict[str, str] | str = Field(
        min_length=1,
        description="Columns that both streams have; or column → column of the other stream; or an SQL "
        "condition such as `id = payments.order_id AND payments.amount > 0`.",
    )
    within: SpanText = Field(description="Maximum time between two matching events, such as 10m.")
    kind: Literal["inner", "left"] = Field(
        default="inner", description="`inner` drops an event without a match; `left` keeps it with NULL."
    )
    into: str | None = Field(
        default=None, min_length=1, description="Name of the struct. Default: the id of the stream."
    )
    time: str = Field(default=SYSTEM, min_length=1, description=TIME_FIELD)
    stream_time: str = Field(
        default=SYSTEM, min_length=1, description="Time column of the other stream, as `time`."
    )
    allowed_lateness: DurationText = Field(default="0s", description="How long to wait for late events.")

    stateful: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    network: ClassVar[bool] = True

    def state_of(self) -> dict[str, Any]:
        fields = ("stream", "on", "within", "kind", "time", "stream_time")
        return {name: getattr(self, name) for name in fields}

    def reads(self, site: Site) -> StreamPlace:
        return place_of(site, self.stream, field="stream")

    def delay_ms(self) -> int:
        # Spark counts what is as old as the watermark as late.
        return self._slack_ms + 1

    @property
    def _slack_ms(self) -> int:
        return parse_duration(self.within) + parse_duration(self.allowed_lateness)

    def open_ms(self) -> int:
        return parse_duration(self.within) + self.delay_ms() + 1

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that have a time and are not late."""
        from pyspark.sql import functions as f

        df = timed(df, stage, self.time)
        time = f.col(quote(TIME))
        message = f.lit("matching events are already forgotten")
        late = noted(df, stage.step, "late", message, kind="late", with_row=stage.testing)
        note = f.when(time.isNull(), noted(df, stage.step, "no_time", f.lit(f"'{self.time}' is NULL")))
        return df.withColumn(NOTE, note.when(self._is_late(), late))

    def _is_late(self) -> Column:
        from pyspark.sql import functions as f

        return passed_by(self._slack_ms + 1, f.unix_millis(quote(TIME)))

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events with their partners."""
        from pyspark.sql import functions as f

        place = self.reads(stage.site)
        name = self.into or place.id
        columns = visible(df.columns)
        if same(name, case_sensitive(df)) in [same(column, case_sensitive(df)) for column in columns]:
            message = f"the event already has a column '{name}'"
            hint = "rename the struct with 'into'"
            raise Invalid(Problem(code="duplicate_column", message=message, path="into", hint=hint))
        other = self._other(df, place, stage)
        matching = self._condition(shown(df), shown(other).select(f.struct("*").alias(name)), name)
        struct = f.struct(*map(f.col, map(quote, visible(other.columns)))).alias(name)
        other = self._in_time(
            timed(other, stage, self.stream_time, field="stream_time", observed=f"{LATEST}.{stage.step}"),
            stage,
        )
        other = other.select(struct, f.col(quote(TIME)).alias(OTHER_TIME))
        apart = f.expr(f"INTERVAL '{parse_duration(self.within) / 1000:.3f}' SECOND")
        at, other_at = f.col(quote(TIME)), f.col(quote(OTHER_TIME))
        near = (other_at >= at - apart) & (other_at <= at + apart)
        joined = df.join(other, matching & near, self.kind)
        return joined.select(*map(quote, columns), quote(name), quote(EVENT))

    def _in_time(self, other: DataFrame, stage: Stage) -> DataFrame:
        """The events of the other stream that have a time and are not late; the others are counted."""
        from pyspark.sql import functions as f

        late = self._is_late() | f.col(quote(TIME)).isNull()
        if other.isStreaming:
            other = other.observe(f"{LATE}{stage.step}", f.count_if(late).alias("late"))
        return other.filter(~late)

    def _other(self, df: DataFrame, place: StreamPlace, stage: Stage) -> DataFrame:
        """The events of the other stream, with `$event`."""
        spark = df.sparkSession
        if not df.isStreaming:
            return _given(spark, columns_of(spark, place), stage.given or [])
        site = replace(stage.site, flow=reader_of(stage.site, stage.step))
        return read_stream(spark, stage.batch, site, place, self.position, "skip", metadata=False)

    def _condition(self, left: DataFrame, right: DataFrame, name: str) -> Column:
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        if isinstance(self.on, str):
            return join_condition(left, right, self.on, field="on")
        pairs = self.on.items() if isinstance(self.on, dict) else [(key, key) for key in self.on]
        struct = right.schema[name].dataType
        assert isinstance(struct, StructType)
        problems, equal = [], []
        for i, (own, foreign) in enumerate(pairs):
            path = f"on.{own}" if isinstance(self.on, dict) else f"on[{i}]"
            one, other = (
                find(schema, text, case_sensitive(left))
                for schema, text in ((left.schema, own), (struct, foreign))
            )
            if one is None or other is None:
                text, schema = (own, left.schema) if one is None else (foreign, struct)
                problems.append(_at(path, unknown_column(text, list(paths(schema)))))
                continue
            kinds = leaf_type(left.schema, one), leaf_type(struct, other)
            if not _same_kind(*kinds):
                problems.append(_at(path, _unequal(own, foreign, *kinds)))
            equal.append(f.col(quote(*one)) == f.col(quote(name, *other)))
        if problems:
            raise Invalid(*problems)
        return reduce(and_, equal)


def _given(spark: SparkSession, schema: StructType, events: list[Any]) -> DataFrame:
    """Events that were written down for a test run; a text is the value of a raw one."""
    from pyspark.sql import functions as f

    rows = [event if isinstance(event, dict) else {"value": event} for event in events]
    texts = spark.createDataFrame([(json.dumps(row),) for row in rows], "value STRING")
    read = texts.select(f.from_json("value", schema, {"mode": "FAILFAST"}).alias("event"))
    return read.select("event.*", event_from().alias(EVENT))


def _same_kind(one: DataType, other: DataType) -> bool:
    """Whether values can be equal without a conversion that may fail."""
    from pyspark.sql.types import NumericType

    if isinstance(one, NumericType) and isinstance(other, NumericType):
        return True
    return one == other and comparable(one)


def _unequal(own: str, foreign: str, one: DataType, other: DataType) -> Problem:
    message = (
        f"'{own}' is {one.simpleString()} and '{foreign}' is {other.simpleString()}: they can't be compared"
    )
    return Problem(code="sql_type", message=message, hint="convert one of them in an earlier map step")


def _at(path: str, problem: Problem) -> Problem:
    return problem.model_copy(update={"path": path})
