"""The `http` source: events that are sent to Penstock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from penstock.connectors.base import Source
from penstock.connectors.stream.source import ALL
from penstock.frames.logs import place_of
from penstock.frames.site import Site
from penstock.frames.streams.read import columns_of, oldest_in, read_stream, reread_stream, stream_position
from penstock.specs.policies import Batch
from penstock.specs.stream import TIMESTAMPS, Timestamps
from penstock.sql.schemas import parse_schema
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class HttpSource(Source):
    """Accepts events sent to `POST /ingest/{source}`: JSON, NDJSON, CSV, text or Arrow, also compressed.

    Events are appended to a stream before the sender is answered: the pipeline's own one, or the one that a
    registered source names in `stream`. An acknowledged event survives a kill and a restart, unless the
    `buffer` of the pipeline is in memory: each answer says which. With a `schema` they become typed events;
    events that do not fit are kept beside them with the reason. Without, each has a `value`, a `key` and
    `headers`. At the limit of the stream the sender is refused and asked to wait.
    """

    type: Literal["http"] = "http"
    path: str | None = Field(
        default=None,
        min_length=1,
        description="Path below /ingest, such as /orders; absent: the id of the source or pipeline.",
    )
    schema_: str | None = Field(
        default=None, alias="schema", description="Columns as Spark DDL; absent: raw events."
    )
    timestamps: Timestamps = Field(default="iso", description=f"With a `schema`. {TIMESTAMPS}")
    atomic: bool = Field(
        default=False, description="Reject the whole request if one of its events is invalid."
    )
    max_body_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1,
        description="Maximum size of a request, before and after "
        "decompression; larger requests are rejected.",
    )

    guarantee: ClassVar = "at-least-once"
    position_fields: ClassVar = ("type",)
    batch_fields: ClassVar = ALL
    paced: ClassVar = True
    push: ClassVar = True
    held: ClassVar = True
    example: ClassVar = """\
type: http
path: /orders
schema: id BIGINT, customer STRING, amount DOUBLE
"""

    @classmethod
    def input_schema(cls, spec: Mapping[str, Any]) -> str | None:
        schema = spec.get("schema")
        return schema if isinstance(schema, str) else None

    def position_of(self, site: Site) -> dict[str, Any]:
        return stream_position(self.reads(site))

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.schema_ is not None:
            parse_schema(spark, self.schema_, field="schema")
        return self

    def reads(self, site: Site) -> StreamPlace:
        return place_of(site, site.input, field="type")

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        return columns_of(spark, self.reads(site))

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        return read_stream(spark, batch, site, self.reads(site), "earliest", "skip", metadata=False)

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return reread_stream(spark, self.reads(site), first, end, metadata=False)

    def oldest(self, site: Site) -> int | None:
        return oldest_in(self.reads(site))
