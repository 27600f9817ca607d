"""The bounded buffer before a storage, and the group commit behind it.

Appends of all threads wait in one buffer; a thread takes what is there, writes it with one call and one sync,
and tells each of them its offsets. While it writes, the next group gathers.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import structlog

from penstock.errors import Backpressure
from penstock.streams.frames import Body, encode_body, slices
from penstock.streams.storage import FLUSH_S, Append, Appended, Full, Producer, Refusal, Storage

logger = structlog.get_logger()

IDLE_S = 10.0
"""A committer with nothing to do ends after so long; the next append starts another."""

RETRY_S = 0.02
"""How often a committer looks for room in a stream that is full."""

MOST_USUAL, FORGOTTEN = 1_000.0, 0.9
"""A group that has as many appends as the last ones had waits no longer: who shares a write mostly waits for
its answer before the next append, so nobody else will come. How many that were is forgotten bit by bit."""

LOOK_S = 0.25
"""How often who waits looks whether the stream has other settings now."""


Marks = Sequence[tuple[int, int, str, bool]]
"""Transactions of the source in an append, as `Append.tx` has them."""


class Dropped(Exception):
    """Events were not taken, as the stream's settings say, and counted."""

    def __init__(self, reason: str, events: int, retry_after: float) -> None:
        super().__init__(f"{events} events were dropped: {reason.replace('_', ' ')}")
        self.reason, self.events, self.retry_after = reason, events, retry_after


class Closed(Exception):
    """The log was closed while an append waited."""


@dataclass(eq=False)
class Pending:
    """An append on its way. Either `batch` or `bodies` holds the events."""

    events: int
    bytes: int
    batch: pa.RecordBatch | None = None
    bodies: Sequence[Body] = ()
    producer: Producer | None = None
    tx: tuple[tuple[int, int, str, bool], ...] = ()
    flush: bool = False
    since: float = field(default_factory=time.monotonic)
    future: Future[Appended] = field(default_factory=Future)

    def tell(self, result: Appended) -> None:
        """Acknowledge it. Who has cancelled the future is not told, and disturbs nobody."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_result(result)

    def refuse(self, error: BaseException) -> None:
        """Tell that it was not taken."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)


class Committer:
    """Takes appends, and writes them in groups."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._queue: collections.deque[Pending] = collections.deque()
        self._held_events = self._held_bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._full: str | None = None
        self._wanted = False  # whether somebody waits for room, so that nothing may linger
        self._usual = MOST_USUAL

    def submit(self, pending: Pending, wait_s: float | None) -> Pending:
        """Take an append into the buffer. A full one acts as the stream's mode says, for at most `wait_s`."""
        self.storage.refresh()
        with self._changed:
            if self._is_full(pending):
                self._wait_for_room(pending, wait_s)
            if self._closing:
                raise Closed
            self._held_events += pending.events
            self._held_bytes += pending.bytes
            self._queue.append(pending)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._commit_all, name="committer", daemon=True)
                self._thread.start()
            if len(self._queue) == 1 or pending.flush or self._is_complete():
                self._changed.notify_all()  # else the committer would not do anything yet
        return pending

    def withdraw(self, pending: Pending) -> bool:
        """Take an append back; false if it is being written, or was."""
        with self._changed:
            if pending not in self._queue:
                return False
            self._queue.remove(pending)
            self._release(pending)
            return True

    def settled(self, pending: Pending, wait_s: float | None) -> Appended:
        """Wait for an append; take it back if the stream has had no room for it for so long."""
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
        """How full the buffer of this process is."""
        with self._changed:
            return {"events": self._held_events, "bytes": self._held_bytes, "full": self._full}

    def close(self) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    # Room

    def _is_full(self, pending: Pending) -> bool:
        buffer = self.storage.spec.buffer
        if not self._held_events:
            return False  # one append may be larger than the buffer, or it could never be made
        return (
            self._held_events + pending.events > buffer.max_events
            or self._held_bytes + pending.bytes > buffer.max_bytes
        )

    def _wait_for_room(self, pending: Pending, wait_s: float | None) -> None:
        self._wanted = True
        self._changed.notify_all()
        while self._is_full(pending) and not self._closing:
            buffer = self.storage.spec.buffer
            patience = {"drop": 0.0, "timeout": buffer.timeout_ms / 1000}.get(buffer.mode)
            leaves = wait_s is not None and (patience is None or wait_s < patience)
            patience = wait_s if leaves else patience
            left = LOOK_S if patience is None else pending.since + patience - time.monotonic()
            if left <= 0:
                if leaves:
                    raise self._backpressure()
                raise self._drop(pending, "buffer_full" if buffer.mode == "drop" else "timeout")
            self._changed.wait(min(left, LOOK_S))
            self.storage.refresh()

    def _backpressure(self) -> Backpressure:
        return Backpressure(f"the buffer is full ({self._full or 'busy'})", self.retry_after)

    def _drop(self, pending: Pending, reason: str) -> Dropped:
        """Give up an append, and say so where it can be seen (invariant 5)."""
        if reason == "timeout":
            self.storage.count(dropped_timeout=pending.events)
        else:
            self.storage.count(dropped_buffer_full=pending.events)
        return Dropped(reason, pending.events, self.retry_after)

    def _release(self, *done: Pending) -> None:
        self._held_events -= sum(pending.events for pending in done)
        self._held_bytes -= sum(pending.bytes for pending in done)
        self._changed.notify_all()

    @property
    def retry_after(self) -> float:
        """Seconds after which a producer that was refused may try again."""
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
        """Wait for a group that is complete; false if it is time to end."""
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
                except Exception as error:  # the next write will tell whoever waits for it
                    logger.error("a stream was not flushed", error=str(error))
                finally:
                    self._changed.acquire()

    def _linger_s(self) -> float:
        """How much longer the first append waits for others."""
        batch = self.storage.spec.wal.batch
        if self._closing or self._wanted or self._is_complete():
            return 0.0
        if any(pending.flush for pending in self._queue):
            return 0.0
        return batch.max_ms / 1000 - (time.monotonic() - self._queue[0].since)

    def _is_complete(self) -> bool:
        """Whether enough waits to be written at once, or no more fits."""
        batch, buffer = self.storage.spec.wal.batch, self.storage.spec.buffer
        return (
            self._held_events >= min(batch.max_events, buffer.max_events)
            or self._held_bytes >= min(batch.max_bytes, buffer.max_bytes)
            or len(self._queue) >= max(2.0, self._usual)
        )

    def _take(self) -> list[Pending]:
        """The next group: all that waits, up to what is written at once."""
        self._wanted = False
        batch = self.storage.spec.wal.batch
        group: list[Pending] = []
        events = size = 0
        while self._queue and (not group or (events < batch.max_events and size < batch.max_bytes)):
            group.append(self._queue.popleft())
            events, size = events + group[-1].events, size + group[-1].bytes
        self._usual = max(len(group), self._usual * FORGOTTEN)
        return group

    def _commit(self, group: list[Pending]) -> None:
        self.storage.refresh()
        runs = list(self._runs(group))
        results = self.storage.write([append for append, _ in runs])
        repeated = sum(
            members[0].events
            for (_, members), result in zip(runs, results, strict=True)
            if isinstance(result, Appended) and result.duplicate
        )
        if repeated:
            self.storage.count(duplicates=repeated)
        for (_, members), result in zip(runs, results, strict=True):
            if isinstance(result, Refusal):
                for pending in members:
                    pending.refuse(result)
                continue
            if result.duplicate:
                members[0].tell(result)
                continue
            first = result.first
            for pending in members:
                pending.tell(Appended(first, first + pending.events))
                first += pending.events
        with self._changed:
            self._release(*group)

    def _runs(self, group: list[Pending]) -> Iterator[tuple[Append, list[Pending]]]:
        """The appends of a group. Neighbours of one form share a frame; a producer's stands alone."""
        run: list[Pending] = []
        for pending in group:
            joins = pending.producer is None and not pending.bodies
            if run and not (joins and _same_schema(run[0], pending)):
                yield self._append(run), run
                run = []
            run.append(pending)
            if not joins:
                yield self._append(run), run
                run = []
        if run:
            yield self._append(run), run

    def _append(self, run: list[Pending]) -> Append:
        wal = self.storage.spec.wal
        first = run[0]
        if first.bodies or first.batch is None:
            return Append(first.bodies, first.producer, first.tx)
        batches = [pending.batch for pending in run if pending.batch is not None]
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        marks: list[tuple[int, int, str, bool]] = []
        at = 0
        for pending in run:
            marks += [(at + begin, at + end, id, closed) for begin, end, id, closed in pending.tx]
            at += pending.events
        bodies = [
            encode_body(part, wal.compression)
            for part in slices(batch, wal.batch.max_events, wal.batch.max_bytes)
        ]
        return Append(bodies, first.producer, tuple(marks))

    def _put_back(self, group: list[Pending], full: Full) -> None:
        """There is no room: wait for it, or give up what has waited long enough."""
        buffer = self.storage.spec.buffer
        self._full = full.reason
        now = time.monotonic()
        at_once = buffer.mode == "drop"
        with self._changed:
            kept = []
            for pending in group:
                late = buffer.mode == "timeout" and now - pending.since >= buffer.timeout_ms / 1000
                if at_once or late:
                    pending.refuse(self._drop(pending, "timeout" if late else "buffer_full"))
                    self._release(pending)
                elif self._closing:
                    pending.refuse(Closed())
                    self._release(pending)
                else:
                    kept.append(pending)
            self._queue.extendleft(reversed(kept))
        if kept:
            time.sleep(RETRY_S)

    def _fail(self, group: list[Pending], error: BaseException) -> None:
        with self._changed:
            for pending in group:
                pending.refuse(error)
            self._release(*group)


def _same_schema(one: Pending, other: Pending) -> bool:
    return one.batch is not None and other.batch is not None and one.batch.schema.equals(other.batch.schema)
