"""Counters of a stream, shared by all processes and retained across restarts.

A mapped file holds two copies of the counters, each with a number and a checksum. The older copy is
overwritten, so that a reader finds a valid copy without a lock, and after a kill or a power loss.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import google_crc32c

from penstock.streams.files import Files

NAMES = (
    "dropped_buffer_full",
    "dropped_timeout",
    "dropped_no_reader",
    "evicted_retention_ms",
    "evicted_retention_bytes",
    "evicted_max_segments",
    "evicted_unread",
    "damaged",
    "dead_letters",
    "duplicates",
    "skipped_by_readers",
    "lost_restart",
    "unended_transactions",
)
"""In the order of the file: new counters are added at the end."""

_COPY = struct.Struct("<Q30Q")
"""The number of the copy, and room for thirty counters. A checksum follows."""

PLACES = (0, 256)
SIZE = 512
TRIES = 20


class Counters:
    """Counters that only grow, in a file that is opened on first use. In a read-only directory nothing is
    counted.

    `check` is called under the lock before a change, and may reject it; `on_open` when the file is opened.
    """

    def __init__(
        self,
        path: Path,
        files: Files | None = None,
        check: Callable[[], None] = lambda: None,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self._path, self._files = path, files or Files()
        self._check, self._on_open = check, on_open
        self._fd: int | None = None
        self._writable = False
        self._map: mmap.mmap | None = None
        self._resting = True
        self._mutex = threading.RLock()  # threads of a process share a file lock
        self._uses = 0

    def _wake(self) -> mmap.mmap | None:
        """The mapped file, opened if it is closed; None if there is no file. The caller holds the mutex."""
        if self._resting:
            self._resting = False
            try:
                self._fd, self._writable = self._files.open_shared(self._path, SIZE)
                access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
                self._map = mmap.mmap(self._fd, SIZE, access=access)
            except (OSError, ValueError):  # a full disk, or a read-only directory without the file
                self._shut()
            self._on_open()
        return self._map

    @property
    def open_files(self) -> int:
        """The number of descriptors in use: one for the file, one for its mapping."""
        return 0 if self._fd is None else 2

    def rest(self) -> bool:
        """Close the file until its next use; false if a thread (perhaps this one) is using it."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            if self._uses:
                return False
            self._shut()
            self._resting = True
        finally:
            self._mutex.release()
        return True

    @contextlib.contextmanager
    def _used(self) -> Iterator[mmap.mmap | None]:
        """The mapped file, which stays open inside the block; None if there is no file."""
        with self._mutex:
            self._uses += 1
            try:
                yield self._wake()
            finally:
                self._uses -= 1

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to some of the counters."""
        with self.locked():
            if self._map is None or not self._writable:
                return
            self._check()
            number, place, values = self._latest(self._map)
            for name, count in counts.items():
                values[NAMES.index(name)] += count
            data = _COPY.pack(number + 1, *values)
            data += struct.pack("<I", google_crc32c.value(data))
            other = PLACES[1 - PLACES.index(place)]
            self._map[other : other + len(data)] = data

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the counters against changes."""
        with self._used() as mapped:
            if mapped is None or self._fd is None:
                yield
                return
            fcntl.flock(self._fd, fcntl.LOCK_EX)  # covers this file only
            try:
                yield
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def all(self) -> dict[str, int]:
        """Every counter."""
        with self._used() as mapped:
            if mapped is None:
                return dict.fromkeys(NAMES, 0)
            _, _, values = self._latest(mapped)
        return dict(zip(NAMES, values, strict=False))

    def _latest(self, mapped: mmap.mmap) -> tuple[int, int, list[int]]:
        """Number, position and values of the last copy; all zero if none is valid."""
        for _ in range(TRIES):  # both copies may be changing while they are read
            data, found = mapped[:SIZE], []
            for place in PLACES:
                end = place + _COPY.size
                if struct.unpack_from("<I", data, end)[0] == google_crc32c.value(data[place:end]):
                    number, *values = _COPY.unpack_from(data, place)
                    found.append((number, place, values))
            if found:
                return max(found)
            if not any(data):
                break
        return 0, PLACES[0], [0] * (_COPY.size // 8 - 1)

    def close(self) -> None:
        """Close the file for good."""
        with self._mutex:
            self._shut()
            self._resting = False

    def _shut(self) -> None:
        # The mapping is closed when the last thread that reads it has released it.
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._map = None
