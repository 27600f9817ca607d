"""Where the batches of a stream end.

The reader of a stream asks again and again; what it has learnt of the frames that wait stays here, so that
a look costs no more than what is new. Bodies are never read: headers say all that is needed.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from penstock.connectors.faults import Fault
from penstock.streams.log import Log

LOOK_S = 0.005
"""While a batch fills up, how long to sleep between two looks."""


@dataclass(frozen=True)
class Limits:
    """The fields of `batch:`, with a number for `auto`."""

    max_events: int
    max_bytes: int
    max_ms: int
    respect_source_tx: bool
    max_inflight: int
    max_inflight_bytes: int | None = None
    max_tx_bytes: float = math.inf


@dataclass(frozen=True)
class Run:
    """Events that lie together; with `lost`, they cannot be read any more, and this is why."""

    base: int
    next: int
    time_us: int
    bytes: float
    lost: str | None = None

    def part(self, first: int, next: int) -> Run:
        """What of it lies between two offsets."""
        first, next = max(self.base, first), min(self.next, next)
        if (first, next) == (self.base, self.next):
            return self
        share = (next - first) / (self.next - self.base)
        return Run(first, next, self.time_us, self.bytes * share, self.lost)


@dataclass(frozen=True)
class Batch:
    """A batch that is complete: its offsets, how many of them are known to be lost, and its size."""

    first: int
    next: int
    lost: int
    bytes: float = field(default=0.0, compare=False)


class Transactions:
    """Which offsets lie inside a transaction of the source, where no batch may end."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._whole: list[tuple[int, int]] = []

    def note(self, first: int, next: int, id: str, closed: bool) -> None:
        """Take in a mark: the events of a transaction, or some of them."""
        begin = min(self._open.pop(id, first), first)
        if closed:
            self._whole.append((begin, next))
        else:
            self._open[id] = begin

    def forget(self, below: int) -> None:
        """What ended before an offset does not matter any more."""
        self._whole = [(begin, end) for begin, end in self._whole if end > below]

    def after(self, offset: int) -> float:
        """The first place from an offset on where a batch may end; infinite if it is not there yet."""
        if any(begin < offset for begin in self._open.values()):
            return math.inf
        inside = [end for begin, end in self._whole if begin < offset < end]
        return self.after(max(inside)) if inside else offset

    def before(self, offset: int) -> int:
        """The last place up to an offset where a batch may end."""
        inside = [begin for begin in self._open.values() if begin < offset]
        inside += [begin for begin, end in self._whole if begin < offset < end]
        return self.before(min(inside)) if inside else offset


class Cutter:
    """Makes batches of runs that come in order."""

    def __init__(self, limits: Limits, transactions: Transactions, start: int) -> None:
        self._limits, self._transactions = limits, transactions
        self.batches: list[Batch] = []
        self.at = start
        self.due_at = math.inf
        """When the batch that fills up is complete whatever it holds, on the monotonic clock."""
        self._open(start)

    def _open(self, first: int) -> None:
        self._first, self._events, self._bytes, self._lost = first, 0, 0.0, 0
        self.due_at = math.inf

    def add(self, run: Run) -> None:
        """Take in what comes next."""
        if run.lost is not None:
            self._lost += run.next - run.base
            self.at = run.next
            return
        while self.at < run.next:
            full_at = self._full_at(run)
            stop = min(run.next, self._transactions.after(full_at))
            part = run.part(self.at, int(stop))
            if not self._events:
                self.due_at = self._due(run)
            self._events += part.next - part.base
            self._bytes += part.bytes
            self.at = part.next
            if self._bytes > self._limits.max_tx_bytes and self.at > full_at:
                raise too_large(self._first, self._limits.max_tx_bytes)
            if self._is_full and self._transactions.after(self.at) == self.at:
                self._close(self.at)

    def finish(self, next: int) -> None:
        """No more comes: what is left is a batch, too."""
        if next > self._first:
            self._close(next)

    def _close(self, next: int) -> None:
        self.batches.append(Batch(self._first, next, self._lost, self._bytes))
        self._open(next)

    @property
    def _is_full(self) -> bool:
        return self._events >= self._limits.max_events or self._bytes >= self._limits.max_bytes

    def _full_at(self, run: Run) -> int:
        """The offset in a run, or after it, at which the batch is full."""
        each = run.bytes / (run.next - run.base)
        room = self._limits.max_events - self._events
        if each:
            room = min(room, math.ceil((self._limits.max_bytes - self._bytes) / each))
        return self.at + max(room, 0 if self._events else 1)

    def _due(self, run: Run) -> float:
        age = max(0.0, time.time() - run.time_us / 1e6)  # a clock may have gone back
        return time.monotonic() + max(0.0, self._limits.max_ms / 1000 - age)


class Batches:
    """The batches of a stream, from one offset on to the next."""

    def __init__(self, log: Log, limits: Limits, gap: Literal["skip", "fail"]) -> None:
        self._log, self._limits, self._gap = log, limits, gap
        self._start = self._seen = 0  # what is known reaches from one to the other
        self._runs: deque[Run] = deque()
        self._transactions = Transactions()
        self._cutter = Cutter(limits, self._transactions, 0)

    def await_end(self, start: int, patience_s: float) -> int:
        """Where the batches from an offset on end that are complete; the offset itself if none is yet.

        Waits as long as nothing is complete, but not beyond its patience.
        """
        self._begin(start)
        deadline = time.monotonic() + patience_s
        while True:
            self._look()
            if (end := self._complete()) > start:
                return end
            now = time.monotonic()
            if now >= deadline:
                return start
            if self._cutter.due_at == math.inf:
                self._log.wait(self._seen, deadline - now)
            else:  # what is overdue is held back by a transaction, and that may take long
                due_at = self._cutter.due_at if self._cutter.due_at > now else deadline
                time.sleep(min(LOOK_S, due_at - now, deadline - now))

    def end_before(self, start: int, last: int) -> int:
        """The same for a range that ends at an offset: what lies before that is complete as it is."""
        self._begin(start)
        self._look()
        if not self._has_enough:
            return last
        return min(last, self._cutter.batches[self._fitting - 1].next)

    def between(self, start: int, end: int) -> list[Batch]:
        """The batches that make up a range, also when it was planned before a restart."""
        self._begin(start)
        self._look(end)
        cutter = Cutter(self._limits, self._transactions, start)
        for run in self._runs:
            if run.base < end:
                cutter.add(run.part(start, end))
        cutter.finish(end)
        return cutter.batches

    def _begin(self, start: int) -> None:
        """Let what lies below an offset go."""
        if not self._start <= start <= self._seen:
            self._forget(start)
        if start == self._start:
            return
        while self._runs and self._runs[0].next <= start:
            self._runs.popleft()
        if self._runs:
            self._runs[0] = self._runs[0].part(start, self._runs[0].next)
        self._transactions.forget(start)
        self._start = start
        self._cutter = Cutter(self._limits, self._transactions, start)
        for run in self._runs:
            self._cutter.add(run)

    def _forget(self, start: int) -> None:
        self._start = self._seen = start
        self._runs.clear()
        self._transactions = Transactions()
        self._cutter = Cutter(self._limits, self._transactions, start)

    def _complete(self) -> int:
        batches = self._cutter.batches[: self._fitting]
        end = batches[-1].next if batches else self._start
        if not self._has_enough and time.monotonic() >= self._cutter.due_at:
            end = max(end, self._transactions.before(self._cutter.at))
        return end

    def _look(self, until: int | None = None) -> None:
        """Learn of what came, as far as it is of use now."""
        bounds = self._log.bounds()
        if self._seen < bounds.first:
            self._take([Run(self._seen, bounds.first, 0, 0.0, "evicted")])
        if self._seen >= bounds.next:
            return
        taken: list[Run] = []
        events, size = 0, 0.0
        for span in self._log.storage.spans(self._seen):
            if self._seen >= until if until is not None else self._has_enough:
                return
            run = Run(span.base, span.next, span.time_us, span.raw_bytes, span.lost)
            taken.append(run.part(self._seen, span.next))
            events, size = events + span.next - span.base, size + span.raw_bytes
            if events >= self._limits.max_events or size >= self._limits.max_bytes:
                self._take(taken)
                taken, events, size = [], 0, 0.0
        self._take(taken)

    @property
    def _fitting(self) -> int:
        """How many batches a micro-batch may hold, going by those that are complete."""
        limits, size = self._limits, 0.0
        for count, batch in enumerate(self._cutter.batches, 1):
            size += batch.bytes
            if limits.max_inflight_bytes is not None and size >= limits.max_inflight_bytes:
                return min(count, limits.max_inflight)
        return limits.max_inflight

    @property
    def _has_enough(self) -> bool:
        return len(self._cutter.batches) >= self._fitting

    def _take(self, runs: list[Run]) -> None:
        if not runs:
            return
        first, next = runs[0].base, runs[-1].next
        if self._limits.respect_source_tx:
            for mark in self._log.storage.transactions(first, next):
                self._transactions.note(*mark)
        for run in runs:
            if run.lost is not None and self._gap == "fail":
                raise gap(run.base, run.next, run.lost)
            self._runs.append(run)
            self._cutter.add(run)
        self._seen = next


def too_large(first: int, limit: float) -> Fault:
    """What a reader is told that may not split a transaction, and cannot take it whole."""
    message = f"a transaction makes the batch from offset {first} on larger than {limit:.0f} bytes"
    return Fault("transaction_too_large", f"{message}: raise batch.max_tx_bytes, or let it be split")


def gap(first: int, next: int, reason: str) -> Fault:
    """What a reader is told that may not miss an event."""
    return Fault("gap", f"offsets {first} to {next - 1} of the stream cannot be read any more: {reason}")
