"""The `dedupe` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.processors.base import NOTE, FrameProcessor, Stage
from penstock.processors.event_time import SYSTEM, TIME, TIME_FIELD, time_column, timed
from penstock.processors.keys import key_columns
from penstock.processors.noting import noted
from penstock.specs.durations import SpanText, parse_duration
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEPT, ROW = "$kept", "$row"


class DedupeProcessor(FrameProcessor):
    """Lets the first of several events with the same keys pass, if they are no further apart than `within`.

    Two that are further apart both pass, unless they come so close after each other that the first is still
    remembered. What has to be remembered is bounded: a key is forgotten when the latest time of all events so
    far is past its first event by twice `within`. An event that is older than the latest one by more than
    `within` can not be judged any more and is left out. What is left out is counted. An event without a time
    goes to the dead letters.
    """

    example: ClassVar[str] = """\
type: dedupe
keys: [order_id]
within: 1h
time: at
"""

    type: Literal["dedupe"] = "dedupe"
    keys: list[str] = Field(min_length=1, description="Columns by which two events are the same.")
    within: SpanText = Field(description="How far apart two such events may be, such as 10m.")
    time: str = Field(default=SYSTEM, min_length=1, description=TIME_FIELD)

    stateful: ClassVar[bool] = True

    def state_of(self) -> dict[str, Any]:
        return {"keys": self.keys, "time": self.time}

    def open_ms(self) -> int:
        return parse_duration(self.within)  # by so much the watermark stays behind the events

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that have a time."""
        from pyspark.sql import functions as f

        time = time_column(df, self.time)
        note = f.when(time.isNull(), noted(df, stage.step, "no_time", f.lit(f"'{self.time}' is NULL")))
        return df.withColumn(NOTE, note)

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events without those that came before."""
        within = parse_duration(self.within)
        keys = key_columns(df, self.keys)
        names = {f"$key{i}": column for i, column in enumerate(keys.values())}
        timed_df, time = timed(df, stage, self.time, within)
        timed_df = timed_df.withColumns(names)
        if not df.isStreaming:
            return _first(timed_df, list(names), time, within).select(*map(quote, df.columns))
        return timed_df.dropDuplicatesWithinWatermark(list(names)).drop(*names, TIME)


def _first(df: DataFrame, keys: list[str], time: str, within_ms: int) -> DataFrame:
    """The same for events that have an end: Spark's own way is for streams only."""
    from pyspark.sql import functions as f

    columns = [f.col(quote(name)) for name in df.columns]
    at = f.unix_micros(quote(time)).alias("at")
    rows = f.collect_list(f.struct(at, f.struct(*columns).alias("row")))
    ordered = f.array_sort(rows, lambda a, b: f.signum(a["at"] - b["at"]).cast("int"))

    def judged(kept: Column, row: Column) -> Column:
        near = row["at"] < f.element_at(kept, -1)["at"] + f.lit(within_ms * 1000)
        return f.when(f.size(kept) == 0, f.array(row)).when(near, kept).otherwise(f.array_append(kept, row))

    grouped = df.groupBy(*map(quote, keys)).agg(ordered.alias(ROW))
    nothing = f.filter(quote(ROW), lambda _: f.lit(False))
    kept = grouped.select(f.explode(f.aggregate(quote(ROW), nothing, judged)).alias(KEPT))
    return kept.orderBy(quote(KEPT, "at")).select(quote(KEPT, "row") + ".*")
