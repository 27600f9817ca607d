"""The file layer: every change the log makes to a disk goes through here.

The order of writes, syncs, renames and removals is visible here, and tests replace this layer to simulate a
disk that fails, tears a write or loses unsynced data, or a process that dies at a named step.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Files:
    """The operating system's files."""

    def step(self, name: str) -> None:
        """A named point between two changes. Does nothing, except in tests that kill the process."""

    def create(self, path: Path) -> int:
        """A descriptor of a new, empty file."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def open(self, path: Path) -> int:
        """A descriptor of an existing file, open for writing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def open_shared(self, path: Path, size: int) -> tuple[int, bool]:
        """A descriptor of a small file that processes map, created if missing, and whether it is writable."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:  # a read-only directory can still be read
            if not path.exists():
                raise
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC), False
        try:
            have = os.fstat(fd).st_size
            if have < size:  # ftruncate is not enough: a mapped page without disk space kills the process
                os.pwrite(fd, bytes(size - have), have)
        except BaseException:
            os.close(fd)
            raise
        return fd, True

    def write(self, fd: int, data: bytes | pa.Buffer, position: int) -> None:
        """Write all of `data`, or raise. After a short write, the next call raises the reason."""
        view = memoryview(data)
        while view:
            done = self.pwrite(fd, view, position)
            view, position = view[done:], position + done

    def pwrite(self, fd: int, data: memoryview, position: int) -> int:
        """One call of the operating system."""
        return os.pwrite(fd, data, position)

    def truncate(self, fd: int, size: int) -> None:
        """Truncate a file."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Return when the content of a file is on disk."""
        os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)

    def sync_directory(self, directory: Path) -> None:
        """Return when the entries of a directory are on disk."""
        with _opened(directory) as fd:
            os.fsync(fd)

    def sync_file(self, path: Path) -> None:
        """Return when the content of a finished file is on disk."""
        with _opened(path) as fd:
            self.sync(fd)

    def make_directory(self, directory: Path) -> None:
        """Create a directory and its parents, and return when their entries are on disk."""
        if directory.is_dir():
            return
        self.make_directory(directory.parent)
        self.mkdir(directory)
        self.sync_directory(directory.parent)

    def mkdir(self, directory: Path) -> None:
        """Create one directory, which may already exist."""
        directory.mkdir(exist_ok=True)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file, replacing an existing one of that name."""
        source.replace(target)

    def rename_durably(self, source: Path, target: Path) -> None:
        """Rename a file or a directory, and return when the new name and the content are on disk."""
        for path in [source, *source.rglob("*")]:
            if path.is_dir():
                self.sync_directory(path)
            else:
                self.sync_file(path)
        os.rename(source, target)
        self.sync_directory(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file, which may already be gone."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    def free_bytes(self, directory: Path) -> int:
        """The free space on the volume in bytes."""
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize

    def replace(self, path: Path, data: bytes, *, durable: bool, whole: bool = True) -> None:
        """Replace a small file atomically.

        After a power loss, a `durable` file has the new content, a `whole` file the new or the old content.
        """
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
        fd = self.create(temporary)
        try:
            self.write(fd, data, 0)
            if durable or whole:
                self.sync(fd)
        except BaseException:
            self.remove(temporary)
            raise
        finally:
            os.close(fd)
        self.step("rename")
        self.rename(temporary, path)
        if durable:
            self.step("directory sync")
            self.sync_directory(path.parent)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A file or a directory, open for reading."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def aside(path: Path) -> Path:
    """The new name of a damaged file: `x.damaged`, or `x.damaged-2` if that name is taken."""
    found = path.with_name(path.name + ".damaged")
    number = 1
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.damaged-{number}")
    return found


def read_at(fd: int, size: int, position: int) -> bytes:
    """Up to `size` bytes; fewer only at the end of the file."""
    data = os.pread(fd, size, position)
    if len(data) in (0, size):
        return data
    parts = [data]
    got = len(data)
    while got < size and (more := os.pread(fd, size - got, position + got)):
        parts.append(more)
        got += len(more)
    return b"".join(parts)
