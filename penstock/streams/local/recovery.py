"""Recovery of the end of a log without an exact tail: after a power loss, or in a copied directory.

No readable event is lost, and no offset that a reader may have seen is assigned to another event: if the end
is in doubt, the log continues after the highest offset in any tail, cursor or segment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.streams.files import read_at
from penstock.streams.frames import HEADER_SIZE, parse_header
from penstock.streams.local.segments import Found, Hole, list_segments, read_meta, read_rest, walk
from penstock.streams.local.tail import Tail
from penstock.streams.producers import Producers

UNBOUNDED = 2**63 - 1

OF_THE_LOCK = (".log.", ".index.", ".floor.")
"""Patterns of files that only the holder of a stream's lock writes."""


@dataclass(frozen=True)
class End:
    """The end of a segment."""

    next: int
    position: int
    damaged: int
    """The number of unreadable events in the segment."""
    seen: int
    """The highest offset in the segment, readable or not."""


@dataclass(frozen=True)
class Survey:
    """The surviving contents of a log."""

    segments: list[tuple[int, Path]]
    tail: Tail
    """The tail to continue with: after the highest offset that a reader may have seen."""
    end: int
    """The offset at which the last segment actually ends."""
    damaged: int
    """The number of lost events in the last segment."""


def survey(directories: list[Path], hint: Tail | None, witness: int, floor: int = 0) -> Survey:
    """Find the end of a log, without changing anything.

    `hint` is a tail that may be outdated, `witness` an offset that is known to have been reached. Offsets
    below `floor` may have been assigned to events of a transient stream, and do not count as lost.
    """
    segments = list(list_segments(directories).items())
    published = hint.next if hint else 0
    reached = max(witness, published)
    if not segments:
        stop = max(reached, floor)
        return Survey(segments, Tail(stop, stop, stop, 0), stop, 0)
    base, path = segments[-1]
    end = find_end(path, base, published)
    reached = max(reached, end.seen)
    stop = max(reached, floor)
    first = min(max(segments[0][0], hint.first if hint else 0), stop)
    return Survey(segments, Tail(first, stop, base, end.position), end.next, end.damaged + reached - end.next)


def find_end(path: Path, base: int, published: int) -> End:
    """Read all of the last segment: a torn tail is left out, a damaged middle is counted.

    An incomplete append is left out too, unless it is known to have been published.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        end, damaged, seen = End(base, 0, 0, base), 0, base
        for found in walk(fd, 0, size, base, UNBOUNDED):
            if isinstance(found, Hole):
                if found.end >= size:  # no valid frame follows: a torn tail
                    torn = parse_header(read_at(fd, HEADER_SIZE, found.position))
                    seen = max(seen, torn.next if torn and torn.base == found.first else 0)
                    break
                damaged += found.next - found.first
                continue
            seen = found.header.next
            if read_rest(fd, found) is None:
                damaged += found.header.count
            if not found.header.more or seen <= published:
                end = End(seen, found.position + found.header.size, damaged, seen)
        return replace(end, seen=seen)
    finally:
        os.close(fd)


def count_damaged(fd: int, base: int, position: int, end: int) -> int:
    """The number of unreadable events in a segment that ends at a position."""
    damaged, reached = 0, base
    for found in walk(fd, 0, position, base, end):
        if isinstance(found, Hole):
            damaged, reached = damaged + found.next - found.first, found.next
        else:
            damaged += found.header.count if read_rest(fd, found) is None else 0
            reached = found.header.next
    return damaged + end - reached


def load_producers(segments: Sequence[tuple[int, Path]], stop: int, position: int) -> Producers:
    """The state of the producers at the end of a log, whose last segment ends at a position.

    Each segment begins with the whole state, so usually only the last segment is read.
    """
    begin = len(segments) - 1
    while begin > 0 and not _has_state(*segments[begin]):
        begin -= 1
    producers = Producers()
    for i in range(max(begin, 0), len(segments)):
        base, path = segments[i]
        last = i == len(segments) - 1
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            end = position if last else os.fstat(fd).st_size
            follow(fd, 0, end, base, stop if last else segments[i + 1][0], producers)
        finally:
            os.close(fd)
    return producers


def follow(fd: int, position: int, end: int, expected: int, limit: int, producers: Producers) -> None:
    """Update the producers from the frames between two positions."""
    for found in walk(fd, position, end, expected, limit):
        if isinstance(found, Found) and found.header.meta_size:
            producers.note_meta(read_meta(fd, found))


def _has_state(base: int, path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        first = next(walk(fd, 0, os.fstat(fd).st_size, base, UNBOUNDED), None)
        return isinstance(first, Found) and first.header.control and read_rest(fd, first) is not None
    finally:
        os.close(fd)


def leftovers(directories: list[Path]) -> list[Path]:
    """Files of unfinished changes. Only the holder of the lock creates such files."""
    segments = {path.with_suffix("") for path in list_segments(directories).values()}
    found = []
    for directory in directories:
        if directory.is_dir():
            for path in directory.iterdir():
                temporary = path.suffix == ".tmp" and any(part in path.name for part in OF_THE_LOCK)
                orphan = path.suffix == ".index" and path.with_suffix("") not in segments
                if temporary or orphan:
                    found.append(path)
    return found
