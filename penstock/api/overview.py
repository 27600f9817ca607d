"""How everything is right now, at once or as it changes."""

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
from penstock.api.pipes import RunError, Status
from penstock.api.sse import EventStream, described
from penstock.api.views import View
from penstock.control.monitor.pulse import Changes, Pulse
from penstock.engine.delivery.sink_states import State

_FOLLOW = """\
The first message is `overview`, with all there is. About every two seconds a message `change` follows: an
overview whose `flows` and `streams` hold only those that changed, and `gone` the keys of those that are no
more. After a break the first message is again `overview`."""

Key = Annotated[str, Field(description="Kind and id, such as `Pipeline/orders`.")]
Rate = Annotated[float, Field(description="Events per second over the last ten seconds or so.")]


class Totals(View):
    """All flows and streams together."""

    in_rate: Rate
    out_rate: Rate
    lag_events: int = Field(description="Events that wait for a flow.")
    dead_letters: int = Field(description="Events that flows could not process, since they were made.")
    stream_bytes: int
    disk_free_bytes: int = Field(description="Of the disk that streams are on.")
    disk_total_bytes: int


class SinkPulse(View):
    """A sink of a flow."""

    id: str
    type: str
    state: State | None = Field(description="Null until its ledger was read.")
    rate: Rate
    events: int
    failures: int


class FlowPulse(View):
    """A flow as it is now."""

    key: Key
    kind: str
    id: str
    name: str
    status: Status
    phase: str
    worker: str | None
    in_rate: Rate
    out_rate: Rate
    lag_events: int | None = Field(description="Events of its input that wait for it; null: not known.")
    lag_ms: int | None = Field(description="For how long the oldest of them has waited.")
    latency_ms: float | None = Field(
        description="How old the oldest event of the last batch was when it was delivered."
    )
    batch_ms: float | None = Field(description="How long the last batch took.")
    input_events: int
    dead_letters: int
    sinks: list[SinkPulse]
    error: RunError | None
    updated_at: datetime


class ReaderPulse(View):
    """A reader of a stream."""

    reader: str
    key: Annotated[str | None, Field(description="Kind and id of its flow, if it is one.")]
    rate: Rate
    lag_events: int
    lag_ms: int | None


class StreamPulse(View):
    """A stream as it is now: a registered one, or one that a flow has of its own."""

    key: Key
    id: str
    name: str
    in_rate: Rate
    events: int
    bytes: int
    segments: int
    next: int
    lag_events: int = Field(description="The largest of its readers.")
    full: str | None = Field(description="The limit that makes its producers wait now.")
    dropped: int = Field(description="Events lost to readers: dropped, or removed unread.")
    transient: bool
    readers: list[ReaderPulse]


class WorkerPulse(WorkerView):
    """A worker as it is now."""

    cpu_percent: float | None = Field(description="Of one core, with its children; null if not known.")
    memory_bytes: int | None = Field(description="With its children; null if not known.")
    flow_keys: list[str] = Field(description="The flows that it has.")


class Attention(View):
    """Something that a person should look at."""

    severity: Literal["error", "warning", "info"]
    code: str
    key: str | None
    kind: str | None
    id: str | None
    name: str | None
    message: str
    advice: str = Field(description="What to do next.")
    since: datetime | None


class Overview(View):
    """How everything is right now."""

    at: datetime
    version: str
    started_at: datetime = Field(description="When this server began; so did what it remembers.")
    totals: Totals
    flows: list[FlowPulse]
    streams: list[StreamPulse]
    workers: list[WorkerPulse]
    startup: list[WorkerStartView] = Field(description="The workers that were started with this server.")
    attention: list[Attention] = Field(description="The most urgent first.")
    gone: list[str] = Field(description="Keys that are no more, in a message `change`.")


class Followers:
    """Those who follow the pulse. Belongs to the event loop of the server."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._closed = False
        self._new = asyncio.Event()
        # Threads of its own: a follower must not wait behind requests that wait for a pipeline.
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
        """End every follower, because the server ends."""
        self._closed = True
        self._wake()

    async def follow(self) -> AsyncIterator[bytes]:
        """The messages for one of them."""
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
        """What is new since a sample; most who follow have seen the same one, so it is made once."""
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
    """The overview."""
    router = APIRouter(prefix="/overview", tags=["overview"])

    @router.get("", summary="Get how everything is right now", operation_id="getOverview")
    def overview() -> Overview:
        return overview_of(pulse)

    @router.get(
        "/follow",
        summary="Follow how everything is",
        description=_FOLLOW,
        operation_id="followOverview",
        response_class=EventStream,
        responses=described("The messages."),
    )
    async def follow() -> EventStream:
        return EventStream(followers.follow())

    return router


def overview_of(pulse: Pulse, changes: Changes | None = None) -> Overview:
    """All there is, or only what changed."""
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
