"""Counters of a stream, shared by all processes and kept over restarts."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Mapping
from pathlib import Path

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
)
"""In the order of the file: new ones go to the end."""

_SLOT = struct.Struct("<Q")
SIZE = 512
MOST = 2**64 - 1


class Counters:
    """Numbers that only grow. Where nothing can be written, nothing is counted."""

    def __init__(self, path: Path, files: Files | None = None) -> None:
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
        with self._mutex:
            fcntl.flock(self._fd, fcntl.LOCK_EX)  # of this file alone, and never held for long
            try:
                for name, count in counts.items():
                    at = NAMES.index(name) * _SLOT.size
                    total = _SLOT.unpack_from(self._map, at)[0] + count
                    _SLOT.pack_into(self._map, at, min(total, MOST))  # a damaged one must not stop appends
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def all(self) -> dict[str, int]:
        """Every counter."""
        if self._map is None:
            return dict.fromkeys(NAMES, 0)
        return {name: _SLOT.unpack_from(self._map, i * _SLOT.size)[0] for i, name in enumerate(NAMES)}

    def close(self) -> None:
        """Let go of the file."""
        if self._map is not None:
            self._map.close()
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._map = None
