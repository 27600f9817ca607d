"""Finding out how a log ends when no exact tail says so: after a power loss, or on a copied directory.

Nothing that can be read is given up, and no offset that anybody may have seen is given to another event:
where the end is in doubt, the log goes on after the highest offset that any witness remembers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.streams.producers import Producers
from penstock.streams.segments import Found, Hole, list_segments, read_meta, read_rest, walk

UNBOUNDED = 2**63 - 1


@dataclass(frozen=True)
class End:
    """How a segment ends."""

    next: int
    position: int
    damaged: int
    """Events in it that cannot be read any more."""


def find_end(path: Path, base: int) -> End:
    """Read all of the last segment: a torn tail is left out, a damaged middle is counted."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        end, damaged = End(base, 0, 0), 0
        for found in walk(fd, 0, size, base, UNBOUNDED):
            if isinstance(found, Hole):
                if found.end >= size:
                    break  # nothing sound comes after it: a torn tail
                damaged += found.next - found.first
                continue
            if read_rest(fd, found) is None:
                damaged += found.header.count
            if not found.header.more:  # else the append goes on: a part of it does not count
                end = End(found.header.next, found.position + found.header.size, damaged)
        return end
    finally:
        os.close(fd)


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
    """Files of changes that were not finished: temporary ones, and indexes without their segment."""
    segments = {path.with_suffix("") for path in list_segments(directories).values()}
    found = []
    for directory in directories:
        if directory.is_dir():
            for path in directory.iterdir():
                temporary = path.name.startswith(".") and path.suffix == ".tmp"
                orphan = path.suffix == ".index" and path.with_suffix("") not in segments
                if temporary or orphan:
                    found.append(path)
    return found
