"""The logs of flows: the newest lines, and following new lines."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import TypeAdapter

from penstock.api import feed as following
from penstock.api.errors import failures
from penstock.api.feed import Feed
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.sse import EventStream, described
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.monitor.flow_logs import FlowLogReader, reader_of
from penstock.engine.runtime.flow_log_reader import Level, LogLine

FIRST = 100
"""Lines that a client gets when it starts following."""

LOOK_S = 0.5

THREADS = 4
"""Threads for all followers of logs of a kind: other requests must not wait for them."""

AtLeast = Annotated[Level, Query(description="Minimum severity.")]

_DESCRIPTION = """\
Log of a flow: starts and stops, failed attempts, failed deliveries, dead letters, late events and script
output. The log survives restarts and the loss of a worker. About 2 MiB are kept, and at most 50 lines per
level and second."""

_FOLLOW = """\
Server-sent events: each message `lines` has as data an array of log lines, the oldest first. The first one
has the last 100 lines and may be empty. Ends when the flow is deleted."""

_LINES = TypeAdapter(list[LogLine])


class LogView(View):
    """The newest lines of a log, oldest first."""

    lines: list[LogLine]


def log_routes(service: Service, kind: Kind, feed: Feed) -> APIRouter:
    """The routes of a runnable kind for logs."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/logs", tags=[kind.place])
    threads = CapacityLimiter(THREADS)

    @router.get(
        "",
        summary=f"Read the log of {kind.one}",
        description=_DESCRIPTION,
        operation_id=f"read{kind.name}Log",
        responses=failures(404, 409, 422),
    )
    def lines(
        name: Name,
        limit: Annotated[
            int, Query(ge=1, le=10_000, description="Maximum number of lines; the newest are returned.")
        ] = 200,
        level: AtLeast = "info",
    ) -> LogView:
        return LogView(lines=reader_of(service, kind.name, name, level).look()[-limit:])

    @router.get(
        "/follow",
        summary=f"Follow the log of {kind.one}",
        description=_FOLLOW,
        operation_id=f"follow{kind.name}Log",
        response_class=EventStream,
        responses={**described("The lines."), **failures(404, 409, 422)},
    )
    async def follow(name: Name, level: AtLeast = "info") -> EventStream:
        reader = await to_thread.run_sync(reader_of, service, kind.name, name, level)
        return EventStream(_follow(reader, feed, threads))

    return router


async def _follow(reader: FlowLogReader, feed: Feed, threads: CapacityLimiter) -> AsyncIterator[bytes]:
    yield format_sse_event(comment="connected", retry=1000)
    yield await to_thread.run_sync(lambda: _message(reader.look()[-FIRST:]), limiter=threads)
    told = time.monotonic()
    while not feed.closed and not reader.gone:
        if message := await to_thread.run_sync(_look, reader, limiter=threads):
            yield message
            told = time.monotonic()
        elif time.monotonic() - told >= following.HEARTBEAT_S:
            yield KEEPALIVE_COMMENT
            told = time.monotonic()
        await asyncio.sleep(LOOK_S)


def _look(reader: FlowLogReader) -> bytes:
    """The message with the new lines; empty if there are none."""
    lines = reader.look()
    return _message(lines) if lines else b""


def _message(lines: Sequence[LogLine]) -> bytes:
    return format_sse_event(event="lines", data_str=_LINES.dump_json(list(lines)).decode())
