"""The current state of the installation: a snapshot, or a stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import Field

from penstock import __version__
from penstock.api import feed as following
from penstock.api.health import WorkerStartView, WorkerView
from penstock.api.pipes import FAILED_ATTEMPTS, GOOD_AT, PHASE, RunError, Status
from penstock.api.sse import EventStream, described
from penstock.api.views import View
from penstock.control.monitor.pulse import Changes, Pulse
from penstock.engine.delivery.sink_states import State

_FOLLOW = """\
The first message is `overview`, with the full state. About every two seconds a message `change` follows:
an overview whose `flows` and `streams` contain only changed entries, and `gone` the keys of removed ones.
After a reconnect the first message is `overview` again."""

Key = Annotated[str, Field(description="Kind and id, such as `Pipeline/orders`.")]
Rate = Annotated[float, Field(description="Events per second over about the last ten seconds.")]


class Totals(View):
    """The totals of all flows and streams."""

    in_rate: Rate
    out_rate: Rate
    lag_events: int = Field(description="Events waiting to be read by flows.")
    dead_letters: int = Field(description="Events that could not be processed, since the flows were created.")
    stream_bytes: int
    disk_free_bytes: int = Field(description="Free bytes on the disk of the streams.")
    disk_total_bytes: int


class SinkPulse(View):
    """A sink of a flow."""

    id: str
    type: str
    state: State = Field(description="The last state that its worker has reported.")
    rate: Rate
    events: int
    failures: int


class FlowPulse(View):
    """The current state of a flow."""

    key: Key
    kind: str
    id: str
    name: str
    status: Status
    phase: str = Field(description=PHASE)
    worker: str | None
    in_rate: Rate
    out_rate: Rate
    lag_events: int | None = Field(description="Unread events of its input; null: unknown.")
    lag_ms: int | None = Field(description="How long the oldest of them has been waiting.")
    latency_ms: float | None = Field(
        description="Age of the oldest event of the last batch when it was delivered."
    )
    batch_ms: float | None = Field(description="Duration of the last batch.")
    input_events: int
    dead_letters: int
    sinks: list[SinkPulse]
    error: RunError | None
    updated_at: datetime
    failed_attempts: int = Field(description=FAILED_ATTEMPTS)
    lag_growing: bool = Field(description="Whether its backlog has grown since its last batch.")
    good_at: datetime | None = Field(description=GOOD_AT)


class ReaderPulse(View):
    """A reader of a stream."""

    reader: str
    key: Annotated[str | None, Field(description="Kind and id of the flow, if the reader is a flow.")]
    rate: Rate
    lag_events: int
    lag_ms: int | None


class StreamPulse(View):
    """The current state of a stream: a registered stream, or a flow's own."""

    key: Key
    id: str
    name: str
    in_rate: Rate
    events: int
    bytes: int
    segments: int
    next: int
    lag_events: int = Field(description="Largest lag of its readers.")
    full: str | None = Field(description="The limit that currently blocks producers.")
    dropped: int = Field(description="Events lost to readers: dropped, or removed unread.")
    transient: bool
    readers: list[ReaderPulse]


class WorkerPulse(WorkerView):
    """The current state of a worker."""

    cpu_percent: float | None = Field(
        description="Share of one core, including child processes; null if unknown."
    )
    memory_bytes: int | None = Field(description="Including child processes; null if unknown.")
    flow_keys: list[str] = Field(description="Flows on this worker.")


class Attention(View):
    """A finding that needs attention."""

    severity: Literal["error", "warning", "info"]
    code: str
    key: str | None
    kind: str | None
    id: str | None
    name: str | None
    message: str
    advice: str = Field(description="Recommended action.")
    since: datetime | None


class Overview(View):
    """The current state of the installation."""

    at: datetime
    version: str
    started_at: datetime = Field(description="Start time of this server.")
    totals: Totals
    flows: list[FlowPulse]
    streams: list[StreamPulse]
    workers: list[WorkerPulse]
    startup: list[WorkerStartView] = Field(description="The workers that were started with this server.")
    attention: list[Attention] = Field(description="Most urgent first.")
    gone: list[str] = Field(description="In a message `change`: removed keys.")


class Followers:
    """The clients that follow the pulse. Must be used in the event loop of the server."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._closed = False
        self._new = asyncio.Event()
        # Separate threads: a follower must not queue behind requests that wait for a pipeline.
        self._threads = CapacityLimiter(2)
        self._making = asyncio.Lock()
        self._made: tuple[int, dict[int | None, bytes]] = (0, {})

    def open(self) -> None:
        """Wake the followers in this event loop on every sample."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._wake)

        self._pulse.on_sample = tell

    def close(self) -> None:
        """End every follower, because the server is stopping."""
        self._closed = True
        self._wake()

    async def follow(self) -> AsyncIterator[bytes]:
        """The messages for one follower."""
        yield format_sse_event(comment="connected", retry=1000)
        seen = (await to_thread.run_sync(self._pulse.latest, limiter=self._threads)).number
        yield await self._message(None)
        while not self._closed:
            if await self._wait_beyond(seen):
                latest = self._pulse.latest().number
                yield await self._message(seen)
                seen = latest
            elif not self._closed:
                yield KEEPALIVE_COMMENT

    async def _wait_beyond(self, seen: int) -> bool:
        try:
            async with asyncio.timeout(following.HEARTBEAT_S):
                while self._pulse.latest().number <= seen and not self._closed:
                    await self._new.wait()
        except TimeoutError:
            return False
        return not self._closed

    async def _message(self, seen: int | None) -> bytes:
        """The changes since a sample; most followers have seen the same sample, so it is rendered once."""
        async with self._making:
            latest = self._pulse.latest().number
            if self._made[0] != latest:
                self._made = latest, {}
            made = self._made[1]
            if seen not in made:
                made[seen] = await to_thread.run_sync(_message, self._pulse, seen, limiter=self._threads)
            return made[seen]

    def _wake(self) -> None:
        new, self._new = self._new, asyncio.Event()
        new.set()


def overview_routes(pulse: Pulse, followers: Followers) -> APIRouter:
    """The routes for the overview."""
    router = APIRouter(prefix="/overview", tags=["overview"])

    @router.get("", summary="Get the current state of the installation", operation_id="getOverview")
    def overview() -> Overview:
        return overview_of(pulse)

    @router.get(
        "/follow",
        summary="Follow the state of the installation",
        description=_FOLLOW,
        operation_id="followOverview",
        response_class=EventStream,
        responses=described("The messages."),
    )
    async def follow() -> EventStream:
        return EventStream(followers.follow())

    return router


def overview_of(pulse: Pulse, changes: Changes | None = None) -> Overview:
    """The whole overview, or only the changes."""
    sample = changes.sample if changes else pulse.latest()
    look = sample.look
    whole: dict[str, Any] = {
        "at": look.at,
        "version": __version__,
        "started_at": pulse.started_at,
        "totals": look.totals,
        "flows": changes.flows if changes else list(look.flows.values()),
        "streams": changes.streams if changes else list(look.streams.values()),
        "workers": list(look.workers),
        "startup": list(look.startup),
        "attention": sample.attention,
        "gone": changes.gone if changes else [],
    }
    return Overview.model_validate(whole, from_attributes=True)


def _message(pulse: Pulse, seen: int | None) -> bytes:
    changes = pulse.since(seen) if seen is not None else None
    name = "change" if changes else "overview"
    return format_sse_event(event=name, data_str=overview_of(pulse, changes).model_dump_json())
