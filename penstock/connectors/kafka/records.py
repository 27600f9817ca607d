"""Kafka records as events: their columns, and their metadata in the hidden column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.messages.values import RAW, ValueFormat, decoded_value, with_columns
from penstock.frames.hidden import EVENT
from penstock.frames.known import event_from
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.connectors.file.records import Malformed, Rule
    from penstock.specs.stream import Timestamps

RAW_BESIDE = "key STRING, headers MAP<STRING, STRING>"
BESIDE = "_key STRING, _headers MAP<STRING, STRING>"
METADATA = "_topic STRING, _partition INT, _offset BIGINT, _time TIMESTAMP"


def columns_of(
    spark: SparkSession, value_format: ValueFormat, ddl: str | None, *, metadata: bool
) -> StructType:
    """The columns of the events."""
    raw = value_format != "json"
    parts = [f"value {RAW[value_format]}, {RAW_BESIDE}" if raw else ddl or ""]
    if metadata:
        parts += [METADATA] if raw else [METADATA, BESIDE]
    return parse_schema(spark, ", ".join(parts), field="schema")


def raw_events(df: DataFrame, value_format: ValueFormat, *, metadata: bool) -> DataFrame:
    """Records whose value is one column."""
    from pyspark.sql import functions as f

    read = _read(df, f.col("value").cast(RAW[value_format]))
    columns = {"value": "value", "_key": "key", "_headers": "headers"}
    shown = [f.col(name).alias(target) for name, target in columns.items()]
    return read.select(*shown, *_metadata(metadata, raw=True), _event())


def json_events(
    df: DataFrame,
    schema: StructType,
    rule: Rule,
    timestamps: Timestamps,
    malformed: Malformed,
    *,
    metadata: bool,
) -> DataFrame:
    """Records whose value is a JSON object, with notes for those that do not fit the schema."""
    read = _read(df, decoded_value(df, schema, timestamps))
    return with_columns(read, schema, rule, malformed, _event(), _metadata(metadata, raw=False))


def _read(df: DataFrame, value: Column) -> DataFrame:
    """The value of a record and its Kafka metadata, with the names of visible columns."""
    from pyspark.sql import functions as f

    return df.select(
        value.alias("value"),
        f.col("topic").alias("_topic"),
        f.col("partition").alias("_partition"),
        f.col("offset").alias("_offset"),
        f.col("timestamp").alias("_time"),
        f.col("key").cast("string").alias("_key"),
        _headers(f.col("headers")).alias("_headers"),
    )


def _headers(headers: Column) -> Column:
    """Headers as a map. Kafka allows several headers with the same name: the last one is used."""
    from pyspark.sql import functions as f

    names = f.reverse(f.transform(headers, lambda header: header["key"]))
    last = f.filter(headers, lambda header, i: i == f.size(headers) - f.array_position(names, header["key"]))
    entries = f.transform(last, lambda header: f.struct(header["key"], header["value"].cast("string")))
    return f.when(headers.isNotNull(), f.map_from_entries(entries))


def _event() -> Column:
    # Partitions are merged by time: offsets of two partitions are unrelated.
    place = "unix_micros(_time)"
    return event_from(offset="_offset", time="_time", key="_key", headers="_headers", place=place).alias(
        EVENT
    )


def _metadata(wanted: bool, *, raw: bool) -> list[Column]:
    from pyspark.sql import functions as f

    names = ["_topic", "_partition", "_offset", "_time", *(() if raw else ("_key", "_headers"))]
    return [f.col(name) for name in names] if wanted else []
