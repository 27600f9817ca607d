"""Turns to start: the flows of a worker start a few at a time, in the order of their requests.

A start costs several processes. If all flows started at once, they would miss the ten seconds that Spark
allows a Python process to connect, fail, and be restarted.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import threading
import time
from collections.abc import Iterator

LONGEST_TURN_S = 30.0
"""Maximum seconds that a hanging start, such as one that waits for a server, delays others."""

LONGEST_HOLD_S = 2.0
"""Maximum seconds that successive interactive requests delay the next start."""

FRONT = 2**40
"""Subtracted from the tickets of flows at the front: lower than all others, and still in order."""


class Turn:
    """A position in the queue, and later the right to start."""

    def __init__(self, turns: Turns, ticket: int) -> None:
        self._turns, self.ticket = turns, ticket
        self.began_at: float | None = None
        self._over = threading.Event()

    @property
    def begun(self) -> bool:
        """Whether the turn has begun; also true after it has ended."""
        return self.began_at is not None

    def wait(self) -> bool:
        """Wait for the turn; false if the queue was left first."""
        self._over.wait()
        return self.begun

    def leave(self) -> None:
        """Leave the queue; has no effect on a turn that has begun."""
        self._turns._leave(self)

    def end(self) -> None:
        """End the turn, so that the next flow can start. Idempotent."""
        self._turns._end(self)


class Turns:
    """Grants turns, up to `most` at a time. All methods may be called by any thread."""

    def __init__(self, most: int | None = None) -> None:
        self._most = math.inf if most is None else most
        self._lock = threading.Lock()
        self._tickets = itertools.count(1)
        self._waiting: list[Turn] = []
        self._under_way: set[Turn] = set()
        self._holds = 0
        self._held_since: float | None = None

    def ask(self, *, front: bool = False) -> Turn:
        """Join the queue at its end, or at the front, behind earlier requests for the front."""
        with self._lock:
            ticket = next(self._tickets)
            turn = Turn(self, ticket - FRONT if front else ticket)
            bisect.insort(self._waiting, turn, key=lambda each: each.ticket)
            self._admit()
            return turn

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Delay further starts while an interactive request needs the machine."""
        with self._lock:
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1
                if not self._holds:
                    self._held_since = None
                self._admit()

    def look(self) -> None:
        """End turns and holds that have lasted too long. To be called about once a second."""
        with self._lock:
            self._admit()

    def _leave(self, turn: Turn) -> None:
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                turn._over.set()

    def _end(self, turn: Turn) -> None:
        with self._lock:
            self._under_way.discard(turn)
            self._admit()

    def _admit(self) -> None:
        now = time.monotonic()
        self._under_way = {turn for turn in self._under_way if now - (turn.began_at or now) < LONGEST_TURN_S}
        while self._waiting and len(self._under_way) < self._most:
            if self._is_held(now):
                return
            turn = self._waiting.pop(0)
            turn.began_at = now
            self._under_way.add(turn)
            turn._over.set()

    def _is_held(self, now: float) -> bool:
        """Whether the next start has to wait for a hold; the wait is limited from the first call on."""
        if self._holds and self._held_since is None:
            self._held_since = now
        held = self._holds > 0 and now - (self._held_since or now) < LONGEST_HOLD_S
        if not held:
            self._held_since = None
        return held
