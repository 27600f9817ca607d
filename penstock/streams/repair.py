"""Mending what is wrong with the log of a stream, without losing an event that can be read.

A segment with damage is written anew beside itself and takes its own place at once. In the place of what
could not be read stands a frame that says so, of the same length: nothing else moves, so that readers that
have the old file open, and the index, stay right. Every offset keeps its event, or is told as lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import Invalid, Problem
from penstock.streams.config import FILE, read_config
from penstock.streams.faults import Fault, Progress
from penstock.streams.files import Files, aside
from penstock.streams.local import LocalStorage
from penstock.streams.patch import patched
from penstock.streams.recovery import load_producers
from penstock.streams.repair_sqlite import repair_database
from penstock.streams.segments import build_index, index_path, segment_path
from penstock.streams.verify import verify

BROKEN = ("damaged", "body", "order", "missing", "torn_tail")
"""Faults for which a segment is written anew."""


@dataclass
class Repair:
    """What was done."""

    mended: list[Fault] = field(default_factory=list)
    """Each fault that was found, and is gone now."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of offsets whose events could not be saved."""
    kept: list[Path] = field(default_factory=list)
    """What was damaged, under its new name."""
    left: list[Fault] = field(default_factory=list)
    """What could not be mended now."""


def repair(
    directory: Path,
    progress: Progress = lambda done, total: None,
    *,
    discard: bool = False,
    files: Files | None = None,
) -> Repair:
    """Mend the log in a directory. It may be in use, and may be stopped at any moment and done again.

    `discard` keeps nothing of what was damaged.
    """
    try:
        config = read_config(directory)
    except (OSError, ValueError, KeyError, TypeError, Invalid) as error:
        raise Invalid(
            Problem(
                code="stream_settings",
                message=f"the settings of the stream cannot be read: {error}",
                path=FILE,
                hint="start Penstock, or save the stream again: its settings are then written anew",
            )
        ) from error
    files = files or Files()
    with _only_one(directory):
        report = verify(directory, progress)
        result = Repair(mended=[fault for fault in report.faults if fault.kind != "lost"])
        if config.spec.storage == "sqlite":
            result.kept = repair_database(directory, result.mended, files, discard=discard)
        elif result.mended:
            _repair_local(directory, result, files, discard)
        if result.mended:
            report = verify(directory)
            result.left = [fault for fault in report.faults if fault.kind != "lost"]
            result.mended = [fault for fault in result.mended if fault not in result.left]
        result.lost = [(fault.first, fault.next) for fault in report.faults if fault.kind == "lost"]
    return result


def _repair_local(directory: Path, result: Repair, files: Files, discard: bool) -> None:
    storage = LocalStorage(directory, files)
    try:
        storage.writer.settle(close=False)  # and the tail is mended, too
        active = segment_path(directory, storage.tail().base).name
        faults = verify(directory).faults
        if any(fault.place == active and fault.kind in BROKEN for fault in faults):
            storage.writer.settle(close=True)
        faulty = {Path(fault.place).stem for fault in faults if fault.kind in (*BROKEN, "index")}
        for segment in storage.closed():
            if segment.path.stem in faulty:
                _mend(storage, segment.base, segment.next, segment.path, result, discard)
        with storage.writer.locked():  # nothing tells of what lay before the first segment
            first = min(storage.reader.segments(storage.tail()))
            if storage.tail().first < first:
                storage.count(damaged=first - storage.tail().first)
                storage.writer.move_first(first)
        kept = storage.set_cursors_aside()
        for path in kept if discard else ():
            files.remove(path)
        result.kept += [] if discard else kept
    finally:
        storage.close()


def _mend(storage: LocalStorage, base: int, limit: int, path: Path, result: Repair, discard: bool) -> None:
    """Write a closed segment and its index anew."""
    files = storage.files
    before = [(b, p) for b, p in storage.reader.segments(storage.tail()).items() if b < base]
    temporary = path.with_name(f".{path.name}.repair.tmp")
    try:
        with contextlib.closing(_Descriptor(path)) as old:
            end = before[-1][1].stat().st_size if before else 0
            parts = patched(old.fd, base, limit, lambda: load_producers(before, base, end))
            files.step("repair")
            changed = _write(files, temporary, parts, old.fd)
        with storage.writer.locked(), contextlib.closing(_Descriptor(path)) as old:  # retention may be faster
            if changed:
                if not discard:
                    result.kept.append(_keep(path))
                files.step("repair swap")
                files.rename(temporary, path)
                files.sync_directory(path.parent)
            files.step("repair index")
            with contextlib.closing(_Descriptor(path)) as new:
                data = build_index(new.fd, base, os.fstat(new.fd).st_size, limit).encode()
            files.replace(index_path(path), data, durable=True)
    except FileNotFoundError:
        return
    finally:
        files.remove(temporary)
        storage.reader.forget()


def _write(files: Files, path: Path, parts: Iterator[bytes], old: int) -> bool:
    """Write the new segment and have it on disk; whether it is another one than the old."""
    fd = files.create(path)
    changed, position = False, 0
    try:
        for part in parts:
            changed = changed or os.pread(old, len(part), position) != part
            files.write(fd, part, position)
            position += len(part)
        files.sync(fd)
    finally:
        os.close(fd)
    return changed or position != os.fstat(old).st_size


def _keep(path: Path) -> Path:
    """Give a damaged file a second name; an interrupted repair may have done so already."""
    for kept in path.parent.glob(f"{path.name}.damaged*"):
        if kept.samefile(path):
            return kept
    kept = aside(path)
    os.link(path, kept)
    return kept


class _Descriptor:
    """An open file, for `closing`."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self.fd)


@contextlib.contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Two repairs at once would be in each other's way."""
    fd = os.open(directory / "repair.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
