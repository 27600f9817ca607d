"""The lease of a worker: one thread renews it, another monitors it, since the registry may respond late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger()

AGAIN_S, LOOK_S = 0.1, 0.25
"""Seconds between attempts to renew an expired lease, and between checks of the clock."""


MARGIN = 0.1
"""Fraction of a lease that a worker does not use: its flows stop before the registry removes the worker."""


class Lease:
    """The right of a worker to write, by its own monotonic clock: it expires earlier than in the registry.

    `renew` calls the registry, every `every_s` seconds, and is false if the registry has removed the worker.
    While the lease is expired, `on_lapse` is called repeatedly; `on_return` is called when the lease is valid
    again, and `on_lost` when it can't be renewed any more.
    """

    def __init__(
        self,
        seconds: float,
        renew: Callable[[], bool],
        *,
        every_s: float,
        on_lapse: Callable[[], None],
        on_return: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._seconds, self._renew, self._every_s = seconds, renew, every_s
        self._on_lapse, self._on_return, self._on_lost = on_lapse, on_return, on_lost
        self._until = 0.0
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="lease watch", daemon=True)

    @property
    def valid(self) -> bool:
        """Whether the worker may write."""
        return time.monotonic() < self._until

    def start(self, asked_at: float) -> None:
        """Start renewing a lease that was requested at `asked_at`, on the monotonic clock."""
        self._until = asked_at + self._seconds * (1 - MARGIN)
        self._renewer.start()
        self._watcher.start()

    def end(self) -> None:
        """Stop renewing, and wait for a renewal in progress, which would fail once the worker has left."""
        self._ended.set()
        self._renewer.join()
        self._watcher.join()

    def _keep(self) -> None:
        while not self._ended.wait(self._every_s if self.valid else AGAIN_S):
            asked_at, lapsed = time.monotonic(), not self.valid
            try:
                known = self._renew()
            except Exception as error:
                log.warning("registry out of reach", error=str(error))
                continue
            if not known:
                self._until = 0.0
                self._on_lapse()
                self._on_lost()
                return
            lapsed = lapsed or not self.valid
            self._until = asked_at + self._seconds * (1 - MARGIN)
            if lapsed and self.valid:
                log.info("the registry is reachable again: flows continue")
                self._on_return()

    def _watch(self) -> None:
        while not self._ended.wait(min(LOOK_S, self._seconds / 10)):
            if not self.valid:
                self._on_lapse()
