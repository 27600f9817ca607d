"""Retention: the age and size limits of a log, and its behavior when it is full."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from penstock.streams import clock
from penstock.streams.local.segments import index_path
from penstock.streams.storage import Full

if TYPE_CHECKING:
    from penstock.streams.local.storage import LocalStorage

log = structlog.get_logger()

SMALLEST_SEGMENT = 4 * 1024
SPILL = "spill"
PARTS = 8
"""The approximate number of segments of a capped log, since whole segments are removed."""


@dataclass(frozen=True)
class Closed:
    """A closed segment."""

    base: int
    next: int
    path: Path
    bytes: int

    @property
    def events(self) -> int:
        """The number of offsets that the segment covers."""
        return self.next - self.base


class Retention:
    """Applies the limits of a stream to its segments. The caller holds the stream's lock."""

    def __init__(self, storage: LocalStorage) -> None:
        self._storage = storage

    def segment_bytes(self, directory: Path) -> int:
        """The size at which a segment in a directory is closed."""
        wal, buffer = self._storage.spec.wal, self._storage.spec.buffer
        in_memory = self._storage.config.transient and directory != self._spill
        cap = buffer.max_bytes if in_memory else wal.retention_bytes
        part = max(cap // PARTS, min(cap, SMALLEST_SEGMENT)) if cap else wal.segment_bytes
        return min(wal.segment_bytes, part)

    def segment_events(self, directory: Path) -> int | None:
        """The number of events at which a segment in a directory is closed, if events are limited."""
        in_memory = self._storage.config.transient and directory != self._spill
        return max(1, self._storage.spec.buffer.max_events // PARTS) if in_memory else None

    def place(self, size: int, events: int) -> Path:
        """The directory for a segment with `size` more bytes; once events spilled, later ones spill too."""
        storage = self._storage
        if not storage.config.transient or storage.config.memory is None:
            return storage.directory
        memory = storage.config.memory
        size = max(size, self.segment_bytes(memory))
        events = max(events, self.segment_events(memory) or 0)
        if storage.spec.buffer.spill and (self._spilled() or self._in_memory_over(size, events)):
            return self._spill
        return memory

    @property
    def _spill(self) -> Path:
        return self._storage.directory / SPILL

    def _spilled(self) -> list[Closed]:
        return [segment for segment in self._storage.closed() if segment.path.parent == self._spill]

    def make_room(self, size: int, events: int) -> None:
        """Remove old segments to make room for an append; raises `Full` if that is not enough."""
        self._require_read(events)
        if self._storage.config.transient:
            self._make_room_in_memory(size, events)
        else:
            self._require_space(size)
            self._apply_caps(size)

    def _require_read(self, events: int) -> None:
        """Reject events beyond the unread limit. A single append may exceed it if all events were read."""
        most, tail = self._storage.spec.buffer.max_unread, self._storage.tail()
        if most is not None:
            unread = tail.next - max(self._slowest(otherwise=tail.first), tail.first)
            if unread and unread + events > most:
                raise Full("max_unread")

    def expire(self) -> None:
        """Remove segments beyond the age limit, and beyond the size limit unless a reader needs them."""
        self._expire_by_time()
        try:
            if self._storage.config.transient:
                self._drop_read(0, 0)
            else:
                self._apply_caps(0)
        except Full:
            return  # retained until it is read

    def _expire_by_time(self) -> None:
        keep_ms, now = self._storage.spec.wal.retention_ms, clock.now_us()
        if keep_ms is None:
            return
        closed, reached = self._storage.closed(), 0
        for i, segment in enumerate(closed):
            # If the clock went back, no append counts as older than earlier ones.
            reached = max(reached, self._closed_us(closed[i:], now))
            if now - reached < keep_ms * 1000:
                return
            self._remove(segment, "evicted_retention_ms")

    def _closed_us(self, closed: list[Closed], now: int) -> int:
        """The time of the first segment's last event; if it is in the future, that of the next segment."""
        tail = self._storage.tail()
        for segment in closed:
            index = self._storage.reader.index(segment.base, tail)
            if index is not None and 0 < index.last_us <= now:
                return index.last_us
        return now

    def _apply_caps(self, size: int) -> None:
        storage, wal = self._storage, self._storage.spec.wal
        kept = storage.closed()
        count, total = len(kept) + 1, sum(s.bytes for s in kept) + storage.tail().position + size
        active = storage.writer.active() if size and storage.writer.must_roll(size, 0) else None
        if active is not None:  # it will be closed, and another one created
            kept, count = [*kept, active], count + 1
        for segment in kept:
            if count > wal.max_segments:
                limit = "max_segments"
            elif wal.retention_bytes is not None and total > wal.retention_bytes:
                limit = "retention_bytes"
            else:
                return
            if wal.on_full == "block" and self._slowest(otherwise=0) < segment.next:
                raise Full(limit)
            if segment is active:
                return  # removed once it is closed
            self._remove(segment, f"evicted_{limit}")
            count, total = count - 1, total - segment.bytes

    def _make_room_in_memory(self, size: int, events: int) -> None:
        storage = self._storage
        if not self._overflows(size, events):
            return
        self._drop_read(size, events)
        if not self._overflows(size, events):
            return
        slowest = self._slowest(otherwise=storage.tail().next)
        left, spilled = storage.closed(), self._spilled()
        if storage.writer.must_roll(size, events):
            left = [*left, storage.writer.active()]
        if all(segment.next <= slowest for segment in left):
            return  # a single append may exceed the buffer: otherwise it could never be stored
        if not storage.spec.buffer.spill:
            raise Full("buffer_full")
        self._require_space(size)
        if storage.writer.active_in(self._spill):
            spilled.append(storage.writer.active())
        wal, more = storage.spec.wal, storage.writer.must_roll(size, events)
        total = sum(segment.bytes for segment in spilled) + size
        if len(spilled) + more > wal.max_segments or total > (wal.retention_bytes or total):
            raise Full("buffer_full")

    def _drop_read(self, size: int, events: int) -> None:
        """Remove segments that every reader has read until `size` bytes and `events` events fit."""
        storage = self._storage
        readers = storage.cursors()
        slowest = self._slowest(otherwise=storage.tail().next)
        for segment in storage.closed():
            if segment.next > slowest or not self._overflows(size, events):
                return
            self._remove(segment, None if readers else "dropped_no_reader")

    def _overflows(self, size: int, events: int) -> bool:
        """Whether `size` bytes and `events` events do not fit into memory, or only after making room."""
        spills = self.place(size, events) == self._spill
        return spills or self._in_memory_over(size, events)

    def _in_memory_over(self, size: int, events: int) -> bool:
        """Whether `size` bytes and `events` events would exceed the memory limit."""
        storage, tail = self._storage, self._storage.tail()
        memory, buffer = storage.config.memory, storage.spec.buffer
        kept = [segment for segment in storage.closed() if segment.path.parent == memory]
        if storage.writer.active_in(memory):
            size, events = size + tail.position, events + tail.next - tail.base
        bytes_over = size + sum(segment.bytes for segment in kept) > buffer.max_bytes
        return bytes_over or events + sum(segment.events for segment in kept) > buffer.max_events

    def _require_space(self, size: int) -> None:
        """Reject appends before the volume is full: reading, deleting and moving cursors need space too."""
        storage = self._storage
        if storage.files.free_bytes(storage.directory) < storage.config.free_bytes + size:
            self.expire()
            if storage.files.free_bytes(storage.directory) < storage.config.free_bytes + size:
                raise Full("disk_full")

    def _slowest(self, otherwise: int) -> int:
        """The offset up to which every reader has read."""
        return min((cursor.next for cursor in self._storage.cursors()), default=otherwise)

    def _remove(self, segment: Closed, reason: str | None) -> None:
        """Remove the oldest segment: first from the published range, then its files."""
        storage = self._storage
        if segment.next > storage.tail().first:  # else a process that has died since has already counted it
            unread = segment.next - max(self._slowest(otherwise=segment.next), segment.base)
            counts = {reason: segment.events} if reason else {}
            if unread > 0:
                counts["evicted_unread"] = unread
            storage.keep_cursors()
            storage.count(**counts)  # before the removal: after a crash it may be counted twice (invariant 5)
            storage.writer.move_first(segment.next)
        storage.files.step("retention delete")
        try:
            storage.files.remove(segment.path)
            storage.files.remove(index_path(segment.path))
        except OSError as error:  # retried with the next segment
            log.warning("a segment could not be removed", segment=segment.path.name, error=str(error))
