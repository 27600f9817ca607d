"""Times of events, and the watermark: what steps that remember events share.

A flow has one watermark. Spark sets it at the first step that remembers; steps after it go by the same, over
a column that has kept its mark: the time column of the first step, or the `window_end` of a window.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.errors import Invalid, Problem
from penstock.processors.base import EVENT, Stage
from penstock.processors.noting import shown_schema
from penstock.sql.names import case_sensitive, find, quote
from penstock.sql.problems import unknown_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

SYSTEM = "system"
"""In place of a column: the time at which an event was appended to its stream, or else was read."""

TIME_FIELD = (
    "The column with the time of an event, of type TIMESTAMP; or `system`: when it was appended to its "
    "stream, or, for a source that is no stream, when it was read."
)

TIME, TICK = "$time", "$tick"
LATEST = "$latest"
"""The name under which the latest time of a flow's events is observed."""

DELAY = "spark.watermarkDelayMs"
"""Spark's own mark on a column that has a watermark."""

ENDS = "penstock.ends"
"""Our mark on a column that tells where a window ends: its last moment is just before."""

WATERMARK = "penstock.watermark"
"""The local property that tells tasks the watermark of their batch, in milliseconds."""


def time_column(df: DataFrame, time: str, *, field: str = "time") -> Column:
    """The time of an event; `Invalid` if there is no such column."""
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
        hint = f"make one before: a map step with set: {{{time}: to_timestamp({time})}}"
        raise Invalid(Problem(code="sql_type", message=message, path=field, hint=hint))
    return found


def timed(
    df: DataFrame, stage: Stage, time: str, delay_ms: int, *, field: str = "time", observed: str = LATEST
) -> tuple[DataFrame, str]:
    """The frame under a watermark, and the name of its time column, which may be an additional one.

    The watermark is that of an earlier step, if there is one. Else the ticks of the clock come in here: they
    move the watermark, and go no further.
    """
    from pyspark.sql import functions as f

    from penstock.processors.ticker import IDLE_MS, ticks
    from penstock.processors.ticker import TIME as TICK_TIME

    column = time_column(df, time, field=field)
    if not df.isStreaming:
        return df.withColumn(TIME, column), TIME
    if _has_watermark(df):
        mark = _mark(df, time, delay_ms, field)
        return df.withColumn(TIME, column.alias(TIME, metadata=mark)), TIME
    name = TIME if time == SYSTEM else _field(df, time, field).name
    df = df.withColumn(TIME, column) if time == SYSTEM else df
    at = f.col(quote(name))
    behind = stage.batch.max_ms + IDLE_MS
    clock = ticks(df.sparkSession, stage.site.state, system=time == SYSTEM, behind_ms=behind)
    nothing = [
        (f.col(TICK_TIME) if each.name == name else f.lit(None).cast(each.dataType)).alias(each.name)
        for each in df.schema.fields
    ]
    both = df.withColumn(TICK, f.lit(False)).union(clock.select(*nothing, f.lit(True).alias(TICK)))
    marked = both.withWatermark(quote(name), f"{delay_ms} milliseconds")
    # A condition that names the time stays above the watermark; Spark would put any other below it, and the
    # ticks would move nothing.
    real = ~f.col(quote(TICK)) | (at < f.lit("0001-01-01").cast("timestamp"))
    # Spark also finds conditions by itself, such as that a key to join by is not NULL, which it is in a tick.
    # It puts none of them below what is observed.
    latest = f.max(f.unix_millis(at)).alias("latest")
    return marked.filter(real).drop(TICK).observe(observed, latest), name


def _has_watermark(df: DataFrame) -> bool:
    frame: Any = df
    session: Any = df.sparkSession
    pattern = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.EVENT_TIME_WATERMARK()
    return bool(frame._jdf.queryExecution().analyzed().containsPattern(pattern))


def _mark(df: DataFrame, time: str, delay_ms: int, field: str) -> dict[str, Any]:
    """The mark of the watermark on a time column; `Invalid` if no earlier step has marked it."""
    marked = [each.name for each in shown_schema(df).fields if DELAY in each.metadata]
    found = None if time == SYSTEM else _field(df, time, field)
    if found is None or found.name not in marked:
        message = "a step before remembers events too, and both must go by the same time"
        hint = f"time: {marked[0]}" if marked else "keep its time column, or its window_end, up to here"
        raise Invalid(Problem(code="second_watermark", message=message, path=field, hint=hint))
    have = int(found.metadata[DELAY])
    if delay_ms > have:
        message = f"a step before waits {have} ms for late events, so this one cannot wait {delay_ms} ms"
        hint = "let that step wait longer"
        raise Invalid(Problem(code="second_watermark", message=message, path=field, hint=hint))
    return {DELAY: have}


def end_marks(df: DataFrame, time: str) -> dict[str, Any]:
    """The marks of a column with the ends of windows over the time column of `df`."""
    metadata = df.schema[time].metadata
    return {ENDS: True, **({DELAY: metadata[DELAY]} if DELAY in metadata else {})}


@cache
def is_late() -> Any:
    """A function of Spark: whether what ends at a time, in milliseconds, has ended by the watermark.

    Only Python can ask for the watermark of the batch in hand. It is given the one number, not the event.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.pandas.functions import arrow_udf

    def late(end: pa.Array) -> pa.Array:
        from pyspark import TaskContext

        task = TaskContext.get()
        told = task.getLocalProperty(WATERMARK) if task else None
        return pc.less_equal(end, int(told or 0))

    # Spark reads from the types what kind of function it is, and does not find them in this module.
    late.__annotations__ = {"end": pa.Array, "return": pa.Array}
    untyped: Any = arrow_udf
    return untyped(late, returnType="boolean")
