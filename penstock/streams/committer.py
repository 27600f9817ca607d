"""The bounded buffer in front of a storage, and its group commit.

Appends of all threads wait in one buffer; a thread writes all of them with one call and one sync, and returns
the offsets to each append. While the thread writes, the next group accumulates.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import structlog

from penstock.errors import Backpressure
from penstock.streams.events import Event
from penstock.streams.frames import Body, Placed, encode_body, slices
from penstock.streams.storage import (
    FLUSH_S,
    Append,
    Appended,
    Full,
    Moved,
    Producer,
    Refusal,
    Storage,
    WriteFailed,
)

logger = structlog.get_logger()

IDLE_S = 10.0
"""Seconds after which an idle committer ends; the next append starts another."""

RETRY_S = 0.02
"""Seconds between two attempts to write to a full stream."""

MOST_USUAL, FORGOTTEN = 1_000.0, 0.9
"""A group stops waiting when it has as many appends as recent groups: most callers wait for a result before
their next append, so no more are expected. The remembered number decays."""

LOOK_S = 0.25
"""Seconds between two checks for changed settings while an append waits."""


Marks = Sequence[tuple[int, int, str, bool]]
"""Transactions of the source in an append, in the format of `Append.tx`."""


class Dropped(Exception):
    """Events were dropped according to the stream's settings, and counted."""

    def __init__(self, reason: str, events: int, retry_after: float) -> None:
        super().__init__(f"{events} events were dropped: {reason.replace('_', ' ')}")
        self.reason, self.events, self.retry_after = reason, events, retry_after


class Closed(Exception):
    """The log was closed while an append waited."""


@dataclass(eq=False)
class Entry(ABC):
    """An append in the buffer. One of `batch`, `bodies` and `event` holds the events."""

    events: int
    bytes: int
    batch: pa.RecordBatch | None = None
    bodies: Sequence[Body] = ()
    producer: Producer | None = None
    tx: tuple[tuple[int, int, str, bool], ...] = ()
    flush: bool = False
    event: Event | None = None
    since: float = field(default_factory=time.monotonic)

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the events; None if they were encoded elsewhere."""
        if self.event is not None:
            return self.event.form.schema
        return None if self.batch is None else self.batch.schema

    @abstractmethod
    def tell(self, result: Appended) -> None:
        """Acknowledge the append."""

    @abstractmethod
    def refuse(self, error: BaseException) -> None:
        """Fail the append with an error."""


@dataclass(eq=False)
class Pending(Entry):
    """An append with a future, for threads that wait for its result."""

    future: Future[Appended] = field(default_factory=Future)

    def tell(self, result: Appended) -> None:
        """Acknowledge the append, unless its future was cancelled."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_result(result)

    def refuse(self, error: BaseException) -> None:
        """Fail the append with an error."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)


class Committer:
    """Buffers appends, and writes them in groups."""

    def __init__(self, storage: Storage, follow: Callable[[], Storage]) -> None:
        self.storage = storage
        """The storage that appends are written to; `follow` replaces it after the stream has moved."""
        self._follow = follow
        self._queue: collections.deque[Entry] = collections.deque()
        self._held_events = self._held_bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._full: str | None = None
        self._wanted = False  # whether an append waits for room: groups are then written without delay
        self._usual = MOST_USUAL

    def submit(self, entry: Entry, wait_s: float | None) -> None:
        """Add an append to the buffer. If it is full, the stream's mode applies, up to `wait_s` seconds."""
        with self._changed:
            if not self._queue or self._is_full(entry):
                self.storage.refresh()  # once per group, to apply the current limits
            if self._is_full(entry):
                self._wait_for_room(entry, wait_s)
            if self._closing:
                raise Closed
            self._held_events += entry.events
            self._held_bytes += entry.bytes
            self._queue.append(entry)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._commit_all, name="committer", daemon=True)
                self._thread.start()
            if len(self._queue) == 1 or entry.flush or self._is_complete():
                self._changed.notify_all()  # else the committer would keep waiting

    def withdraw(self, entry: Entry) -> bool:
        """Remove an append from the buffer; false if it is being written, or was."""
        with self._changed:
            if entry not in self._queue:
                return False
            self._queue.remove(entry)
            self._release(entry)
            return True

    def settled(self, pending: Pending, wait_s: float | None) -> Appended:
        """Wait for an append; withdraw it if the stream has had no room for it for `wait_s` seconds."""
        while True:
            left = None if wait_s is None else pending.since + wait_s - time.monotonic()
            try:
                return pending.future.result(None if left is None else max(left, RETRY_S))
            except TimeoutError:
                if pending.future.done():
                    raise
                if self._full and self.withdraw(pending):
                    raise self._backpressure() from None

    @property
    def fill(self) -> dict[str, Any]:
        """The fill level of this process's buffer."""
        with self._changed:
            return {"events": self._held_events, "bytes": self._held_bytes, "full": self._full}

    def close(self) -> None:
        """Write the buffered appends, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    # Room

    def _is_full(self, entry: Entry) -> bool:
        buffer = self.storage.spec.buffer
        if not self._held_events:
            return False  # an append larger than the buffer has to be accepted at some time
        return (
            self._held_events + entry.events > buffer.max_events
            or self._held_bytes + entry.bytes > buffer.max_bytes
        )

    def _wait_for_room(self, entry: Entry, wait_s: float | None) -> None:
        self._wanted = True
        self._changed.notify_all()
        while self._is_full(entry) and not self._closing:
            buffer = self.storage.spec.buffer
            patience = {"drop": 0.0, "timeout": buffer.timeout_ms / 1000}.get(buffer.mode)
            leaves = wait_s is not None and (patience is None or wait_s < patience)
            patience = wait_s if leaves else patience
            left = LOOK_S if patience is None else entry.since + patience - time.monotonic()
            if left <= 0:
                if leaves:
                    raise self._backpressure()
                raise self._drop(entry, "buffer_full" if buffer.mode == "drop" else "timeout")
            self._changed.wait(min(left, LOOK_S))
            self.storage.refresh()

    def _backpressure(self) -> Backpressure:
        return Backpressure(f"the buffer is full ({self._full or 'busy'})", self.retry_after)

    def _drop(self, entry: Entry, reason: str) -> Dropped:
        """Drop an append, and count and log it (invariant 5)."""
        if reason == "timeout":
            self._count(dropped_timeout=entry.events)
        else:
            self._count(dropped_buffer_full=entry.events)
        return Dropped(reason, entry.events, self.retry_after)

    def _count(self, **counts: int) -> None:
        try:
            self.storage.count(**counts)
        except Moved:
            self._follow().count(**counts)

    def _release(self, *done: Entry) -> None:
        self._held_events -= sum(entry.events for entry in done)
        self._held_bytes -= sum(entry.bytes for entry in done)
        self._changed.notify_all()

    @property
    def retry_after(self) -> float:
        """Seconds after which a rejected producer may retry."""
        return 5.0 if self._full else 1.0

    # Groups

    def _commit_all(self) -> None:
        while True:
            with self._changed:
                if not self._await_work():
                    self._thread = None
                    return
                group = self._take()
            try:
                self._commit(group)
            except Full as full:
                self._put_back(group, full)
            except BaseException as error:
                self._fail(group, error)
            else:
                self._full = None

    def _await_work(self) -> bool:
        """Wait for a complete group; false if the committer should end."""
        idle_s = 0.0
        while True:
            if self._queue:
                if (left := self._linger_s()) <= 0:
                    return True
                self._changed.wait(min(left, LOOK_S))
                self.storage.refresh()
                continue
            if self._closing or idle_s >= IDLE_S:
                return False
            if not self._changed.wait(FLUSH_S):
                idle_s += FLUSH_S
                self._changed.release()
                try:
                    self.storage.flush()
                except Exception as error:  # the next write reports it to its callers
                    logger.error("a stream was not flushed", error=str(error))
                finally:
                    self._changed.acquire()

    def _linger_s(self) -> float:
        """Seconds for which the first append still waits for others."""
        batch = self.storage.spec.wal.batch
        if self._closing or self._wanted or self._is_complete():
            return 0.0
        if any(entry.flush for entry in self._queue):
            return 0.0
        return batch.max_ms / 1000 - (time.monotonic() - self._queue[0].since)

    def _is_complete(self) -> bool:
        """Whether the buffered appends fill a group, or the buffer is full."""
        batch, buffer = self.storage.spec.wal.batch, self.storage.spec.buffer
        return (
            self._held_events >= min(batch.max_events, buffer.max_events)
            or self._held_bytes >= min(batch.max_bytes, buffer.max_bytes)
            or len(self._queue) >= max(2.0, self._usual)
        )

    def _take(self) -> list[Entry]:
        """The next group: all buffered appends, up to the limit of one write."""
        self._wanted = False
        batch = self.storage.spec.wal.batch
        group: list[Entry] = []
        events = size = 0
        while self._queue and (not group or (events < batch.max_events and size < batch.max_bytes)):
            group.append(self._queue.popleft())
            events, size = events + group[-1].events, size + group[-1].bytes
        self._usual = max(len(group), self._usual * FORGOTTEN)
        return group

    def _commit(self, group: list[Entry]) -> None:
        storage = self.storage
        storage.refresh()
        runs = list(self._runs(group))
        appends = [append for append, _ in runs]
        if storage.kind != "kafka" and any(isinstance(body, Placed) for a in appends for body in a.bodies):
            raise WriteFailed("the events were written to a topic, and the stream is not in Kafka")
        try:
            results = storage.write(appends)
        except Moved:  # nothing was written
            results = self._follow().write(appends)
        repeated = sum(
            members[0].events
            for (_, members), result in zip(runs, results, strict=True)
            if isinstance(result, Appended) and result.duplicate
        )
        if repeated:
            self._count(duplicates=repeated)
        for (_, members), result in zip(runs, results, strict=True):
            if isinstance(result, Refusal):
                for entry in members:
                    entry.refuse(result)
                continue
            if result.duplicate:
                members[0].tell(result)
                continue
            first = result.first
            for entry in members:
                entry.tell(Appended(first, first + entry.events))
                first += entry.events
        with self._changed:
            self._release(*group)

    def _runs(self, group: list[Entry]) -> Iterator[tuple[Append, list[Entry]]]:
        """The appends of a group. Adjacent entries of one schema share a frame; numbered batches do not."""
        run: list[Entry] = []
        for entry in group:
            joins = entry.producer is None and not entry.bodies
            if run and not (joins and _same_schema(run[0], entry)):
                yield self._append(run), run
                run = []
            run.append(entry)
            if not joins:
                yield self._append(run), run
                run = []
        if run:
            yield self._append(run), run

    def _append(self, run: list[Entry]) -> Append:
        wal = self.storage.spec.wal
        first = run[0]
        if first.schema is None:
            return Append(first.bodies, first.producer, first.tx)
        batches = list(_batches(run))
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        marks: list[tuple[int, int, str, bool]] = []
        at = 0
        for entry in run:
            marks += [
                (at + begin, at + end, transaction, closed) for begin, end, transaction, closed in entry.tx
            ]
            at += entry.events
        bodies = [
            encode_body(part, wal.compression)
            for part in slices(batch, wal.batch.max_events, wal.batch.max_bytes)
        ]
        return Append(bodies, first.producer, tuple(marks))

    def _put_back(self, group: list[Entry], full: Full) -> None:
        """Put a group that found no room back into the buffer, and drop appends whose timeout has passed."""
        buffer = self.storage.spec.buffer
        self._full = full.reason
        now = time.monotonic()
        at_once = buffer.mode == "drop"
        with self._changed:
            kept = []
            for entry in group:
                late = buffer.mode == "timeout" and now - entry.since >= buffer.timeout_ms / 1000
                if at_once or late:
                    entry.refuse(self._drop(entry, "timeout" if late else "buffer_full"))
                    self._release(entry)
                elif self._closing:
                    entry.refuse(Closed())
                    self._release(entry)
                else:
                    kept.append(entry)
            self._queue.extendleft(reversed(kept))
        if kept:
            time.sleep(RETRY_S)

    def _fail(self, group: list[Entry], error: BaseException) -> None:
        with self._changed:
            for entry in group:
                entry.refuse(error)
            self._release(*group)


def _same_schema(one: Entry, other: Entry) -> bool:
    if one.event is not None and other.event is not None and one.event.form is other.event.form:
        return True
    return one.schema is not None and other.schema is not None and one.schema.equals(other.schema)


def _batches(run: list[Entry]) -> Iterator[pa.RecordBatch]:
    """The events of appends as record batches: adjacent single events share one batch."""
    for form, entries in itertools.groupby(run, key=lambda entry: entry.event and entry.event.form):
        if form is None:
            yield from (entry.batch for entry in entries if entry.batch is not None)
        else:
            yield form.batch([entry.event.value for entry in entries if entry.event is not None])
