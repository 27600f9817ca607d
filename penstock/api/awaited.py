"""Appends that requests await in the event loop, without a thread for each."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass

from penstock.streams.committer import Entry
from penstock.streams.storage import Appended


class Results:
    """Passes results from writer threads to an event loop: one wake-up for many results."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._mutex = threading.Lock()
        self._arrived: list[Awaited] = []

    def add(self, entry: Awaited) -> None:
        """Report that an append has its result. May be called by any thread."""
        with self._mutex:
            self._arrived.append(entry)
            first = len(self._arrived) == 1
        if first:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so no request waits any more
                self.loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        with self._mutex:
            arrived, self._arrived = self._arrived, []
        for entry in arrived:
            entry.wake()


@dataclass(eq=False)
class Awaited(Entry):
    """An append that a request waits for."""

    results: Results | None = None
    _outcome: Appended | BaseException | None = None
    _turn: asyncio.Future[None] | None = None

    def tell(self, result: Appended) -> None:
        """Acknowledge the append."""
        self._settle(result)

    def refuse(self, error: BaseException) -> None:
        """Fail the append with an error."""
        self._settle(error)

    def _settle(self, outcome: Appended | BaseException) -> None:
        assert self.results is not None
        self._outcome = outcome
        self.results.add(self)

    async def settled(self, seconds: float) -> bool:
        """Whether the append has its result, after a wait of at most `seconds`."""
        assert self.results is not None
        if self._outcome is None:
            self._turn = self.results.loop.create_future()
            timer = self.results.loop.call_later(seconds, self.wake)
            try:
                await self._turn
            finally:
                timer.cancel()
        return self._outcome is not None

    def wake(self) -> None:
        """End the current wait. Called in the event loop."""
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    def result(self) -> Appended:
        """The offsets of a settled append; raises its error if it failed."""
        assert self._outcome is not None
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome
