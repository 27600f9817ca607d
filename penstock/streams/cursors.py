"""Cursors: the progress of each reader, in one small file per reader."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import google_crc32c

from penstock.streams.files import Files, aside
from penstock.streams.storage import Cursor, Fenced

SUFFIX = ".cursor"


class Cursors:
    """The cursors of a stream. `check` is called under the lock before a change, and may reject it."""

    def __init__(self, directory: Path, files: Files, check: Callable[[], None] = lambda: None) -> None:
        self._directory, self._files, self._check = directory, files, check

    def all(self) -> list[Cursor]:
        """Every cursor that can be read."""
        try:
            names = sorted(os.listdir(self._directory))
        except FileNotFoundError:
            return []
        found = (read_cursor(self._directory / name) for name in names if name.endswith(SUFFIX))
        return [cursor for cursor in found if cursor is not None]

    def move(self, cursor: Cursor, *, durable: bool, whole: bool = True) -> None:
        """Store a reader's progress; raises `Fenced` if a later epoch has stored its own (invariant 6).

        For `durable` and `whole` see `Files.replace`.
        """
        path = self._path(cursor.reader)
        with self.locked():
            self._check()
            known = read_cursor(path)
            if known is not None and known.epoch > cursor.epoch:
                raise Fenced(f"reader '{cursor.reader}' is at epoch {known.epoch}, not {cursor.epoch}")
            self._files.step("cursor")
            self._files.replace(path, encode_cursor(cursor), durable=durable, whole=whole)

    def forget(self, reader: str) -> None:
        """Remove a reader's cursor."""
        with self.locked():
            self._check()
            self._files.remove(self._path(reader))

    def set_aside(self) -> list[Path]:
        """Rename unreadable cursors; their readers start over."""
        kept = []
        with self.locked():
            for path in sorted(self._directory.glob(f"*{SUFFIX}")):
                if read_cursor(path) is None:
                    kept.append(aside(path))
                    self._files.rename(path, kept[-1])
            self.keep()
        return kept

    def keep(self) -> None:
        """Sync the directory, so that all cursors survive a power loss."""
        if self._directory.is_dir():
            self._files.sync_directory(self._directory)

    def _path(self, reader: str) -> Path:
        return self._directory / f"{quote(reader, safe=':')}{SUFFIX}"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock all cursors against changes."""
        self._files.make_directory(self._directory)
        fd = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)  # releases the lock, too


def encode_cursor(cursor: Cursor) -> bytes:
    """The content of a cursor file: a checksum and a line of JSON."""
    text = json.dumps(asdict(cursor)).encode()
    return b"%08x %s\n" % (google_crc32c.value(text), text)


def read_cursor(path: Path) -> Cursor | None:
    """The cursor in a file, or None if there is no valid one."""
    try:
        checksum, _, text = path.read_bytes().rstrip(b"\n").partition(b" ")
        if int(checksum, 16) != google_crc32c.value(text):
            return None
        return Cursor(**json.loads(text))
    except (OSError, ValueError, TypeError):
        return None
