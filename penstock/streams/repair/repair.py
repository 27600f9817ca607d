"""Repair of a stream's log, without losing a readable event.

A damaged segment is rewritten to a new file, which replaces the old one atomically. Unreadable parts are
replaced by frames of the same length that mark them as lost: nothing else moves, so that the index, and
readers that have the old file open, stay valid. Every offset keeps its event, or is reported as lost.
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
from penstock.streams.local.recovery import load_producers
from penstock.streams.local.segments import build_index, index_path, segment_path
from penstock.streams.local.storage import LocalStorage
from penstock.streams.repair.patch import patched
from penstock.streams.repair.repair_sqlite import repair_database
from penstock.streams.repair.verify import verify

BROKEN = ("damaged", "body", "order", "missing", "torn_tail")
"""Faults for which a segment is rewritten."""


@dataclass
class Repair:
    """The result of a repair."""

    repaired: list[Fault] = field(default_factory=list)
    """The faults that were found and repaired."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of offsets whose events could not be recovered."""
    kept: list[Path] = field(default_factory=list)
    """The damaged files, under their new names."""
    left: list[Fault] = field(default_factory=list)
    """The faults that could not be repaired."""


def repair(
    directory: Path,
    progress: Progress = lambda done, total: None,
    *,
    discard: bool = False,
    files: Files | None = None,
) -> Repair:
    """Repair the log in a directory. The log may be in use, and the repair may be interrupted and repeated.

    With `discard`, damaged files are deleted.
    """
    try:
        config = read_config(directory)
    except (OSError, ValueError, KeyError, TypeError, Invalid) as error:
        raise Invalid(
            Problem(
                code="stream_settings",
                message=f"the settings of the stream cannot be read: {error}",
                path=FILE,
                hint="start Penstock or save the stream again to rewrite its settings",
            )
        ) from error
    files = files or Files()
    with _only_one(directory):
        report = verify(directory, progress)
        result = Repair(repaired=[fault for fault in report.faults if fault.kind != "lost"])
        if config.spec.storage == "sqlite":
            result.kept = repair_database(directory, result.repaired, files, discard=discard)
        elif result.repaired and config.spec.storage == "local":
            _repair_local(directory, result, files, discard)
        if result.repaired:
            report = verify(directory)
            result.left = [fault for fault in report.faults if fault.kind != "lost"]
            result.repaired = [fault for fault in result.repaired if fault not in result.left]
        result.lost = [(fault.first, fault.next) for fault in report.faults if fault.kind == "lost"]
    return result


def _repair_local(directory: Path, result: Repair, files: Files, discard: bool) -> None:
    storage = LocalStorage(directory, files)
    try:
        storage.writer.settle(close=False)  # this also repairs the tail
        active = segment_path(directory, storage.tail().base).name
        faults = verify(directory).faults
        if any(fault.place == active and fault.kind in BROKEN for fault in faults):
            storage.writer.settle(close=True)
        faulty = {Path(fault.place).stem for fault in faults if fault.kind in (*BROKEN, "index")}
        for segment in storage.closed():
            if segment.path.stem in faulty:
                _rewrite(storage, segment.base, segment.next, segment.path, result, discard)
        with storage.writer.locked():  # nothing is known of offsets before the first segment
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


def _rewrite(storage: LocalStorage, base: int, limit: int, path: Path, result: Repair, discard: bool) -> None:
    """Rewrite a closed segment and its index."""
    files = storage.files
    before = [(b, p) for b, p in storage.reader.segments(storage.tail()).items() if b < base]
    temporary = path.with_name(f".{path.name}.repair.tmp")
    try:
        with contextlib.closing(_Descriptor(path)) as old:
            end = before[-1][1].stat().st_size if before else 0
            parts = patched(old.fd, base, limit, lambda: load_producers(before, base, end))
            files.step("repair")
            changed = _write(files, temporary, parts, old.fd)
        with storage.writer.locked(), contextlib.closing(_Descriptor(path)) as old:  # unless it was removed
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
    """Write the new segment and sync it; true if it differs from the old one."""
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
    """Give a damaged file a second name, unless an interrupted repair has already done so."""
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
    """Hold the lock that prevents a second repair."""
    fd = os.open(directory / "repair.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
