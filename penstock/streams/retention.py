"""What a log may keep: how long, how much, and what happens when it is full."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from penstock.streams import clock
from penstock.streams.segments import index_path
from penstock.streams.storage import Full

if TYPE_CHECKING:
    from penstock.streams.local import LocalStorage

log = structlog.get_logger()

SMALLEST_SEGMENT = 4 * 1024
PARTS = 8
"""A capped log is kept in about so many segments, since a whole one is removed at a time."""


@dataclass(frozen=True)
class Closed:
    """A closed segment."""

    base: int
    next: int
    path: Path
    bytes: int

    @property
    def events(self) -> int:
        """How many offsets it covers."""
        return self.next - self.base


class Retention:
    """Applies the limits of a stream to its segments. The caller holds the stream's lock."""

    def __init__(self, storage: LocalStorage) -> None:
        self._storage = storage

    @property
    def segment_bytes(self) -> int:
        """The size at which a segment is closed."""
        wal, buffer = self._storage.spec.wal, self._storage.spec.buffer
        cap = buffer.max_bytes if self._storage.config.transient else wal.retention_bytes
        part = max(cap // PARTS, min(cap, SMALLEST_SEGMENT)) if cap else wal.segment_bytes
        return min(wal.segment_bytes, part)

    @property
    def segment_events(self) -> int | None:
        """The number of events at which a segment is closed, where events are limited."""
        storage = self._storage
        return max(1, storage.spec.buffer.max_events // PARTS) if storage.config.transient else None

    def place(self) -> Path:
        """Where the next segment is made."""
        storage = self._storage
        if not storage.config.transient or storage.config.memory is None:
            return storage.directory
        if storage.spec.buffer.spill and self._in_memory_over(self.segment_bytes, self.segment_events or 0):
            return storage.directory / "spill"
        return storage.config.memory

    def make_room(self, size: int, events: int) -> None:
        """Remove what may go, so that an append finds room; raises `Full` if it does not."""
        if self._storage.config.transient:
            self._make_room_in_memory(size, events)
        else:
            self._require_space(size)
            self._apply_caps(size)

    def expire(self) -> None:
        """Remove what is too old, and what is too much unless somebody has to read it first."""
        self._expire_by_time()
        try:
            if self._storage.config.transient:
                self._make_room_in_memory(0, 0)
            else:
                self._apply_caps(0)
        except Full:
            return  # it may stay until it was read

    def _expire_by_time(self) -> None:
        keep_ms, now = self._storage.spec.wal.retention_ms, clock.now_us()
        if keep_ms is None:
            return
        closed, reached = self._storage.closed(), 0
        for i, segment in enumerate(closed):
            # A clock that went back makes nothing older than what was appended before.
            reached = max(reached, self._closed_us(closed[i:], now))
            if now - reached < keep_ms * 1000:
                return
            self._remove(segment, "evicted_retention_ms")

    def _closed_us(self, closed: list[Closed], now: int) -> int:
        """When the first of some segments got its last event. One from the future is as old as the next."""
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
        active = storage.active() if size and storage.must_roll(size) else None
        if active is not None:  # it is closed, and another one begun
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
                return  # it goes once it is closed
            self._remove(segment, f"evicted_{limit}")
            count, total = count - 1, total - segment.bytes

    def _make_room_in_memory(self, size: int, events: int) -> None:
        storage = self._storage
        if not self._in_memory_over(size, events):
            return
        readers = storage.cursors()
        slowest = self._slowest(otherwise=storage.tail().next)
        for segment in storage.closed():
            if segment.next > slowest:
                break
            self._remove(segment, None if readers else "dropped_no_reader")
            if not self._in_memory_over(size, events):
                return
        left = storage.closed()
        if storage.must_roll(size):
            left = [*left, storage.active()]
        if all(segment.next <= slowest for segment in left):
            return  # one append may be larger than the buffer, or it could never be made
        if not storage.spec.buffer.spill:
            raise Full("buffer_full")
        self._require_space(size)
        cap = storage.spec.wal.retention_bytes
        spilled = sum(segment.bytes for segment in left if segment.path.parent != storage.config.memory)
        if cap is not None and spilled + size > cap:
            raise Full("buffer_full")

    def _in_memory_over(self, size: int, events: int) -> bool:
        """Whether so much more would be more than memory may hold."""
        storage, tail = self._storage, self._storage.tail()
        memory, buffer = storage.config.memory, storage.spec.buffer
        kept = [segment for segment in storage.closed() if segment.path.parent == memory]
        if storage.active_in(memory):
            size, events = size + tail.position, events + tail.next - tail.base
        bytes_over = size + sum(segment.bytes for segment in kept) > buffer.max_bytes
        return bytes_over or events + sum(segment.events for segment in kept) > buffer.max_events

    def _require_space(self, size: int) -> None:
        """Refuse before the volume is full: reading, deleting and moving cursors need some room too."""
        storage = self._storage
        if storage.files.free_bytes(storage.directory) < storage.config.free_bytes + size:
            self.expire()
            if storage.files.free_bytes(storage.directory) < storage.config.free_bytes + size:
                raise Full("disk_full")

    def _slowest(self, otherwise: int) -> int:
        """The offset up to which every reader has read."""
        return min((cursor.next for cursor in self._storage.cursors()), default=otherwise)

    def _remove(self, segment: Closed, reason: str | None) -> None:
        """Remove the oldest segment: first nobody is sent to it any more, then its files go."""
        storage = self._storage
        if segment.next > storage.tail().first:  # else somebody who has died since has counted it
            unread = segment.next - max(self._slowest(otherwise=segment.next), segment.base)
            counts = {reason: segment.events} if reason else {}
            if unread > 0:
                counts["evicted_unread"] = unread
            storage.keep_cursors()
            storage.move_first(segment.next)
            storage.count(**counts)  # invariant 5
        storage.files.step("retention delete")
        try:
            storage.files.remove(segment.path)
            storage.files.remove(index_path(segment.path))
        except OSError as error:  # it is tried again with the next one
            log.warning("a segment could not be removed", segment=segment.path.name, error=str(error))
