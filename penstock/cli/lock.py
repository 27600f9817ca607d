"""A lock that one process can hold. The operating system releases it when the process ends or crashes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import Conflict, Problem


class Taken(Conflict):
    """Another process holds the lock."""


class Lock:
    """An exclusive lock on a file, which also names its holder."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._descriptor)
        except OSError:
            os.close(self._descriptor)
            self._descriptor = None
            raise Taken(self._taken()) from None
        self.tell(f"pid {os.getpid()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            self.tell("")
            os.close(self._descriptor)  # releases the lock; the file stays, or there could be two locks

    def tell(self, text: str) -> None:
        """Write the holder of the lock into its file."""
        assert self._descriptor is not None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def _taken(self) -> Problem:
        try:
            holder = self.path.read_text(encoding="utf-8").strip()
        except OSError:
            holder = ""
        by = f" by {holder}" if holder else ""
        return Problem(code="locked", message=f"{self.what} is in use{by}", hint=f"the lock is {self.path}")


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the text, which other processes may read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
