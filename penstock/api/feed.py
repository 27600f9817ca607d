"""Follows the events of the registry on behalf of many clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import structlog
from anyio import CapacityLimiter, to_thread
from sqlalchemy.exc import SQLAlchemyError

from penstock.control.registry import Event, Registry

log = structlog.get_logger()

POLL_S = 0.25
HEARTBEAT_S = 15.0

PAGE = 100
"""Maximum events per message."""

T = TypeVar("T")


class Feed:
    """Polls the registry once for all followers; each reads only when there are new events.

    Must be used in the event loop of the server.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        # Separate threads: a follower must not queue behind requests that wait for a pipeline.
        self._threads = CapacityLimiter(4)
        self._newest = 0
        self._changed = asyncio.Event()
        self._closed = False
        self._followers = 0
        self._poller: asyncio.Task[None] | None = None

    async def position(self, after: int | None) -> int:
        """The start position: after a known event, or at the end. A future id counts as the end."""
        newest = await self._run(self._registry.last_event_id)
        return newest if after is None else min(after, newest)

    async def missed(self, position: int) -> int:
        """The number of events after a position that are no longer retained."""
        oldest = await self._run(self._registry.first_event_id)
        return max(0, oldest - position - 1)

    async def follow(self, position: int, render: Callable[[Sequence[Event]], bytes]) -> AsyncIterator[bytes]:
        """The events after a position as they arrive, rendered in a thread; empty as a heartbeat."""
        with self._following():
            while not self._closed:
                if not await self._wait_beyond(position):
                    yield b""
                    continue
                try:
                    position, lines = await self._run(partial(self._read, position, render))
                except SQLAlchemyError as error:
                    log.warning("registry is not responding", error=str(error))
                    await asyncio.sleep(POLL_S)
                    continue
                if lines:
                    yield lines

    def _read(self, position: int, render: Callable[[Sequence[Event]], bytes]) -> tuple[int, bytes]:
        found = self._registry.events_after(position, PAGE)
        return (found[-1].id, render(found)) if found else (position, b"")

    def close(self) -> None:
        """End every follower, because the server is stopping."""
        self._closed = True
        self._wake()

    @property
    def closed(self) -> bool:
        """Whether the server is stopping."""
        return self._closed

    async def _wait_beyond(self, position: int) -> bool:
        """Wait for an event after `position`; false if there was none for `HEARTBEAT_S` seconds."""
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                while self._newest <= position and not self._closed:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return not self._closed

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._followers += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            self._followers -= 1
            if self._followers == 0:
                self._poller.cancel()
                self._poller = None

    async def _poll(self) -> None:
        while True:
            try:
                newest = await self._run(self._registry.last_event_id)
            except SQLAlchemyError as error:
                log.warning("registry is not responding", error=str(error))
                newest = self._newest
            if newest != self._newest:
                self._newest = newest
                self._wake()
            await asyncio.sleep(POLL_S)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _run(self, read: Callable[[], T]) -> T:
        return await to_thread.run_sync(read, limiter=self._threads)
