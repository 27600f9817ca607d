"""A disk that forgets: the file layer over a real directory, with a record of what a power loss would leave.

What is written, created, renamed or removed is seen at once, as by an operating system that has it in
memory, but is only on the disk once it was synced. When the power is lost, every change that was not is
kept or forgotten by chance: names each for itself, content by sectors. Mapped files, which are never synced,
come back as anything. What lies outside the disk's own directory is memory, and simply gone.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from penstock.streams.files import Files


class PowerLoss(BaseException):
    """The power is gone. Not an `Exception`: nobody can deal with it."""


@dataclass
class Content:
    """A file on the disk, and the changes to it that are not there yet: writes, and sizes to cut to."""

    data: bytes = b""
    changes: list[tuple[int, bytes] | int] = field(default_factory=list)
    mapped: bool = False

    def sync(self) -> None:
        for change in self.changes:
            self._apply(change)
        self.changes = []

    def lose(self, chance: random.Random, sector: int) -> None:
        """Keep some of the changes, and of each write some of the sectors."""
        for change in self.changes:
            if isinstance(change, int):
                if chance.random() < 0.5:
                    self._apply(change)
                continue
            position, data = change
            keep = chance.choice((0.0, 0.5, 0.9, 1.0))
            at = 0
            while at < len(data):
                step = sector - (position + at) % sector
                if chance.random() < keep:
                    self._apply((position + at, data[at : at + step]))
                at += step
            if chance.random() < 0.3:  # the length is there, the content is not
                self.data = self.data.ljust(position + len(data), b"\0")
        self.changes = []

    def _apply(self, change: tuple[int, bytes] | int) -> None:
        if isinstance(change, int):
            self.data = self.data[:change].ljust(change, b"\0")
        else:
            position, data = change
            whole = self.data.ljust(position, b"\0")
            self.data = whole[:position] + data + whole[position + len(data) :]


@dataclass
class Directory:
    """The names in a directory on the disk, and the changes to them that are not there yet."""

    names: dict[str, Content | Directory] = field(default_factory=dict)
    changes: list[Callable[[dict[str, Content | Directory]], object]] = field(default_factory=list)

    def now(self) -> dict[str, Content | Directory]:
        names = dict(self.names)
        for change in self.changes:
            change(names)
        return names

    def sync(self) -> None:
        self.names, self.changes = self.now(), []

    def lose(self, chance: random.Random, sector: int) -> None:
        for change in self.changes:
            if chance.random() < 0.5:
                change(self.names)
        self.changes = []
        for entry in self.names.values():
            entry.lose(chance, sector)


class Disk(Files):
    """The file layer of a machine that may lose its power at any change."""

    def __init__(self, root: Path, memory: Path, chance: random.Random, sector: int = 64) -> None:
        self.root, self.memory, self._chance, self._sector = root, memory, chance, sector
        root.mkdir()
        self._top = Directory()
        self._files: dict[int, Content] = {}
        self.boots = 0
        self.left: int | None = None
        """Changes until the power is lost; None: it stays."""
        self.dead = False

    @property
    def boot_id(self) -> bytes:
        return self.boots.to_bytes(16, "little")

    def lose_power(self) -> None:
        """Forget what was not synced, and start again."""
        self._remember_mapped(self._top, self.root)
        self._top.lose(self._chance, self._sector)
        shutil.rmtree(self.memory, ignore_errors=True)
        shutil.rmtree(self.root)
        self._files = {}
        self._write(self._top, self.root)
        self.boots += 1
        self.left, self.dead = None, False

    def _remember_mapped(self, directory: Directory, path: Path) -> None:
        """A mapped file is what it was, what it is, empty, or nothing anybody has written."""
        for name, entry in directory.now().items():
            if isinstance(entry, Directory):
                self._remember_mapped(entry, path / name)
            elif entry.mapped and (path / name).exists():
                new = (path / name).read_bytes()
                garbage = self._chance.randbytes(len(new))
                entry.data = self._chance.choice((entry.data, new, bytes(len(new)), garbage, b""))

    def _write(self, directory: Directory, path: Path) -> None:
        path.mkdir()
        for name, entry in directory.names.items():
            if isinstance(entry, Directory):
                self._write(entry, path / name)
            else:
                (path / name).write_bytes(entry.data)
                self._files[(path / name).stat().st_ino] = entry

    def _change(self) -> bool:
        """Whether a change is made: it is not when there is no power any more."""
        if self.dead:
            return False
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.dead = True
                raise PowerLoss
        return True

    def _at(self, path: Path) -> Directory:
        found = self._top
        for name in path.relative_to(self.root).parts:
            entry = found.now()[name]
            assert isinstance(entry, Directory)
            found = entry
        return found

    def _named(self, path: Path, entry: Content | Directory) -> None:
        if path.is_relative_to(self.root):
            self._at(path.parent).changes.append(lambda names: names.update({path.name: entry}))

    # The file layer

    def create(self, path: Path) -> int:
        self._change()
        new = not path.exists()
        fd = super().create(path)
        if not self.dead:
            if new:
                content = self._files[os.fstat(fd).st_ino] = Content()
                self._named(path, content)
            else:
                self._files[os.fstat(fd).st_ino].changes.append(0)
        return fd

    def open_shared(self, path: Path, size: int) -> tuple[int, bool]:
        new = not path.exists()
        found = super().open_shared(path, size)
        if new and not self.dead:
            content = self._files[os.fstat(found[0]).st_ino] = Content(mapped=True)
            self._named(path, content)
        return found

    def pwrite(self, fd: int, data: memoryview | pa.Buffer, position: int) -> int:
        if self._change():
            self._files[os.fstat(fd).st_ino].changes.append((position, bytes(data)))
        return super().pwrite(fd, data, position)

    def truncate(self, fd: int, size: int) -> None:
        if self._change():
            self._files[os.fstat(fd).st_ino].changes.append(size)
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        if self._change():
            self._files[os.fstat(fd).st_ino].sync()

    def sync_directory(self, directory: Path) -> None:
        if self._change() and directory.is_relative_to(self.root):
            self._at(directory).sync()

    def mkdir(self, directory: Path) -> None:
        if self._change() and not directory.exists():
            self._named(directory, Directory())
        super().mkdir(directory)

    def rename(self, source: Path, target: Path) -> None:
        if self._change():
            if not source.is_relative_to(self.root):
                return super().rename(source, target)
            entry = self._at(source.parent).now()[source.name]

            def renamed(names: dict[str, Content | Directory]) -> None:
                names.pop(source.name, None)
                names[target.name] = entry

            self._at(source.parent).changes.append(renamed)
        return super().rename(source, target)

    def remove(self, path: Path) -> None:
        if path.exists() and self._change() and path.is_relative_to(self.root):
            self._at(path.parent).changes.append(lambda names: names.pop(path.name, None))
        super().remove(path)
