"""Streams as frames: unbounded, or for a range of offsets."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

from penstock.frames.hidden import EVENT
from penstock.frames.known import event_from
from penstock.frames.logs import LOGS
from penstock.frames.python_source import inflight, inflight_bytes
from penstock.frames.site import Site
from penstock.specs.policies import Batch, PacedBatch
from penstock.sql.schemas import parse_schema
from penstock.streams.config import read_config
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Gap = Literal["skip", "fail"]

RAW_COLUMNS = "value STRING, key STRING, headers MAP<STRING, STRING>"
BESIDE_COLUMNS = "_key STRING, _headers MAP<STRING, STRING>"
METADATA_COLUMNS = "_offset BIGINT, _time TIMESTAMP"


def stream_position(place: StreamPlace) -> dict[str, Any]:
    """The identity of a stream's offsets: a new stream with the id of a deleted one starts at offset 0."""
    return {"type": "stream", "stream": place.id, "life": place.directory.name}


def read_stream(
    spark: SparkSession,
    batch: Batch,
    site: Site,
    place: StreamPlace,
    position: str,
    gap: Gap,
    *,
    until: str | None = None,
    metadata: bool,
) -> DataFrame:
    """The events of a stream as a streaming frame."""
    from penstock.frames.streams.batches import Limits
    from penstock.frames.streams.reader import TASKS_PER_CORE, reading
    from penstock.spark.planned_source import FORMAT, options

    limits = Limits(
        batch.max_events,
        batch.max_bytes,
        batch.max_ms,
        batch.respect_source_tx,
        inflight(batch),
        inflight_bytes(batch),
        batch.max_tx_bytes,
        batch.max_tx_ms,
        batch.latency_ms if isinstance(batch, PacedBatch) else None,
    )
    raw = place.spec.schema_ is None
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    prepare(spark, place)
    wanted = reading(place.directory, site.flow, site.epoch, position, until, gap, limits, tasks)
    reader = spark.readStream.format(FORMAT).options(**options(spark, wanted))
    return _with_event(reader.schema(columns_of(spark, place, metadata=True)).load(), raw, metadata)


def reread_stream(
    spark: SparkSession, place: StreamPlace, first: int, end: int, *, metadata: bool
) -> DataFrame:
    """The events of a stream from offset `first` to before `end`, as a batch frame."""
    from penstock.frames.streams.table import read_range

    return _with_event(read_range(spark, place, first, end), place.spec.schema_ is None, metadata)


def oldest_in(place: StreamPlace) -> int | None:
    """The first offset of a stream that retains its events; None for a transient stream."""
    return LOGS.log(place.directory).bounds().first if place.spec.wal.enabled else None


def _with_event(df: DataFrame, raw: bool, metadata: bool) -> DataFrame:
    """Events with their metadata in the hidden column, and with `metadata` also in visible columns."""
    key, headers = ("key", "headers") if raw else ("_key", "_headers")
    event = event_from(offset="_offset", time="_time", key=key, headers=headers)
    beside = () if metadata else ("_offset", "_time", *(() if raw else ("_key", "_headers")))
    return df.withColumn(EVENT, event).drop(*beside)


def prepare(spark: SparkSession, place: StreamPlace) -> None:
    """Enable tasks to read the storage of a stream: streams in Kafka need its client."""
    kept = place.spec.storage
    with contextlib.suppress(OSError, ValueError):  # while a document is analyzed, there is no stream
        kept = read_config(place.directory).spec.storage  # it may have been moved since
    if kept == "kafka":
        prepare_kafka(spark)


def prepare_kafka(spark: SparkSession) -> None:
    """Enable the tasks of a session to read streams in Kafka."""
    from penstock.spark.jars import use_jars
    from penstock.spark.java_classes import java_class
    from penstock.spark.planned_source import KAFKA

    use_jars(spark, "kafka")
    java_class(spark, KAFKA)


def columns_of(spark: SparkSession, place: StreamPlace, *, metadata: bool = False) -> StructType:
    """The columns with which Spark reads the events of a stream."""
    from pyspark.sql.types import StructType

    schema = place.spec.schema_
    found = parse_schema(spark, RAW_COLUMNS if schema is None else schema, field="stream")
    if metadata:
        beside = METADATA_COLUMNS if schema is None else f"{METADATA_COLUMNS}, {BESIDE_COLUMNS}"
        found = StructType([*found.fields, *parse_schema(spark, beside, field="stream").fields])
    return found
