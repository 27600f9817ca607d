"""The file descriptors of a process's logs: above a limit, the least recently used logs close their files.

Such a log stays usable: its next use opens its files again. So a process with 1,024 descriptors serves any
number of streams.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Protocol

if sys.platform != "win32":
    import resource

SHARE = 3
"""Logs get a third of the descriptors of a process, client connections another (`api/traffic.py`)."""

MOST = 4096
"""The maximum number of descriptors for logs, even if the system grants more: each also costs memory."""

ROOM = 0.75
"""The fraction of the limit in use after logs have closed files, so that not every use closes one."""


class Resting(Protocol):
    """A storage that can close its files while it is not used."""

    used: bool
    """Whether the storage was used since it was last considered for closing."""

    @property
    def open_files(self) -> int:
        """The number of open descriptors."""

    def rest(self) -> bool:
        """Close the files; false if a thread is writing to the storage."""


class OpenFiles:
    """The storages with open files, in the order in which they were opened."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._mutex = threading.Lock()
        self._open: dict[Resting, None] = {}

    @property
    def limit(self) -> int:
        """The number of descriptors that logs may use."""
        return self._most or min(MOST, descriptors() // SHARE)

    def opened(self, storage: Resting) -> None:
        """Register a storage that has just opened its files, and close files of others above the limit."""
        storage.used = True
        with self._mutex:
            self._open[storage] = None
            excess = sum(each.open_files for each in self._open) - self.limit
            candidates = [each for each in self._open if each is not storage] if excess > 0 else []
        if candidates:
            self._close_some(candidates, excess + int(self.limit * (1 - ROOM)))

    def closed(self, storage: Resting) -> None:
        """Remove a storage that has no open files."""
        with self._mutex:
            self._open.pop(storage, None)

    def _close_some(self, candidates: list[Resting], wanted: int) -> None:
        """Close files until `wanted` descriptors are free; storages used recently get a second chance."""
        for storage in [*candidates, *candidates]:
            if wanted <= 0:
                return
            if storage.used:
                storage.used = False
                continue
            before = storage.open_files
            if before and storage.rest():
                wanted -= before - storage.open_files
                self.closed(storage)

    def forget_all(self) -> None:
        """Reset the state in a forked process, whose parent may have held the lock."""
        self._mutex, self._open = threading.Lock(), {}


def descriptors() -> int:
    """The maximum number of descriptors of this process."""
    if sys.platform == "win32":
        return 8192
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft > 0 else 1 << 20  # no limit


OPEN_FILES = OpenFiles()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OPEN_FILES.forget_all)
