"""The tail: the end of a log, shared by all processes through a mapped file.

A writer that holds the stream's lock publishes the tail after each append, and only then do readers see the
new events: by then the guarantee of the stream holds for them. Readers take no lock; a checksum reveals a
concurrent change.

The tail lives in the page cache. After a kill it is exact. After a power loss it is only a hint, so it
includes the boot id of the machine.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import google_crc32c

from penstock.streams.files import Files

MAGIC = b"PST1"
_TAIL = struct.Struct("<4s16sQQQQ")
SIZE = _TAIL.size + 4
TRIES = 200


@dataclass(frozen=True)
class Tail:
    """The beginning and the end of a log."""

    first: int
    next: int
    base: int
    """Base offset of the active segment."""
    position: int
    """The position at which that segment's last complete append ends."""
    boot: bytes = b""

    @property
    def exact(self) -> bool:
        """Whether nothing can have been lost since the tail was written."""
        return self.boot == boot_id()


class TailFile:
    """The mapped file, opened on first use, when `on_open` is called."""

    def __init__(
        self, path: Path, files: Files | None = None, on_open: Callable[[], None] = lambda: None
    ) -> None:
        self._path, self._files, self._on_open = path, files or Files(), on_open
        self._map: mmap.mmap | None = None
        self.writable = False
        self._resting, self._ended = True, False
        self._opening = threading.Lock()

    def open(self) -> None:
        """Map the file, read-only if it is not writable."""
        self._map_file()
        self._on_open()

    def _map_file(self) -> None:
        fd, writable = self._files.open_shared(self._path, SIZE)
        try:
            if os.fstat(fd).st_size >= SIZE:
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                self._map, self.writable = mmap.mmap(fd, SIZE, access=access), writable
                self._resting = False
        finally:
            os.close(fd)

    @property
    def is_open(self) -> bool:
        """Whether the file is mapped."""
        return self._map is not None

    def read(self) -> Tail | None:
        """The tail, or None if there is no valid one; raises ValueError if the file was closed."""
        mapped = self._map
        if mapped is None and (mapped := self._woken()) is None:
            return None
        for attempt in range(TRIES):
            data = mapped[:SIZE]
            if (tail := parse_tail(data)) is not None:
                return tail
            if not any(data):
                return None  # a new file
            if attempt > TRIES // 2:
                time.sleep(0.0001)
        return None

    def _woken(self) -> mmap.mmap | None:
        """The file, mapped again after `rest`; None if it is missing: the segments then show the end."""
        with self._opening:
            if self._ended:
                raise ValueError("the stream was closed")
            opens, self._resting = self._resting, False
            if opens:
                with contextlib.suppress(OSError):
                    self._map_file()
            mapped = self._map
        if opens:
            self._on_open()  # outside the lock: it may close files of other logs, which have their own locks
        return mapped

    def rest(self) -> None:
        """Close the file until its next use. A thread that is reading the tail keeps its mapping."""
        with self._opening:
            self._map, self.writable, self._resting = None, False, True

    def publish(self, tail: Tail) -> None:
        """Publish a tail. The caller holds the stream's lock."""
        assert self._map is not None
        data = _TAIL.pack(MAGIC, boot_id(), tail.first, tail.next, tail.base, tail.position)
        self._map[:SIZE] = data + struct.pack("<I", google_crc32c.value(data))

    def close(self) -> None:
        """Close the file for good."""
        with self._opening:
            self._ended = True
            if self._map is not None:
                self._map.close()


def parse_tail(data: bytes) -> Tail | None:
    """Parse the content of the file; None if it is not valid."""
    if len(data) != SIZE or data[:4] != MAGIC:
        return None
    if google_crc32c.value(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        return None
    _, boot, first, end, base, position = _TAIL.unpack_from(data)
    return Tail(first, end, base, position, boot)


@functools.cache
def boot_id() -> bytes:
    """The id of the machine's current boot."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        import psutil  # not Linux: the second of the boot serves as the id

        return int(psutil.boot_time()).to_bytes(16, "little")
