"""Following a stream: server-sent events, as fast as each client takes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from penstock.api import feed as following
from penstock.api.feed import Feed
from penstock.control.streams.doors import Door
from penstock.control.streams.pages import EventPage, read_page

log = structlog.get_logger()

QUICK_S, SLOW_S = 0.05, 0.25
"""Between two looks at the end of a stream: soon after an event, and when it is quiet."""

PAGE = 500
"""Events in a message."""

THREADS = 4
"""For all who follow: those who append must not wait for those who watch."""


class Tails:
    """Clients that follow streams. They end with the feed of the server.

    Nothing is kept for a client: its position is all there is of it, and a page is read when the one before
    it was sent.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._threads = CapacityLimiter(THREADS)

    def response(self, door: Door, start: int, contains: str | None) -> StreamingResponse:
        """The events from an offset on, for ever."""
        # Without the last header nginx would hold the events back.
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        lines = self._lines(door, start, contains)
        return StreamingResponse(lines, media_type="text/event-stream", headers=headers)

    async def _lines(self, door: Door, start: int, contains: str | None) -> AsyncIterator[bytes]:
        yield format_sse_event(comment="connected", retry=1000, id=str(start))
        told, pause = time.monotonic(), QUICK_S
        while not self._feed.closed:
            page = await to_thread.run_sync(_look, door, start, limiter=self._threads)
            if page is None:
                return
            if page.next == start:
                if time.monotonic() - told >= following.HEARTBEAT_S:
                    yield format_sse_event(id=str(start)) + KEEPALIVE_COMMENT
                    told = time.monotonic()
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, SLOW_S)
                continue
            start, pause = page.next, QUICK_S
            if message := _message(page, contains):
                yield message
                told = time.monotonic()


def _look(door: Door, start: int) -> EventPage | None:
    try:
        return read_page(door, start, PAGE)
    except (OSError, ValueError) as error:
        # Its files are closed or removed. A client that reconnects learns what became of the stream.
        log.info("tail closed", stream=door.id, error=str(error))
        return None


def _message(page: EventPage, contains: str | None) -> bytes:
    lines = b""
    if page.gap:
        lines = format_sse_event(event="gap", id=str(page.gap.next), data_str=json.dumps(asdict(page.gap)))
    shown = [json.dumps(event, ensure_ascii=False) for event in page.events]
    if contains is not None:
        shown = [text for text in shown if contains in text]
    if shown:
        lines += format_sse_event(event="events", id=str(page.next), data_str=f"[{','.join(shown)}]")
    return lines
