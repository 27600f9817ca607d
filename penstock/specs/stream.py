"""The Stream kind: a named append-only log of events."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.specs.base import Spec
from penstock.specs.conditions import only_with

Timestamps = Literal["iso", "epoch_s", "epoch_ms", "epoch_us"]
"""How a TIMESTAMP is written in sent events: ISO 8601, or an integer since 1970."""

TIMESTAMPS = (
    "How TIMESTAMP columns are written in JSON and CSV: `iso`, text in ISO 8601; `epoch_s`, `epoch_ms`, "
    "`epoch_us`, an integer of seconds, milliseconds or microseconds since 1970."
)

DEFAULT_LIMIT = 1 << 30
"""Bytes of a stream in SQLite whose `retention_bytes` is null: a database in one file must be limited."""


SEGMENTED = {"spec.storage": ["local", "kafka"]}
"""The condition for fields about segments: storages that have segments."""


class WalBatch(Spec):
    """How appends are grouped before a flush."""

    max_events: int = Field(default=10_000, ge=1, description="Flush after this many events.")
    max_bytes: int = Field(default=1024 * 1024, ge=1, description="Flush after this many bytes.")
    max_ms: int = Field(default=5, ge=0, description="Flush this long after the first waiting event.")


class Wal(Spec):
    """The write-ahead log of a stream: durability, replay window and disk use."""

    enabled: bool = Field(
        default=True, description="`false` makes the stream transient: its events are lost in a restart."
    )
    retention_ms: int | None = Field(
        default=604_800_000,
        ge=1,
        description="How long closed segments are kept, by append time; null: unlimited.",
    )
    retention_bytes: int | None = Field(
        default=None, ge=1, description="Maximum size in bytes; the first limit reached applies."
    )
    max_segments: int = Field(
        default=64,
        ge=1,
        description="Maximum number of segment files.",
        json_schema_extra=only_with(enabled=[True], **{"spec.storage": ["local"]}),
    )
    segment_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1,
        description="Size at which a segment is closed.",
        json_schema_extra=only_with(**SEGMENTED),
    )
    segment_ms: int = Field(
        default=3_600_000,
        ge=1,
        description="Age at which a segment is closed.",
        json_schema_extra=only_with(**SEGMENTED),
    )
    compression: Literal["none", "lz4", "zstd"] = Field(
        default="zstd", description="Codec of new frames; readers accept a mix."
    )
    sync: bool = Field(
        default=False,
        description="`true`: fsync before the acknowledgement (group commit).",
        json_schema_extra=only_with(enabled=[True]),
    )
    on_full: Literal["drop_oldest", "block"] = Field(
        default="drop_oldest",
        description="What happens to unread events when a limit is reached.",
        json_schema_extra=only_with(enabled=[True]),
    )
    batch: WalBatch = Field(default_factory=WalBatch, description="Grouping before a flush.")


class StreamBuffer(Spec):
    """The bounded buffer before the log, and the handling of appends while it is full."""

    max_events: int = Field(default=100_000, ge=1, description="Maximum number of events in the buffer.")
    max_bytes: int = Field(default=64 * 1024 * 1024, ge=1, description="Maximum size of the buffer in bytes.")
    max_unread: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of events that a reader has not read. Null: unlimited.",
    )
    mode: Literal["block", "drop", "timeout"] = Field(
        default="block",
        description="When the buffer is full: `block` makes producers wait, `drop` drops "
        "new events (counted), `timeout` makes producers wait and then drops.",
    )
    timeout_ms: int = Field(
        default=5_000,
        ge=0,
        description="How long producers wait. With `mode: block` only producers over HTTP stop waiting.",
        json_schema_extra=only_with(mode=["timeout", "block"]),
    )
    spill: bool = Field(
        default=False,
        description="Spill to disk before `mode` applies.",
        json_schema_extra=only_with(**{"spec.wal.enabled": [False]}),
    )


class StreamSpec(Spec):
    """A named append-only log of events, shared by any number of writers and readers."""

    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark DDL, such as `id BIGINT, user STRING`. Absent: raw events.",
    )
    timestamps: Timestamps = Field(default="iso", description=TIMESTAMPS)
    wal: Wal = Field(default_factory=Wal, description="Durability, replay window and disk use.")
    buffer: StreamBuffer = Field(default_factory=StreamBuffer, description="Backpressure.")
    storage: Literal["local", "sqlite", "kafka"] = Field(default="local", description="Storage of the log.")
