"""Following a stream: server-sent events, as fast as each client reads them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from penstock.api import feed as following
from penstock.api.feed import Feed
from penstock.api.recent_chunks import RecentChunks
from penstock.api.sse import EventStream
from penstock.control.streams.doors import Door
from penstock.control.streams.pages import EventPage, page_of

log = structlog.get_logger()

QUICK_S, SLOW_S = 0.05, 0.25
"""Seconds between polls of a stream: soon after an event, and while there are no new events."""

PAGE, PAGE_BYTES = 500, 128 * 1024
"""Maximum events and bytes of a message: the server buffers one message per client that isn't reading."""

THREADS = 4
"""Threads for all followers: appends must not wait for followers."""


class Tails:
    """Clients that follow streams. They are disconnected when the server's feed is closed.

    Per client, only its position and one message are held: a page is read after the previous one was sent.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._threads = CapacityLimiter(THREADS)
        self._chunks = RecentChunks()

    def response(self, door: Door, start: int, contains: str | None) -> EventStream:
        """The endless stream of events from an offset on."""
        return EventStream(self._lines(door, start, contains))

    async def _lines(self, door: Door, start: int, contains: str | None) -> AsyncIterator[bytes]:
        yield format_sse_event(comment="connected", retry=1000, id=str(start))
        told, pause = time.monotonic(), QUICK_S
        while not self._feed.closed:
            found = await to_thread.run_sync(self._look, door, start, contains, limiter=self._threads)
            if found is None:
                return
            reached, message = found
            if reached == start:
                if time.monotonic() - told >= following.HEARTBEAT_S:
                    yield format_sse_event(id=str(start)) + KEEPALIVE_COMMENT
                    told = time.monotonic()
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, SLOW_S)
                continue
            start, pause = reached, QUICK_S
            if message:
                yield message
                told = time.monotonic()

    def _look(self, door: Door, start: int, contains: str | None) -> tuple[int, bytes] | None:
        """The next offset and the message with the events before it; None if the stream can't be read."""
        try:
            page = page_of(door, start, self._chunks.read(door, start), PAGE, PAGE_BYTES)
        except (OSError, ValueError) as error:
            # The stream's files are closed or removed. A client that reconnects gets the reason.
            log.info("tail closed", stream=door.id, error=str(error))
            return None
        return page.next, _message(page, contains)


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
