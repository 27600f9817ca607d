"""Event times, reading order and the watermark, shared by steps that keep state.

Whether an event is late is decided event by event, in the order in which the events were read: by the latest
time of all events before it. So batch boundaries do not affect the result. Spark's own watermark advances
only between micro-batches, so it is never ahead of that time: it closes windows and evicts state, but drops
nothing.

A flow has one watermark. Spark sets it at the first step that keeps state; later steps use the same one, over
a column that has kept its mark: the time column of the first step, or the `window_end` of a window.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.errors import Invalid, Problem
from penstock.frames.hidden import EVENT, TIME
from penstock.frames.known import event_from
from penstock.frames.noting import shown_schema
from penstock.processors.base import Stage
from penstock.processors.support.reading_order import NUMBER, shuffled_in_order
from penstock.spark.catalyst import has_watermark
from penstock.sql.names import case_sensitive, find, quote
from penstock.sql.problems import unknown_column

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

SYSTEM = "system"
"""Instead of a column: the time when an event was appended to its stream or, without one, was read."""

TIME_FIELD = (
    "Event time: a TIMESTAMP column, or `system`: when the event was appended to its stream or, for other "
    "sources, when it was read."
)

TICK, PARTITION, JUDGED, PLACE, BEFORE = "$tick", "$partition", "$judged", "$place", "$before"
LATEST = "$latest"
"""The name under which the latest time of a flow's events is observed."""

DELAY = "spark.watermarkDelayMs"
"""Spark's own mark on a column with a watermark. Inside a step only `$time` has it: Spark allows one."""

TIMED = "penstock.timed"
"""Our mark, with the same delay, on the visible column: later steps use it."""

ENDS = "penstock.ends"
"""Our mark on a column with the end of a window, which is exclusive."""

LATEST_SO_FAR = "penstock.latest"
"""The local property with the latest time of all events in earlier batches, by name, as JSON."""


Division = Callable[["DataFrame"], tuple["DataFrame", Sequence[str]]]
"""Adds columns to a frame with `$time`, and names the columns by which its events are partitioned."""


def _evenly(df: DataFrame) -> tuple[DataFrame, Sequence[str]]:
    return df, ()


def time_column(df: DataFrame, time: str, *, field: str = "time") -> Column:
    """The time of an event; raises `Invalid` if there is no such column."""
    from pyspark.sql import functions as f

    if time == SYSTEM:
        return f.coalesce(f.col(quote(EVENT, "time")), f.current_timestamp())
    found = _field(df, time, field)
    column = f.col(quote(found.name))
    return column - f.expr("INTERVAL 1 MICROSECOND") if ENDS in found.metadata else column


def _field(df: DataFrame, time: str, field: str) -> StructField:
    from pyspark.sql.types import TimestampType

    schema = shown_schema(df)
    path = find(schema, time, case_sensitive(df))
    if path is None or len(path) > 1:
        missing = unknown_column(time, schema.names)
        raise Invalid(missing.model_copy(update={"path": field}))
    found = schema[path[0]]
    if not isinstance(found.dataType, TimestampType):
        message = f"column '{time}' is {found.dataType.simpleString()}, not timestamp"
        hint = f"convert it in an earlier map step with set: {{{time}: to_timestamp({time})}}"
        raise Invalid(Problem(code="sql_type", message=message, path=field, hint=hint))
    return found


def timed(
    df: DataFrame,
    stage: Stage,
    time: str,
    *,
    field: str = "time",
    observed: str = LATEST,
    divided: Division = _evenly,
) -> DataFrame:
    """The frame with a watermark: with the hidden column `$time`, and with `place` and `latest` in `$event`.

    The watermark is that of an earlier step, if there is one. Otherwise the ticks of the clock are added
    here: they advance the watermark, and go no further. Events are then `divided` among the tasks.
    """
    from pyspark.sql import functions as f

    from penstock.processors.support.ticker import IDLE_MS, ticks
    from penstock.processors.support.ticker import TIME as TICK_TIME

    column = time_column(df, time, field=field)
    if _is_timed(df):
        return df.withColumn(TIME, column.alias(TIME, metadata=_own_mark(df, _delay(df, time, field))))
    name = TIME if time == SYSTEM else _field(df, time, field).name
    df = df.withColumn(TIME, column) if time == SYSTEM else df
    at = f.col(quote(name))
    if not df.isStreaming:
        return _placed(_marked(df, name, stage.delay_ms), observed=observed)
    behind = stage.batch.max_ms + IDLE_MS
    clock = ticks(df.sparkSession, stage.site.state, system=time == SYSTEM, behind_ms=behind)
    # `$event` is not NULL in a tick either: else Spark would carry it through shuffles to check for NULL.
    known = {name: f.col(TICK_TIME), EVENT: event_from()}
    nothing = [
        known.get(each.name, f.lit(None).cast(each.dataType)).alias(each.name) for each in df.schema.fields
    ]
    both = df.withColumn(TICK, f.lit(False)).union(clock.select(*nothing, f.lit(True).alias(TICK)))
    marked = both.withWatermark(quote(name), f"{stage.delay_ms} milliseconds")
    # A condition that names the time stays above the watermark; Spark would push any other below it, and the
    # ticks would advance nothing.
    real = ~f.col(quote(TICK)) | (at < f.lit("0001-01-01").cast("timestamp"))
    # Spark also infers conditions, such as that the key of a join is not NULL, but in a tick it is NULL.
    # Spark pushes none of them below an observation.
    latest = f.max(f.unix_millis(at)).alias("latest")
    events = marked.filter(real).drop(TICK).observe(observed, latest)
    return _placed(*divided(_marked(events, name, stage.delay_ms)), observed=observed)


def _marked(df: DataFrame, name: str, delay_ms: int) -> DataFrame:
    """The frame with `$time`, the only column with Spark's mark, next to the column that it comes from."""
    from pyspark.sql import functions as f

    at = f.col(quote(name))
    df = df.withColumn(TIME, at.alias(TIME, metadata=_own_mark(df, delay_ms)))
    return df if name == TIME else df.withColumn(name, at.alias(name, metadata={TIMED: delay_ms}))


def _own_mark(df: DataFrame, delay_ms: int) -> dict[str, int]:
    return {DELAY if df.isStreaming else TIMED: delay_ms}


def _placed(df: DataFrame, by: Sequence[str] = (), *, observed: str) -> DataFrame:
    """The events, each with its place and the latest time before it."""
    from pyspark.sql import functions as f

    event, time = f.col(quote(EVENT)), f.unix_millis(quote(TIME))
    offset, given = event.getField("offset"), event.getField("place")
    if df.isStreaming:
        judged, place, latest = shuffled_in_order(df, offset, given, time, observed, by)
        judged = judged.withColumn(PLACE, place).withColumn(BEFORE, latest)
    else:  # the few events of a test run: one task processes all of them
        read = df.withColumn(PARTITION, f.spark_partition_id()).repartition(1)
        judged = read.withColumn(
            JUDGED, _judge(observed)(f.coalesce(given, offset), f.col(quote(PARTITION)), time)
        )
        found = f.col(quote(JUDGED))
        judged = judged.withColumn(PLACE, found.getField("place"))
        judged = judged.withColumn(BEFORE, found.getField("latest"))
    event = event.withField("place", f.col(quote(PLACE))).withField("latest", f.col(quote(BEFORE)))
    return judged.withColumn(EVENT, event).drop(PARTITION, JUDGED, NUMBER, PLACE, BEFORE)


def passed_by(delay_ms: int, end: Column) -> Column:
    """Whether the latest time was past `end`, in milliseconds, by `delay_ms` when an event was read."""
    from pyspark.sql import functions as f

    latest = f.col(quote(EVENT, "latest"))
    return f.coalesce(end + f.lit(delay_ms) <= latest, f.lit(False))


def _is_timed(df: DataFrame) -> bool:
    """Whether an earlier step has set the watermark."""
    if not df.isStreaming:
        return any(TIMED in each.metadata for each in df.schema.fields)
    return has_watermark(df)


def _delay(df: DataFrame, time: str, field: str) -> int:
    """The delay of the watermark on a time column; raises `Invalid` if no earlier step has marked it."""
    marked = [each.name for each in shown_schema(df).fields if TIMED in each.metadata]
    found = None if time == SYSTEM else _field(df, time, field)
    if found is None or found.name not in marked:
        message = "an earlier step keeps state too, and both must use the same time column"
        hint = f"time: {marked[0]}" if marked else "keep its time column, or its window_end, up to here"
        raise Invalid(Problem(code="second_watermark", message=message, path=field, hint=hint))
    return int(found.metadata[TIMED])


def end_marks(df: DataFrame) -> dict[str, Any]:
    """The marks of a column with the ends of windows over `$time`."""
    metadata = df.schema[TIME].metadata
    return {ENDS: True, TIMED: metadata[DELAY if df.isStreaming else TIMED]}


@cache
def _judge(observed: str) -> Any:
    """A Spark function over the offset, the partition and the time of each event.

    It returns the place of the event and the latest time before it. It keeps these numbers for a whole
    micro-batch in memory: partitions arrive in any order, but the events of each arrive in order.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.functions import arrow_udf

    def judged(chunks: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.StructArray]:
        given = list(chunks)
        if not given:
            return
        offsets, partitions, times = (_numbers(pa.chunked_array(c)) for c in zip(*given, strict=True))
        places, latest = in_order(offsets, partitions, times, _so_far(observed))
        columns = [pa.array(places), pa.array(latest, mask=latest == NEVER)]
        found = pa.StructArray.from_arrays(columns, ["place", "latest"])
        first = 0
        for chunk, _, _ in given:
            yield found.slice(first, len(chunk))
            first += len(chunk)

    # Spark infers the kind of function from the types, which it does not find in this module.
    numbers = tuple[pa.Array, pa.Array, pa.Array]
    judged.__annotations__ = {"chunks": Iterator[numbers], "return": Iterator[pa.Array]}
    untyped: Any = arrow_udf
    # Spark would push conditions of later steps below a function that it considers deterministic.
    return untyped(judged, returnType="place BIGINT, latest BIGINT").asNondeterministic()


NEVER = -(2**63)


def in_order(
    offsets: np.ndarray[Any, Any], partitions: np.ndarray[Any, Any], times: np.ndarray[Any, Any], so_far: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Each event's place by offset and partition, and the maximum of `so_far` and the times before it."""
    import numpy as np

    order = np.lexsort((partitions, offsets))  # stable: within a partition events keep their order
    places, latest = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    places[order] = np.arange(len(times))
    latest[order] = np.maximum.accumulate(np.concatenate(([so_far], times[order])))[:-1]
    return places, latest


def _numbers(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    numbers: np.ndarray[Any, Any] = column.cast("int64").fill_null(NEVER).to_numpy()
    return numbers


def _so_far(observed: str) -> int:
    from pyspark import TaskContext

    task = TaskContext.get()
    told = task.getLocalProperty(LATEST_SO_FAR) if task else None
    return int(json.loads(told).get(observed, NEVER)) if told else NEVER
