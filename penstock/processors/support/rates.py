"""A rate limit that all tasks of a flow on one machine share."""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_S = 60.0
TASKS = 100
"""Tasks that may wait at once, each for one event. A time further ahead than these tasks need, or than a
minute, was written by a clock that has been set back since."""

SLICE_S = 0.1
"""Seconds of the rate that are reserved at once, so that tasks take turns."""

_TIME = struct.Struct("<d")


class Bucket(ABC):
    """Lets `rate` events pass per second, and `burst` events at once after a pause.

    Its only state is the time until which the rate is used up.
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst_s = rate, burst / rate

    @abstractmethod
    @contextmanager
    def _used(self) -> Iterator[list[float]]:
        """The time until which the rate is used up, locked against other tasks."""

    def wait(self, events: int) -> None:
        """Wait until `events` more events may pass."""
        part = max(1, int(self.rate * SLICE_S))
        while events > 0:
            time.sleep(self._reserve(min(part, events)))
            events -= part

    def take(self, events: int) -> int:
        """The number of events that may pass now."""
        now = time.time()
        with self._used() as used:
            until = self._begin(used[0], now)
            passing = max(0, min(events, int((self.burst_s - (until - now)) * self.rate + 1e-6)))
            used[0] = until + passing / self.rate
        return passing

    def _reserve(self, events: int) -> float:
        """Reserve the rate for some events. Returns the seconds that they have to wait."""
        now = time.time()
        with self._used() as used:
            used[0] = self._begin(used[0], now) + events / self.rate
            return max(0.0, used[0] - self.burst_s - now)

    def _begin(self, used: float, now: float) -> float:
        furthest = now + self.burst_s + max(LONGEST_S, TASKS / self.rate)
        return max(used, now) if used <= furthest else now


class OwnBucket(Bucket):
    """A rate limit of this process alone."""

    def __init__(self, rate: float, burst: float) -> None:
        super().__init__(rate, burst)
        self._lock, self._state = threading.Lock(), [0.0]

    @contextmanager
    def _used(self) -> Iterator[list[float]]:
        with self._lock:
            yield self._state


class SharedBucket(Bucket):
    """A rate limit of all processes that use the file."""

    def __init__(self, file: Path, rate: float, burst: float) -> None:
        super().__init__(rate, burst)
        self._file = file

    @contextmanager
    def _used(self) -> Iterator[list[float]]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # Opened each time: locks belong to an open file, so they also exclude other threads of this process.
        fd = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            found = os.pread(fd, _TIME.size, 0)
            state = [_TIME.unpack(found)[0] if len(found) == _TIME.size else 0.0]
            yield state
            os.pwrite(fd, _TIME.pack(state[0]), 0)
        finally:
            os.close(fd)


def bucket_file(state: Path | None, step: str) -> Path | None:
    """The file in which the tasks of a flow share the rate of a step; None if the flow is only analyzed."""
    name = hashlib.sha256(step.encode()).hexdigest()[:16]  # a step may have any name
    return state / "rates" / name if state is not None else None


def bucket(file: Path | None, rate: float, burst: float) -> Bucket:
    """The rate limit of a step."""
    return OwnBucket(rate, burst) if file is None else SharedBucket(file, rate, burst)
