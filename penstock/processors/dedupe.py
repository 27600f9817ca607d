"""The `dedupe` step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.frames.hidden import EVENT, NOTE, TIME
from penstock.frames.noting import noted
from penstock.processors.base import FrameProcessor, Stage
from penstock.processors.support.event_time import SYSTEM, TIME_FIELD, passed_by, timed
from penstock.processors.support.keys import key_columns
from penstock.spark.driver import transform_with_state
from penstock.spark.java_classes import java_class
from penstock.specs.durations import SpanText, parse_duration
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

SOURCE = Path(__file__).with_name("java") / "Dedupe.java"

SHARES = 64
"""The number of groups that keys are divided into, by their hash: enough for the tasks of a large flow."""

SHARE, KEY, AT, OFFSET, PLACE = "$share", "$key", "$at", "$offset", "$place"
"""The columns of an event that `Dedupe.java` reads, before the event's own columns."""

GROUP = "penstock_share"
"""The name of the share in the state store, whose keys are written as Avro, which takes no `$` in a name."""


class DedupeProcessor(FrameProcessor):
    """Drops an event if an earlier event with the same keys is at most `within` away.

    Before it means: was read before it, whatever their times. Of a key that repeats all the time, one event
    passes every `within`. An event is late if one that was read before it, with any keys, is later by more
    than `within`: it is left out too, because the events near it may have been forgotten. This is decided
    event by event, so it does not matter how events are cut into batches. What is left out is counted. An
    event without a time goes to the dead letters.
    """

    example: ClassVar[str] = """\
type: dedupe
keys: [order_id]
within: 1h
time: at
"""

    type: Literal["dedupe"] = "dedupe"
    keys: list[str] = Field(min_length=1, description="Columns that identify duplicates.")
    within: SpanText = Field(description="Maximum time between duplicates, such as 10m.")
    time: str = Field(default=SYSTEM, min_length=1, description=TIME_FIELD)

    stateful: ClassVar[bool] = True

    def state_of(self) -> dict[str, Any]:
        return {"keys": self.keys, "time": self.time}

    def delay_ms(self) -> int:
        return parse_duration(self.within) + 1  # Spark counts what is as old as the watermark as late

    def open_ms(self) -> int:
        return self.delay_ms()

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that have a time and are not late."""
        from pyspark.sql import functions as f

        df = timed(df, stage, self.time)
        time = f.col(quote(TIME))
        late = passed_by(parse_duration(self.within) + 1, f.unix_millis(time))
        message = f.lit("events near it may have been forgotten")
        left_out = noted(df, stage.step, "late", message, kind="late", with_row=stage.testing)
        note = f.when(time.isNull(), noted(df, stage.step, "no_time", f.lit(f"'{self.time}' is NULL")))
        return df.withColumn(NOTE, note.when(late, left_out))

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events without those that came before."""
        from pyspark.sql import functions as f

        keys = [_comparable(column, df) for column in key_columns(df, self.keys).values()]
        event = f.col(quote(EVENT))
        needed = {
            SHARE: f.pmod(f.hash(*keys), f.lit(SHARES)),
            KEY: f.struct(*(column.alias(f"key{i}") for i, column in enumerate(keys))),
            AT: f.unix_millis(quote(TIME)),
            OFFSET: event.getField("offset"),
            PLACE: event.getField("place"),
        }
        columns = [value.alias(name) for name, value in needed.items()]
        made = self._deduped(df.select(*columns, *map(quote, df.columns)))
        return made.select(*(_marked(df, name) for name in df.columns if name != TIME))

    def _deduped(self, df: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        made = java_class(df.sparkSession, SOURCE)
        return transform_with_state(
            df,
            f.col(quote(SHARE)).alias(GROUP),
            df.select(f"{quote(KEY)}.*"),
            lambda keys: made(parse_duration(self.within), keys),
            quote(TIME) if df.isStreaming else None,
        )


def _comparable(column: Column, df: DataFrame) -> Column:
    """A key as Spark compares it in a group: the two zeros of a floating-point number are one."""
    from pyspark.sql import functions as f

    kind: DataType = df.select(column).schema[0].dataType
    return (
        f.when(column != 0, column).otherwise(f.lit(0)) if kind.typeName() in ("float", "double") else column
    )


def _marked(df: DataFrame, name: str) -> Column:
    """A column with the marks that it had: what comes out of a class in Java has none."""
    from pyspark.sql import functions as f

    metadata = df.schema[name].metadata
    column = f.col(quote(name))
    return column.alias(name, metadata=metadata) if metadata else column
