"""Verification of a stream: reads everything and lists each fault, without locks or changes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import Invalid
from penstock.streams.config import FILE, StreamConfig, read_config
from penstock.streams.cursors import SUFFIX as CURSOR
from penstock.streams.cursors import read_cursor
from penstock.streams.faults import Progress, Report, body_fault
from penstock.streams.files import read_at
from penstock.streams.frames import HEADER_SIZE, parse_header
from penstock.streams.local.recovery import survey
from penstock.streams.local.segments import (
    Found,
    Hole,
    Index,
    index_path,
    list_segments,
    load_index,
    read_rest,
    walk,
)
from penstock.streams.local.tail import Tail, parse_tail
from penstock.streams.repair.verify_sqlite import verify_database

TRIES = 20


def verify(directory: Path, progress: Progress = lambda done, total: None) -> Report:
    """Verify the log in a directory. The log may be in use: later appends are not checked."""
    report = Report()
    try:
        config = read_config(directory)
    except (OSError, ValueError, KeyError, TypeError, Invalid) as error:
        report.add("settings", FILE, 0, 0, f"the settings cannot be read: {error}")
        config = None
    if config is not None and config.spec.storage == "sqlite":
        verify_database(directory, report, progress)
    elif config is not None and config.spec.storage == "kafka":
        from penstock.streams.repair.verify_kafka import verify_topic  # needs the Kafka client

        verify_topic(directory, report, progress)
    else:
        _Local(directory, directories(directory, config), report, progress).verify()
    return report


def directories(directory: Path, config: StreamConfig | None) -> list[Path]:
    """The directories of a stream's segments."""
    return [directory, directory / "spill", *([config.memory] if config and config.memory else [])]


def read_tail(directory: Path) -> Tail | None:
    """The published end of a log, or None if there is no valid one."""
    for _ in range(TRIES):
        try:
            if (tail := parse_tail((directory / "tail").read_bytes())) is not None:
                return tail
        except OSError:
            return None
        time.sleep(0.001)  # it is being written
    return None


class _Local:
    """Reads a log of segments."""

    def __init__(self, directory: Path, places: list[Path], report: Report, progress: Progress) -> None:
        self._directory, self._places = directory, places
        self._report, self._progress = report, progress
        self._done = self._total = 0

    def verify(self) -> None:
        cursors = self._cursors()
        tail = read_tail(self._directory)
        if tail is None and list_segments(self._places):
            self._report.add(
                "tail", "tail", 0, 0, "no intact tail file; the end is searched for when the log is opened"
            )
        if tail is None or not tail.exact:
            tail = survey(self._places, tail, max(cursors, default=0)).tail
        segments = {base: path for base, path in list_segments(self._places).items() if base <= tail.base}
        first = self._first(tail)
        if not segments:
            self._missing(self._directory, first, tail.next)
            return
        self._total = sum(size(path) for path in segments.values())
        bases = list(segments)
        self._missing(segments[bases[0]], first, bases[0])
        for base, after in zip(bases, [*bases[1:], tail.next], strict=True):
            self._segment(segments[base], base, max(after, base), tail)

    def _first(self, tail: Tail) -> int:
        """The current start of the log: retention moves it before it removes a segment."""
        now = read_tail(self._directory)
        return max(tail.first, now.first if now is not None and now.exact else 0)

    def _cursors(self) -> list[int]:
        found = []
        for path in sorted((self._directory / "cursors").glob(f"*{CURSOR}")):
            if (cursor := read_cursor(path)) is not None:
                found.append(cursor.next)
            elif path.exists():
                name = f"cursors/{path.name}"
                self._report.add(
                    "cursor", name, 0, 0, "the cursor can't be read; its reader would start over"
                )
        return found

    def _segment(self, path: Path, base: int, limit: int, tail: Tail) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # removed by retention, or missing
            self._missing(path, max(base, self._first(tail)), limit)
            return
        try:
            active = base == tail.base
            whole = os.fstat(fd).st_size
            end = min(tail.position, whole) if active else whole
            self._report.segments += 1
            self._report.bytes += end
            frames = list(self._frames(fd, path, base, end, limit))
            if active and whole > end:
                self._report.add("torn_tail", path.name, limit, limit, torn(whole - end))
            if not active:
                self._index(path, base, end, limit, frames)
            self._done += whole - end
        finally:
            os.close(fd)

    def _frames(self, fd: int, path: Path, base: int, end: int, limit: int) -> Iterator[Found]:
        """Read every frame, and report its faults."""
        report, reached = self._report, base
        for found in walk(fd, 0, end, base, limit):
            if isinstance(found, Hole):
                reached = found.next
                self._hole(fd, path, found, end)
                self._advance(found.end - found.position)
                continue
            header, reached = found.header, found.header.next
            rest = read_rest(fd, found)
            if header.lost and header.count:
                report.add(
                    "lost", path.name, header.base, header.next, "the events were left out by a repair"
                )
            elif rest is None:
                what = "the checksum is wrong" if header.count else "producer state is damaged"
                report.add("damaged", path.name, header.base, header.next, what)
            elif header.count and (wrong := body_fault(memoryview(rest)[header.meta_size :], header.count)):
                report.add("body", path.name, header.base, header.next, f"the frame {wrong}")
            else:
                report.events += header.count
                yield found
            self._advance(header.size)
        self._missing(path, reached, limit)

    def _hole(self, fd: int, path: Path, hole: Hole, end: int) -> None:
        header = parse_header(read_at(fd, HEADER_SIZE, hole.position))
        if hole.first == hole.next and hole.end == end:
            message = torn(hole.end - hole.position)
            self._report.add("torn_tail", path.name, hole.first, hole.next, message)
        elif header is not None and header.base != hole.first:
            message = f"a frame begins at offset {header.base} instead of {hole.first}"
            self._report.add("order", path.name, hole.first, hole.next, message)
        else:
            self._report.add("damaged", path.name, hole.first, hole.next, "there is no frame")

    def _missing(self, path: Path, first: int, end: int) -> None:
        if first < end:
            message = "a segment, or the end of this one, is missing"
            self._report.add("missing", path.name, first, end, message)

    def _index(self, path: Path, base: int, end: int, limit: int, frames: list[Found]) -> None:
        index = load_index(path, base)
        if not path.exists():
            return  # retention has just removed both
        if index is None:
            there = "is damaged" if index_path(path).exists() else "is missing"
            self._report.add("index", index_path(path).name, base, limit, f"the index {there}")
        elif not index.covers(end, limit) or not agrees(index, frames):
            message = "the index doesn't match the segment"
            self._report.add("index", index_path(path).name, base, limit, message)

    def _advance(self, count: int) -> None:
        self._done += count
        self._progress(min(self._done, self._total), self._total)


def agrees(index: Index, frames: list[Found]) -> bool:
    """Whether an index matches the frames of its segment."""
    known = {found.position: found.header.base for found in frames}
    entries = zip(index.positions, index.offsets, strict=True)
    if any(known.get(position, offset) != offset for position, offset in entries):
        return False
    return not frames or index.end >= frames[-1].position + frames[-1].header.size


def torn(count: int) -> str:
    """The message about bytes that were never published."""
    return f"{count} bytes of an append that was never acknowledged; nothing is missing"


def size(path: Path) -> int:
    """The size of a file; 0 if it has been removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
