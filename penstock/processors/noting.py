"""Notes that a step over frames makes of events in Spark's own expressions."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.processors.base import EVENT, NOTE_TYPE, visible
from penstock.sql.names import quote
from penstock.sql.rows import to_json

NO_NOTE = f"CAST(NULL AS {NOTE_TYPE})"


def shown(df: DataFrame) -> DataFrame:
    """The frame as people see it: what their SQL may name."""
    return df.select(*(f.col(quote(name)) for name in visible(df.columns)))


def shown_schema(df: DataFrame) -> StructType:
    """The columns that people see."""
    return StructType([df.schema[name] for name in visible(df.columns)])


def row_of(df: DataFrame) -> Column:
    """An event as JSON."""
    return to_json(*(f.col(quote(name)) for name in visible(df.columns)))


def noted(
    df: DataFrame, step: str, code: str, message: Column, *, kind: Literal["fault", "late"] = "fault"
) -> Column:
    """The note of an event of `df` that a step does not let pass."""
    nothing = f.lit(None)
    return f.struct(
        f.lit(kind).alias("kind"),
        f.lit(step).alias("step"),
        f.lit(code).alias("code"),
        message.alias("message"),
        row_of(df).alias("row"),
        f.col(quote(EVENT)).alias("event"),
        nothing.cast("bigint").alias("taken"),
        nothing.cast("bigint").alias("given"),
        nothing.cast("double").alias("ms"),
    )
