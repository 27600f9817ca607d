"""The repaired content of a damaged segment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from penstock.streams.faults import body_fault
from penstock.streams.files import read_at
from penstock.streams.frames import Body, Frame
from penstock.streams.local.segments import Found, Hole, read_meta, read_rest, walk
from penstock.streams.producers import Producers

MOST = 2**32 - 1
"""The maximum number of events of a frame."""


def patched(fd: int, base: int, limit: int, producers: Callable[[], Producers]) -> Iterator[bytes]:
    """The frames of a closed segment, with frames that mark lost offsets in place of unreadable ones.

    `producers` returns the state of the producers at its beginning, in case that is damaged.
    """
    time_us = _first_time(fd, base, limit)
    reached, gap = base, 0  # lost offsets begin at `reached`, and `gap` bytes are available to mark them
    stateless = True
    for found, sound in _frames(fd, base, limit):
        if not sound:
            gap += found.end - found.position if isinstance(found, Hole) else found.header.size
            continue
        assert isinstance(found, Found)
        header = found.header
        stateless = stateless and not (header.control and "windows" in read_meta(fd, found))
        if gap or header.base > reached or stateless:
            yield _fill(reached, header.base, gap, time_us, producers().state() if stateless else None)
        yield read_at(fd, header.size, found.position)
        reached, gap, time_us, stateless = header.next, 0, header.time_us, False
    if reached < limit or stateless:
        yield _fill(reached, limit, gap, time_us, producers().state() if stateless else None)


def _frames(fd: int, base: int, limit: int) -> Iterator[tuple[Found | Hole, bool]]:
    """Every frame, and whether its events can be read."""
    for found in walk(fd, 0, os.fstat(fd).st_size, base, limit):
        if isinstance(found, Hole):
            yield found, False
            continue
        header, rest = found.header, read_rest(fd, found)
        yield (
            found,
            rest is not None
            and (
                not header.count
                or header.lost
                or body_fault(memoryview(rest)[header.meta_size :], header.count) is None
            ),
        )


def _fill(first: int, end: int, size: int, time_us: int, state: dict[str, object] | None) -> bytes:
    """Frames that mark lost offsets, and the producers' state, in exactly `size` bytes if they fit."""
    frames = [] if state is None else [Frame(first, time_us, Body(b"", 0, 0), state, control=True)]
    at = first
    while at < end or not frames:
        count = min(end - at, MOST)
        frames.append(Frame(at, time_us, Body(b"", count, 0), lost=True))
        at += count
    length = sum(_length(frame) for frame in frames)
    if length < size:  # the last frame fills the remaining bytes
        last = frames.pop()
        body = Body(bytes(size - length), last.body.count, 0)
        frames.append(Frame(last.base, time_us, body, last.meta, control=last.control, lost=last.lost))
    return b"".join(bytes(part) for frame in frames for part in frame.encode())


def _length(frame: Frame) -> int:
    return sum(len(part) for part in frame.encode())


def _first_time(fd: int, base: int, limit: int) -> int:
    """The time of the first readable frame, also used for offsets lost before it."""
    frames = (found for found, sound in _frames(fd, base, limit) if sound)
    return next((found.header.time_us for found in frames if isinstance(found, Found)), 0)
