"""Finding out how a log ends when no exact tail says so: after a power loss, or on a copied directory.

Nothing that can be read is given up, and no offset that anybody may have seen is given to another event:
where the end is in doubt, the log goes on after the highest offset that any witness remembers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.streams.files import read_at
from penstock.streams.frames import HEADER_SIZE, parse_header
from penstock.streams.producers import Producers
from penstock.streams.segments import Found, Hole, list_segments, read_meta, read_rest, walk
from penstock.streams.tail import Tail

UNBOUNDED = 2**63 - 1

OF_THE_LOCK = (".log.", ".index.", ".floor.")
"""What only the holder of a stream's lock writes; others may be at work on the rest."""


@dataclass(frozen=True)
class End:
    """How a segment ends."""

    next: int
    position: int
    damaged: int
    """Events in it that cannot be read any more."""
    seen: int
    """The highest offset that was in it, whether it can be read or not."""


@dataclass(frozen=True)
class Survey:
    """What is left of a log."""

    segments: list[tuple[int, Path]]
    tail: Tail
    """How it goes on: after the highest offset that anybody may have seen."""
    end: int
    """The offset at which the last segment really ends."""
    damaged: int
    """Events of the last segment that are lost."""


def survey(directories: list[Path], hint: Tail | None, witness: int, floor: int = 0) -> Survey:
    """See how a log ends, and change nothing.

    `hint` is a tail that may be old, `witness` an offset that was reached. Those below `floor` may have
    been given to events of which nothing is left to be seen; that many were not lost.
    """
    segments = list(list_segments(directories).items())
    published = hint.next if hint else 0
    reached = max(witness, published)
    if not segments:
        next = max(reached, floor)
        return Survey(segments, Tail(next, next, next, 0), next, 0)
    base, path = segments[-1]
    end = find_end(path, base, published)
    reached = max(reached, end.seen)
    next = max(reached, floor)
    first = min(max(segments[0][0], hint.first if hint else 0), next)
    return Survey(segments, Tail(first, next, base, end.position), end.next, end.damaged + reached - end.next)


def find_end(path: Path, base: int, published: int) -> End:
    """Read all of the last segment: a torn tail is left out, a damaged middle is counted.

    An append of which a part is missing is left out too, unless it is known to have been published.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        end, damaged, seen = End(base, 0, 0, base), 0, base
        for found in walk(fd, 0, size, base, UNBOUNDED):
            if isinstance(found, Hole):
                if found.end >= size:  # nothing sound comes after it: a torn tail
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


def count_damaged(fd: int, base: int, position: int, next: int) -> int:
    """How many events of a segment that ends at a position cannot be read."""
    damaged, reached = 0, base
    for found in walk(fd, 0, position, base, next):
        if isinstance(found, Hole):
            damaged, reached = damaged + found.next - found.first, found.next
        else:
            damaged += found.header.count if read_rest(fd, found) is None else 0
            reached = found.header.next
    return damaged + next - reached


def load_producers(segments: Sequence[tuple[int, Path]], next: int, position: int) -> Producers:
    """The state of the producers at the end of a log, whose last segment ends at a position.

    Each segment begins with the whole state, so mostly only the last one is read.
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
            follow(fd, 0, end, base, next if last else segments[i + 1][0], producers)
        finally:
            os.close(fd)
    return producers


def follow(fd: int, position: int, end: int, expected: int, limit: int, producers: Producers) -> None:
    """Take in what the frames between two positions say of their producers."""
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
    """What is left of changes that were not finished, and that only the holder of the lock makes."""
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
