"""Counters of a stream, shared by all processes and kept over restarts.

A mapped file holds them twice, each copy with a number and a checksum. The older copy is overwritten, so that
a reader without a lock, or after a kill or a power loss, finds a valid one.
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
"""In the order of the file: new ones go to the end."""

_COPY = struct.Struct("<Q30Q")
"""The number of the copy, and room for thirty counters. A checksum follows."""

PLACES = (0, 256)
SIZE = 512
TRIES = 20


class Counters:
    """Counters that only grow. In a read-only directory nothing is counted.

    `check` is called under their lock before a change, and may refuse it.
    """

    def __init__(
        self, path: Path, files: Files | None = None, check: Callable[[], None] = lambda: None
    ) -> None:
        self._check = check
        self._fd: int | None = None
        self._writable = False
        self._map: mmap.mmap | None = None
        self._mutex = threading.Lock()  # threads of a process share a file lock
        try:
            self._fd, self._writable = (files or Files()).open_shared(path, SIZE)
            access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
            self._map = mmap.mmap(self._fd, SIZE, access=access)
        except (OSError, ValueError):  # a full disk, or a read-only directory that has none
            self.close()

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to some of the counters."""
        if self._map is None or self._fd is None or not self._writable:
            return
        with self.locked():
            self._check()
            number, place, values = self._latest()
            for name, count in counts.items():
                values[NAMES.index(name)] += count
            data = _COPY.pack(number + 1, *values)
            data += struct.pack("<I", google_crc32c.value(data))
            other = PLACES[1 - PLACES.index(place)]
            self._map[other : other + len(data)] = data

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the counters as they are."""
        if self._fd is None:
            yield
            return
        with self._mutex:
            fcntl.flock(self._fd, fcntl.LOCK_EX)  # covers this file only
            try:
                yield
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def all(self) -> dict[str, int]:
        """Every counter."""
        if self._map is None:
            return dict.fromkeys(NAMES, 0)
        _, _, values = self._latest()
        return dict(zip(NAMES, values, strict=False))

    def _latest(self) -> tuple[int, int, list[int]]:
        """Number, position and values of the last copy; all zero if none is valid."""
        assert self._map is not None
        for _ in range(TRIES):  # both may be in the middle of a change while they are read
            data, found = self._map[:SIZE], []
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
        """Close the file."""
        if self._map is not None:
            self._map.close()
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._map = None
