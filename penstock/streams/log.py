"""A stream in a process: appending to it and reading it, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa

from penstock.specs.positions import Position
from penstock.streams.committer import Committer, Entry, Marks, Pending
from penstock.streams.frames import Body
from penstock.streams.pool import open_storage
from penstock.streams.storage import (
    Appended,
    Bounds,
    Cursor,
    Damaged,
    Moved,
    Producer,
    Progress,
    Span,
    Storage,
)

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Chunk:
    """Events that were read, or a range of offsets that could not be read, with the reason."""

    base: int
    next: int
    time_us: int
    batch: pa.RecordBatch | None
    lost: str | None = None


class Log:
    """A stream, for all threads of this process. Switches storages when the stream is moved."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._left: list[Storage] = []
        """Former storages of the stream: reads that have started there may continue."""
        self._following = threading.Lock()
        self._committer = Committer(storage, self._follow)

    @property
    def storage(self) -> Storage:
        """The current storage of the stream."""
        return self._follow() if self._storage.moved else self._storage

    @property
    def rests(self) -> bool:
        """Whether the log can be dropped without `close`: it closes its files while it is not used."""
        return self._storage.rests and not self._left

    def _follow(self) -> Storage:
        """Open the storage that the stream was moved to."""
        with self._following:
            if self._storage.moved:
                found = open_storage(self._storage.directory)
                self._left.append(self._storage)
                self._storage = self._committer.storage = found
            return self._storage

    def _there(self, act: Callable[[Storage], T]) -> T:
        """Call `act` with the current storage, again if the stream is moved in the meantime."""
        while True:
            try:
                return act(self.storage)
            except Moved:
                continue

    # Appending

    def append(
        self,
        batch: pa.RecordBatch,
        *,
        producer: Producer | None = None,
        tx: Marks = (),
        flush: bool = True,
        wait_s: float | None = None,
    ) -> Appended:
        """Append events and wait until the guarantee of the stream holds for them.

        `flush` writes immediately, without waiting for other appends to share the write. For the other
        arguments see `submit`.
        """
        pending = self.submit(batch, producer=producer, tx=tx, flush=flush, wait_s=wait_s)
        return self._committer.settled(pending, wait_s)

    def append_bodies(
        self, bodies: Sequence[Body], *, producer: Producer | None = None, wait_s: float | None = None
    ) -> Appended:
        """Append events that were encoded elsewhere, atomically."""
        return self._committer.settled(self.submit_bodies(bodies, producer=producer, wait_s=wait_s), wait_s)

    def submit(
        self,
        batch: pa.RecordBatch,
        *,
        producer: Producer | None = None,
        tx: Marks = (),
        flush: bool = False,
        wait_s: float | None = None,
    ) -> Pending:
        """Submit events; `future` gets their offsets once the guarantee of the stream holds for them.

        If the buffer is full, the stream's mode applies: `block` waits, and `drop` and `timeout` raise
        `Dropped`, the latter after its timeout. After `wait_s` seconds (None: never) raises `Backpressure`.
        """
        pending = Pending(batch.num_rows, batch.nbytes, batch, (), producer, tuple(tx), flush)
        self.put(pending, wait_s)
        return pending

    def submit_bodies(
        self, bodies: Sequence[Body], *, producer: Producer | None = None, wait_s: float | None = None
    ) -> Pending:
        """Submit events that were encoded elsewhere, to be written immediately."""
        events, size = sum(b.count for b in bodies), sum(b.raw_bytes for b in bodies)
        pending = Pending(events, size, bodies=bodies, producer=producer, flush=True)
        self.put(pending, wait_s)
        return pending

    def put(self, entry: Entry, wait_s: float | None) -> None:
        """Put an append into the buffer; for a full buffer see `submit`."""
        self._committer.submit(entry, wait_s)

    def withdraw(self, entry: Entry) -> bool:
        """Remove an append from the buffer; false if it is being written, or was."""
        return self._committer.withdraw(entry)

    @property
    def retry_after(self) -> float:
        """Seconds after which a rejected producer may retry."""
        return self._committer.retry_after

    @property
    def fill(self) -> dict[str, Any]:
        """The fill level of this process's buffer."""
        return self._committer.fill

    # Reading

    def bounds(self) -> Bounds:
        """The range of offsets that can be read now."""
        return self.storage.bounds()

    def unread(self) -> int:
        """The number of events that at least one reader has not read yet."""
        bounds = self.storage.last_bounds()
        read = min((cursor.next for cursor in self.storage.cursors()), default=bounds.first)
        return max(0, bounds.next - max(read, bounds.first))

    def resolve(self, position: Position) -> int:
        """The current offset of a position, which may have been evicted or not been written yet."""
        bounds = self.bounds()
        if position.kind == "offset":
            return position.offset or 0
        if position.kind == "time":
            assert position.time is not None
            return self.storage.offset_at((position.time - EPOCH) // timedelta(microseconds=1))
        return bounds.first if position.kind == "earliest" else bounds.next

    def read(self, start: int, stop: int | None = None) -> Iterator[Chunk]:
        """The events from `start` to `stop`, or to the current end; lost ranges are yielded as such."""
        stop = self.bounds().next if stop is None else stop
        if start >= stop:
            return
        first = self.bounds().first
        if start < first:
            yield Chunk(start, min(first, stop), 0, None, lost="evicted")
            start = first
        for span in self.storage.spans(start):
            if span.base >= stop:
                return
            yield self._chunk(span, max(start, span.base), min(span.next, stop))

    def _chunk(self, span: Span, begin: int, end: int) -> Chunk:
        if span.lost is not None:
            return Chunk(begin, end, span.time_us, None, span.lost)
        try:
            batch = self.storage.fetch(span)
        except Damaged as damage:
            return Chunk(begin, end, span.time_us, None, damage.reason)
        if (begin, end) != (span.base, span.next):
            batch = batch.slice(begin - span.base, end - begin)
        return Chunk(begin, end, span.time_us, batch)

    def wait(self, offset: int, seconds: float) -> bool:
        """Wait until there is an event at an offset; false if none has arrived after `seconds`."""
        return self.storage.wait(offset, seconds)

    # Readers, producers and counters

    def move_cursor(self, cursor: Cursor) -> None:
        """Store a reader's progress."""
        self._there(lambda storage: storage.move_cursor(cursor))

    def expect(self, readers: Collection[str]) -> None:
        """Retain events for readers that have not run yet."""
        self._there(lambda storage: storage.expect(readers))

    def forget_cursor(self, reader: str) -> None:
        """Remove a reader, so that no events are retained for it."""
        self._there(lambda storage: storage.forget_cursor(reader))

    def progress(self, producer: str) -> Progress:
        """The progress of a producer."""
        return self._there(lambda storage: storage.progress(producer))

    def count(self, **counts: int) -> None:
        """Add to the stream's counters (invariant 5)."""
        self._there(lambda storage: storage.count(**counts))

    def maintain(self) -> None:
        """Do periodic work."""
        self._there(lambda storage: storage.maintain())

    def close(self) -> None:
        """Write the buffered appends, then close the storage."""
        self._committer.close()
        for storage in (*self._left, self._storage):
            storage.close()
