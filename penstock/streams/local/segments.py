"""Segment files: iterating over frames, skipping damage, and the index of a closed segment."""

from __future__ import annotations

import bisect
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c

from penstock.streams.files import read_at
from penstock.streams.frames import HEADER_SIZE, MAGIC, Header, is_sound, parse_header, parse_meta

SUFFIX, INDEX_SUFFIX = ".log", ".index"
INDEX_MAGIC = b"PSI1"
INDEX_INTERVAL = 64 * 1024
"""Bytes of a segment per index entry."""

_SUMMARY = struct.Struct("<4sQQQQqqQ")
_ENTRY = struct.Struct("<QQq")
_SMALL_WINDOW, _LARGE_WINDOW, _SEARCH_WINDOW = 4 * 1024, 64 * 1024, 1024 * 1024


def segment_path(directory: Path, base: int) -> Path:
    """The file of the segment that begins at an offset."""
    return directory / f"{base:020d}{SUFFIX}"


def index_path(segment: Path) -> Path:
    """The index of a segment."""
    return segment.with_suffix(INDEX_SUFFIX)


def list_segments(directories: list[Path]) -> dict[int, Path]:
    """Every segment file by its base offset, in order."""
    found: dict[int, Path] = {}
    for directory in directories:
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            continue
        for name in names:
            stem, dot, rest = name.partition(".")
            if dot + rest == SUFFIX and stem.isdigit():
                found[int(stem)] = directory / name
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class Found:
    """A frame with a valid header."""

    position: int
    header: Header


@dataclass(frozen=True)
class Hole:
    """Bytes in which no frame was found: the offsets `first` to `next` are lost."""

    position: int
    end: int
    first: int
    next: int


def walk(fd: int, position: int, end: int, expected: int, limit: int) -> Iterator[Found | Hole]:
    """The frames between two positions, by their headers.

    `expected` is the offset at `position`, and `limit` an upper bound of the offset at `end`: a frame that
    contradicts them was never published, or is damaged.
    """
    window, at, width = b"", 0, _LARGE_WINDOW
    while position < end:
        if not at <= position <= at + len(window) - HEADER_SIZE:
            at, window = position, read_at(fd, min(width, end - position), position)
        header = parse_header(window, position - at)
        if header is None or header.base != expected or header.next > limit or position + header.size > end:
            found = _search(fd, position + 1, end, expected, limit)
            stop, resumed = (found.position, found.header.base) if found else (end, limit)
            if resumed > expected or found is None:
                yield Hole(position, stop, expected, resumed)
            position, expected = stop, resumed
            continue
        yield Found(position, header)
        width = _SMALL_WINDOW if header.size > _LARGE_WINDOW else _LARGE_WINDOW
        position, expected = position + header.size, header.next


def _search(fd: int, position: int, end: int, expected: int, limit: int) -> Found | None:
    """The next valid frame after damage."""
    while position < end:
        data = read_at(fd, min(_SEARCH_WINDOW + HEADER_SIZE, end - position), position)
        at = data.find(MAGIC)
        while at >= 0:
            header = parse_header(data, at)
            fits = header is not None and expected <= header.base and header.next <= limit
            if header is not None and fits and position + at + header.size <= end:
                return Found(position + at, header)
            at = data.find(MAGIC, at + 1)
        position += _SEARCH_WINDOW
    return None


def read_rest(fd: int, found: Found) -> bytes | None:
    """Meta and body of a frame, or None if the checksum does not match."""
    size = found.header.meta_size + found.header.body_size
    rest = read_at(fd, size, found.position + HEADER_SIZE)
    return rest if is_sound(found.header, rest) else None


def read_meta(fd: int, found: Found) -> dict[str, object]:
    """The meta of a frame; empty if it has none or the frame is damaged."""
    if not found.header.meta_size:
        return {}
    rest = read_rest(fd, found)
    return parse_meta(rest[: found.header.meta_size]) if rest is not None else {}


def peek_meta(fd: int, found: Found) -> bytes:
    """The meta of a frame, unchecked: the checksum would need the body too."""
    return read_at(fd, found.header.meta_size, found.position + HEADER_SIZE)


@dataclass
class Index:
    """The index of a closed segment: its bounds, and positions of some of its frames."""

    base: int
    next: int
    end: int
    """The position at which the last published frame ends."""
    first_us: int
    last_us: int
    raw_bytes: int = 0
    offsets: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """The latest time before each of these frames: it never decreases, even if the clock goes back."""

    def place(self, offset: int) -> tuple[int, int]:
        """The position from which to search for an offset, and the offset at that position."""
        i = bisect.bisect_right(self.offsets, offset) - 1
        return (self.positions[i], self.offsets[i]) if i >= 0 else (0, self.base)

    def place_of_time(self, time_us: int) -> tuple[int, int]:
        """The position from which to search for a time, and the offset at that position."""
        i = bisect.bisect_left(self.times, time_us) - 1
        return (self.positions[i], self.offsets[i]) if i >= 0 else (0, self.base)

    def covers(self, end: int, limit: int) -> bool:
        """Whether the index covers all of a segment; after recovery it may be outdated."""
        return self.end == end or self.next >= limit

    def add(self, found: Found) -> None:
        """Add the next frame."""
        header = found.header
        if not self.positions or found.position - self.positions[-1] >= INDEX_INTERVAL:
            # In this order, so that a concurrent search for an offset or a time also finds the position.
            self.positions.append(found.position)
            self.offsets.append(header.base)
            self.times.append(self.last_us)
        if header.count:
            self.first_us = self.first_us or header.time_us
            self.last_us = max(self.last_us, header.time_us)
        self.raw_bytes += header.raw_bytes

    def encode(self) -> bytes:
        """The content of an index file."""
        data = _SUMMARY.pack(
            INDEX_MAGIC,
            self.base,
            self.next,
            self.end,
            len(self.offsets),
            self.first_us,
            self.last_us,
            self.raw_bytes,
        )
        entries = zip(self.offsets, self.positions, self.times, strict=True)
        data += b"".join(_ENTRY.pack(*entry) for entry in entries)
        return data + struct.pack("<I", google_crc32c.value(data))


def build_index(fd: int, base: int, end: int, limit: int) -> Index:
    """The index of a segment, from its frames."""
    index = Index(base, limit, end, 0, 0)
    for found in walk(fd, 0, end, base, limit):
        if isinstance(found, Found):
            index.add(found)
    return index


def load_index(segment: Path, base: int) -> Index | None:
    """The stored index of a segment, or None if it is missing or damaged."""
    try:
        data = index_path(segment).read_bytes()
    except OSError:
        return None
    if len(data) < _SUMMARY.size + 4 or data[:4] != INDEX_MAGIC:
        return None
    if google_crc32c.value(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        return None
    _, found_base, stop, end, count, first_us, last_us, raw = _SUMMARY.unpack_from(data)
    if found_base != base or len(data) != _SUMMARY.size + count * _ENTRY.size + 4:
        return None
    entries = list(_ENTRY.iter_unpack(data[_SUMMARY.size : -4]))
    offsets, positions, times = ([entry[i] for entry in entries] for i in range(3))
    return Index(base, stop, end, first_us, last_us, raw, offsets, positions, times)
