"""The lock of a stream: one process appends at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from penstock.streams.files import Files


class StreamLock:
    """A lock between processes, not between the threads of one process."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path, self._files = path, files
        self._fd: int | None = None
        self._pid = -1

    def take(self) -> None:
        """Wait for the lock; raises OSError if the lock file is missing and cannot be created."""
        if self._fd is None or self._pid != os.getpid():
            # A forked process shares the lock of its parent, and would not be locked out by it.
            self._fd, self._pid = self._files.open_shared(self._path, 0)[0], os.getpid()
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    @property
    def is_open(self) -> bool:
        """Whether the file is open."""
        return self._fd is not None

    def release(self) -> None:
        """Release the lock."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
