"""Reading a local log without any lock.

Events are read up to the tail; segments never change below it. Retention may remove a segment at any time: an
open descriptor stays valid, and a segment that can no longer be opened has been evicted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.streams.files import read_at
from penstock.streams.frames import HEADER_SIZE, decode_body
from penstock.streams.local.segments import (
    Found,
    Hole,
    Index,
    build_index,
    list_segments,
    load_index,
    peek_meta,
    read_meta,
    read_rest,
    walk,
)
from penstock.streams.local.tail import Tail
from penstock.streams.storage import Damaged, Place, Span

KEPT_OPEN = 8
"""The number of segments that a reader keeps open. It mostly reads them in order."""

_SHAPE = 4096
"""The size of most schemas or more, in bytes: a body begins with its schema."""


class OpenSegment:
    """A segment file, and the frames found in it so far."""

    def __init__(self, base: int, path: Path) -> None:
        self.base, self.path = base, path
        self.fd = -1
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.index = Index(base, base, 0, 0, 0)
        self.closed = False  # whether `index` belongs to a closed segment, and is final
        self._mutex = threading.Lock()

    def __del__(self) -> None:
        if self.fd >= 0:  # no reader uses it any more
            os.close(self.fd)

    def learn(self, end: int, limit: int, *, final: bool) -> Index:
        """Index the frames up to a position; `final` if the segment is closed."""
        with self._mutex:
            if final:
                if not (self.closed and self.index.covers(end, limit)):
                    kept = load_index(self.path, self.base)
                    whole = kept is not None and kept.covers(end, limit)
                    self.index = kept if kept and whole else build_index(self.fd, self.base, end, limit)
                self.closed = True
                return self.index
            if self.closed:  # recovery has made it the active segment again
                self.index, self.closed = Index(self.base, self.base, 0, 0, 0), False
            if self.index.end < end:
                for found in walk(self.fd, self.index.end, end, self.index.next, limit):
                    if isinstance(found, Found):
                        self.index.add(found)
                self.index.end, self.index.next = end, limit
            return self.index

    @property
    def removed(self) -> bool:
        """Whether the file was deleted."""
        return os.fstat(self.fd).st_nlink == 0


@dataclass(frozen=True)
class Token:
    """The place of a span's frame."""

    segment: OpenSegment
    found: Found


class Reader:
    """Reads events up to the tail."""

    def __init__(self, directories: Callable[[], list[Path]], tail: Callable[[], Tail]) -> None:
        self._directories, self._tail = directories, tail
        self._mutex = threading.Lock()
        self._listed: tuple[tuple[int, int], dict[int, Path]] | None = None
        self._open: dict[int, OpenSegment] = {}

    def segments(self, tail: Tail) -> dict[int, Path]:
        """The valid segments, by base offset."""
        with self._mutex:
            if self._listed is None or self._listed[0] != (tail.first, tail.base):
                return self._list(tail)
            return self._listed[1]

    def _list(self, tail: Tail) -> dict[int, Path]:
        found = list_segments(self._directories())
        kept = {base: path for base, path in found.items() if base <= tail.base}
        # The tail names the active segment just before the file is created.
        self._listed = ((tail.first, tail.base), kept) if tail.base in kept else None
        self._open = {base: one for base, one in self._open.items() if base in kept}
        return kept

    def spans(self, start: int) -> Iterator[Span]:
        """The spans from an offset up to the tail."""
        tail = self._tail()
        reached = start
        if start < tail.first:
            yield Span(start, tail.first, 0, 0, lost="evicted")
            reached = tail.first
        while reached < tail.next:
            for span in self._segment_spans(reached, tail):
                yield span
                reached = max(reached, span.next)

    def _segment_spans(self, start: int, tail: Tail) -> Iterator[Span]:
        """The spans of the segment that holds an offset."""
        bases = list(self.segments(tail))
        base = max((b for b in bases if b <= start), default=None)
        after = next((b for b in bases if b > start), tail.next)
        if base is None:  # retention has removed the segment since
            yield Span(start, after, 0, 0, lost="evicted")
            return
        limit = min(after, tail.next)
        segment = self._opened(base, tail)
        if segment is None:
            yield Span(start, limit, 0, 0, lost="evicted")
            return
        final = base != tail.base
        end = os.fstat(segment.fd).st_size if final else tail.position
        index = segment.learn(end, limit, final=final)
        position, offset = index.place(start)
        end = min(end, index.end)
        for found in walk(segment.fd, position, end, offset, limit):
            if isinstance(found, Hole):
                if found.first < found.next and found.next > start:
                    yield Span(found.first, found.next, 0, 0, lost="unreadable bytes")
                offset = found.next
            else:
                header = found.header
                offset = header.next
                if header.count and header.next > start:
                    lost = "left out by a repair" if header.lost else None
                    token = None if lost else Token(segment, found)
                    yield Span(header.base, header.next, header.time_us, header.raw_bytes, lost, token)
        if offset < limit:  # frames are missing at the end
            yield Span(max(start, offset), limit, 0, 0, lost="missing")

    def fetch(self, span: Span) -> pa.RecordBatch:
        """The events of a span."""
        if not isinstance(span.token, Token):
            raise Damaged(span.base, span.next, span.lost or "unknown")
        found = span.token.found
        rest = read_rest(span.token.segment.fd, found)
        if rest is None:
            raise Damaged(span.base, span.next, "wrong checksum")
        return decode_body(memoryview(rest)[found.header.meta_size :])

    def place(self, span: Span) -> Place | None:
        """The place of a span's frame; its schema is read, but its checksum is not verified."""
        if not isinstance(span.token, Token):
            return None
        segment, found = span.token.segment, span.token.found
        begin = found.position + HEADER_SIZE + found.header.meta_size
        data = read_at(segment.fd, min(_SHAPE, found.header.body_size), begin)
        size = 8 + int.from_bytes(data[4:8], "little")
        if _SHAPE < size <= found.header.body_size:
            data = read_at(segment.fd, size, begin)
        return Place(str(segment.path), found.position, found.position + found.header.size, data[:size])

    def frame(self, span: Span) -> bytes:
        """The stored frame of a span, without verification."""
        assert isinstance(span.token, Token)
        found = span.token.found
        return read_at(span.token.segment.fd, found.header.size, found.position)

    def marks(self, span: Span) -> list[list[Any]]:
        """The transaction marks in a frame, which is read only if it has any."""
        if not isinstance(span.token, Token):
            return []
        fd, found = span.token.segment.fd, span.token.found
        if not found.header.meta_size or b'"tx"' not in peek_meta(fd, found):
            return []
        marks: Any = read_meta(fd, found).get("tx", [])
        return list(marks)

    def offset_at(self, time_us: int) -> int:
        """The first offset of a frame that was appended at or after a time."""
        tail = self._tail()
        bases = list(self.segments(tail))
        for base, after in itertools.pairwise([*bases, tail.next]):
            segment = self._opened(base, tail)
            if segment is None:
                continue
            final = base != tail.base
            end = os.fstat(segment.fd).st_size if final else tail.position
            index = segment.learn(end, after, final=final)
            if index.last_us < time_us:
                continue
            position, offset = index.place_of_time(time_us)
            for found in walk(segment.fd, position, min(end, index.end), offset, after):
                header = found.header if isinstance(found, Found) else None
                if header and header.count and header.time_us >= time_us and header.next > tail.first:
                    return max(header.base, tail.first)
        return tail.next

    def index(self, base: int, tail: Tail) -> Index | None:
        """The index of a segment; None if the segment is gone."""
        bases = list(self.segments(tail))
        if base not in bases or (segment := self._opened(base, tail)) is None:
            return None
        after = next((b for b in bases if b > base), tail.next)
        final = base != tail.base
        return segment.learn(os.fstat(segment.fd).st_size if final else tail.position, after, final=final)

    @property
    def open_files(self) -> int:
        """The number of segments that are open."""
        return len(self._open)

    def forget(self) -> None:
        """Drop the cached listing and the open segments."""
        with self._mutex:
            self._listed = None
            self._open = {}

    def _opened(self, base: int, tail: Tail) -> OpenSegment | None:
        with self._mutex:
            found = self._open.pop(base, None)
            if found is None or found.removed:  # an empty segment may have been created again elsewhere
                found = self._open_anew(base, tail) or found
            if found is not None:
                self._open[base] = found  # the most recently used segment is the last
                while len(self._open) > KEPT_OPEN:
                    del self._open[next(iter(self._open))]
            return found

    def _open_anew(self, base: int, tail: Tail) -> OpenSegment | None:
        listed = self._listed[1] if self._listed else self._list(tail)
        with contextlib.suppress(FileNotFoundError, KeyError):
            return OpenSegment(base, listed[base])
        with contextlib.suppress(FileNotFoundError, KeyError):  # the listing may be outdated
            return OpenSegment(base, self._list(tail)[base])
        return None
