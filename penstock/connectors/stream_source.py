"""The `stream` source: the events of a stream, from a position on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from penstock.connectors.base import Site, Source
from penstock.connectors.logs import LOGS, place_of
from penstock.connectors.python_source import inflight, inflight_bytes, register
from penstock.processors.base import EVENT
from penstock.processors.known import event_of
from penstock.specs.policies import Batch
from penstock.specs.positions import PositionText
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Gap = Literal["skip", "fail"]

ALL = frozenset(Batch.model_fields)
"""A stream is read by all thresholds of `batch:`."""

RAW_COLUMNS = "value STRING, key STRING, headers MAP<STRING, STRING>"
BESIDE_COLUMNS = "_key STRING, _headers MAP<STRING, STRING>"
METADATA_COLUMNS = "_offset BIGINT, _time TIMESTAMP"


class StreamSource(Source):
    """Reads a stream: `value`, `key` and `headers` of raw events, or the columns of a typed stream.

    Each pipeline reads at its own pace and has a cursor of its own, which is kept over restarts. With
    `metadata` each event has its `_offset` and the `_time` it was appended as well, and in a typed stream its
    `_key` and `_headers`. Events that were removed before they were read, or cannot be read any more, are
    skipped and counted, or fail the pipeline (`gap: fail`).

    With `until` the pipeline has an end: it reads what is there before that position when it begins, and is
    then completed.
    """

    type: Literal["stream"] = "stream"
    stream: str = Field(min_length=1, description="Id of the Stream.")
    position: PositionText = Field(
        default="earliest", description="Where it begins: earliest, latest, offset:N or time:ISO 8601."
    )
    until: PositionText | None = Field(
        default=None,
        description="Where it ends, itself not included: a position as above; absent: it never ends.",
    )
    gap: Gap = Field(
        default="skip", description="Events that are gone: skip and count them, or fail the pipeline."
    )
    metadata: bool = Field(
        default=False, description="Add `_offset` and `_time`, and for typed streams `_key` and `_headers`."
    )

    position_fields: ClassVar = ("type",)
    batch_fields: ClassVar = ALL
    example: ClassVar = "type: stream\nstream: orders\nposition: earliest\n"

    def position_of(self, site: Site) -> dict[str, Any]:
        return stream_position(self.reads(site))

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        columns_of(spark, self.reads(site))
        return self

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        return columns_of(spark, self.reads(site), metadata=self.metadata)

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        place, until = self.reads(site), self.until
        return read_stream(
            spark, batch, site, place, self.position, self.gap, until=until, metadata=self.metadata
        )

    def reread(self, spark: SparkSession, site: Site, first: int, next: int) -> DataFrame:
        return reread_stream(spark, self.reads(site), first, next, metadata=self.metadata)

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return super().trigger(batch) if self.until is None else {"availableNow": True}

    def reads(self, site: Site) -> StreamPlace:
        return place_of(site, self.stream, field="stream")

    def oldest(self, site: Site) -> int | None:
        return oldest_in(self.reads(site))


def stream_position(place: StreamPlace) -> dict[str, Any]:
    """What decides the meaning of a stream's offsets: a namesake of a deleted stream counts from zero."""
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
    from penstock.connectors.stream_batches import Limits
    from penstock.connectors.stream_reader import StreamDataSource, options

    register(spark, StreamDataSource)
    limits = Limits(
        batch.max_events,
        batch.max_bytes,
        batch.max_ms,
        batch.respect_source_tx,
        inflight(batch),
        inflight_bytes(batch),
        batch.max_tx_bytes,
    )
    raw = place.spec.schema_ is None
    reading = options(place.directory, site.flow, site.epoch, position, until, gap, limits, raw=raw)
    reader = spark.readStream.format(StreamDataSource.name()).options(**reading)
    return _with_event(reader.schema(columns_of(spark, place, metadata=True)).load(), raw, metadata)


def reread_stream(
    spark: SparkSession, place: StreamPlace, first: int, next: int, *, metadata: bool
) -> DataFrame:
    """Events of a stream as a frame that has an end: those from an offset on, before another."""
    from penstock.connectors.stream_table import read_range

    return _with_event(read_range(spark, place, first, next), place.spec.schema_ is None, metadata)


def oldest_in(place: StreamPlace) -> int | None:
    """The first offset of a stream that keeps its events."""
    return LOGS.log(place.directory).bounds().first if place.spec.wal.enabled else None


def _with_event(df: DataFrame, raw: bool, metadata: bool) -> DataFrame:
    """Events with what is known of them in the hidden column, and also in plain sight if that is wanted."""
    from pyspark.sql import functions as f

    key, headers = ("key", "headers") if raw else ("_key", "_headers")
    known = {"offset": "_offset", "time": "_time", "key": key, "headers": headers}
    event = event_of(**{name: f.col(column) for name, column in known.items()}).alias(EVENT)
    beside = () if metadata else ("_offset", "_time", *(() if raw else ("_key", "_headers")))
    return df.select(*(f.col(quote(name)) for name in df.columns if name not in beside), event)


def columns_of(spark: SparkSession, place: StreamPlace, *, metadata: bool = False) -> StructType:
    """The columns in which Spark sees the events of a stream."""
    from pyspark.sql.types import StructType

    schema = place.spec.schema_
    found = parse_schema(spark, RAW_COLUMNS if schema is None else schema, field="stream")
    if metadata:
        beside = METADATA_COLUMNS if schema is None else f"{METADATA_COLUMNS}, {BESIDE_COLUMNS}"
        found = StructType([*found.fields, *parse_schema(spark, beside, field="stream").fields])
    return found
