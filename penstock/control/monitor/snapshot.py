"""Snapshots: the models of a sample, filled by the sampler and shown by the API."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from penstock.control.fleet.assignments import WorkerInfo
from penstock.control.fleet.processes import WorkerStart
from penstock.control.registry.records import JsonObject
from penstock.engine.delivery.sink_states import State

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class SinkPulse:
    """A sink of a flow."""

    id: str
    type: str
    state: State
    rate: float
    events: int
    failures: int


@dataclass(frozen=True)
class FlowPulse:
    """A flow. Rates are events per second over the last seconds."""

    key: str
    kind: str
    id: str
    name: str
    status: str
    phase: str
    worker: str | None
    in_rate: float
    out_rate: float
    lag_events: int | None
    lag_ms: int | None
    latency_ms: float | None
    batch_ms: float | None
    input_events: int
    dead_letters: int
    sinks: tuple[SinkPulse, ...]
    error: JsonObject | None
    updated_at: datetime
    latency: JsonObject | None = None
    """The latency goal of a running flow, as reported by its worker."""
    reconnecting: bool = False
    """Whether the system of its source has become unreachable after a successful connection."""
    waits_for: JsonObject | None = None
    """Why the flow can't be assigned to any worker."""
    failed_attempts: int = 0
    """Failed attempts since the last successful batch."""
    lag_growing: bool = False
    """Whether the backlog has grown since the last batch."""
    good_at: datetime | None = None
    """When the last successful batch finished."""
    stalled_since: float | None = None
    """Since when the backlog has grown without a finished batch; set only after `monitor.stalled_ms`."""


@dataclass(frozen=True)
class ReaderPulse:
    """A reader of a stream; `key` is the key of its flow, if it is a flow."""

    reader: str
    key: str | None
    rate: float
    lag_events: int
    lag_ms: int | None


@dataclass(frozen=True)
class StreamPulse:
    """A stream; `lag_events` is the largest lag of its readers."""

    key: str
    id: str
    name: str
    in_rate: float
    events: int
    bytes: int
    segments: int
    next: int
    lag_events: int
    full: str | None
    dropped: int
    transient: bool
    readers: tuple[ReaderPulse, ...]


@dataclass(frozen=True)
class WorkerPulse(WorkerInfo):
    """A worker, the resource usage of it and its child processes, and its flows."""

    cpu_percent: float | None = None
    memory_bytes: int | None = None
    flow_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Totals:
    """The totals of all flows and streams, and the disk they are on."""

    in_rate: float
    out_rate: float
    lag_events: int
    dead_letters: int
    stream_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int


@dataclass(frozen=True)
class Attention:
    """A finding that needs attention, with advice."""

    severity: Severity
    code: str
    message: str
    advice: str
    key: str | None = None
    kind: str | None = None
    id: str | None = None
    name: str | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class GoneWorker:
    """A worker that has ended without deregistering."""

    id: str
    flows: int
    """The number of flows that the worker had."""
    since: float
    ailment: str | None = None
    """What impaired the worker before, if it was stuck."""


@dataclass(frozen=True)
class Lately:
    """Changes over the last minutes, which no single sample shows."""

    letters: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Number of new dead letters of a flow, and since when."""
    lost: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Number of events of a stream that were dropped or evicted unread, and since when."""
    restart: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Number of events of a transient stream lost in the last restart, and its time."""
    growing: dict[str, float] = field(default_factory=dict)
    """Flows whose lag keeps growing, and since when."""
    gone: tuple[GoneWorker, ...] = ()
    """Workers that disappeared without deregistering."""
    unended: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Number of transactions of a stream that did not end in time, and since when."""


@dataclass(frozen=True)
class Look:
    """One sample of all flows, streams and workers."""

    at: datetime
    totals: Totals
    flows: dict[str, FlowPulse]
    streams: dict[str, StreamPulse]
    workers: tuple[WorkerPulse, ...]
    lately: Lately = field(default_factory=Lately)
    startup: tuple[WorkerStart, ...] = ()
    """The workers that were started with this server."""
