"""The `stream` source: the events of a stream, from a position on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from penstock.connectors.base import Source
from penstock.connectors.probe import Probe
from penstock.connectors.stream.check import probe_stream
from penstock.frames.logs import place_of
from penstock.frames.site import Site
from penstock.frames.streams.read import (
    Gap,
    columns_of,
    oldest_in,
    read_stream,
    reread_stream,
    stream_position,
)
from penstock.specs.policies import Batch
from penstock.specs.positions import PositionText
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ALL = frozenset(Batch.model_fields)
"""A stream supports all thresholds of `batch:`."""


class StreamSource(Source):
    """Reads a stream: `value`, `key` and `headers` of raw events, or the columns of a typed stream.

    Each pipeline reads at its own pace and has its own cursor, which is retained across restarts. With
    `metadata` each event also has its `_offset` and its append `_time`, and in a typed stream its `_key` and
    `_headers`. Events that were removed before they were read, or are unreadable, are skipped and counted, or
    fail the pipeline (`gap: fail`).

    With `until` the pipeline is finite: it reads the events that exist before that position when it starts,
    and is then completed.
    """

    type: Literal["stream"] = "stream"
    stream: str = Field(min_length=1, description="Id of the Stream.")
    position: PositionText = Field(
        default="earliest", description="Start position: earliest, latest, offset:N or time:ISO 8601."
    )
    until: PositionText | None = Field(
        default=None,
        description="End position, exclusive; absent: the source never ends.",
    )
    gap: Gap = Field(
        default="skip", description="Handling of missing events: skip and count them, or fail the pipeline."
    )
    metadata: bool = Field(
        default=False, description="Add `_offset` and `_time`, and for typed streams `_key` and `_headers`."
    )

    guarantee: ClassVar = "exactly-once"
    position_fields: ClassVar = ("type",)
    batch_fields: ClassVar = ALL
    paced: ClassVar = True
    tested: ClassVar = "local streams"
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

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return reread_stream(spark, self.reads(site), first, end, metadata=self.metadata)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_stream(site, self.stream)

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return super().trigger(batch) if self.until is None else {"availableNow": True}

    def reads(self, site: Site) -> StreamPlace:
        return place_of(site, self.stream, field="stream")

    def oldest(self, site: Site) -> int | None:
        return oldest_in(self.reads(site))
