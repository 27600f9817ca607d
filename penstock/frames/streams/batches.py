"""Division of a stream into batches.

The reader of a stream polls; the headers of unread frames are cached here, so that the cost of a poll depends
only on the number of new frames. Bodies are never read.
"""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.frames.faults import Fault
from penstock.streams.log import Log
from penstock.streams.storage import Span

LOOK_S = 0.005
"""Seconds between two polls while a batch fills up."""


@dataclass(frozen=True)
class Limits:
    """The fields of `batch:`, with a number for `auto`."""

    max_events: int
    max_bytes: int
    max_ms: float
    respect_source_tx: bool
    max_inflight: int
    max_inflight_bytes: int | None = None
    max_tx_bytes: float = math.inf
    max_tx_ms: float = math.inf
    latency_ms: int | None = None
    """The latency goal, from which the other limits are derived between micro-batches."""


@dataclass(frozen=True)
class Run:
    """Consecutive events; `lost` is the reason if they can no longer be read."""

    base: int
    next: int
    time_us: int
    bytes: float
    lost: str | None = None
    span: Span | None = field(default=None, compare=False)
    """The frame of the events."""

    def part(self, first: int, end: int) -> Run:
        """The part of the run between two offsets."""
        first, end = max(self.base, first), min(self.next, end)
        if (first, end) == (self.base, self.next):
            return self
        share = (end - first) / (self.next - self.base)
        return Run(first, end, self.time_us, self.bytes * share, self.lost, self.span)


@dataclass(frozen=True)
class Batch:
    """A complete batch: its offsets, the number of lost events, its size and its events."""

    first: int
    next: int
    lost: int
    bytes: float = field(default=0.0, compare=False)
    runs: tuple[Run, ...] = field(default=(), compare=False)


class Transactions:
    """The offsets inside transactions of the source, where no batch may end.

    Overlapping ended transactions are merged into one range, so that a lookup is a binary search regardless
    of the number of transactions.
    """

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []  # the transactions in `_open`, and some that have ended since
        self._begins: list[int] = []
        self._ends: list[int] = []

    def note(self, first: int, end: int, transaction: str, closed: bool) -> None:
        """Add a mark: all or some of the events of a transaction."""
        begin = min(self._open.get(transaction, first), first)
        if closed:
            self._open.pop(transaction, None)
            self._join(begin, end)
        elif self._open.get(transaction) != begin:
            self._open[transaction] = begin
            heapq.heappush(self._heap, (begin, transaction))

    def _join(self, begin: int, end: int) -> None:
        """Merge a range with those that it overlaps. Adjacent ranges stay separate."""
        i, j = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        if i < j:
            begin, end = min(begin, self._begins[i]), max(end, self._ends[j - 1])
        self._begins[i:j], self._ends[i:j] = [begin], [end]

    def forget(self, below: int) -> None:
        """Forget transactions that ended before an offset."""
        ended = bisect_right(self._ends, below)
        del self._begins[:ended], self._ends[:ended]

    def after(self, offset: int) -> float:
        """The first offset at or after `offset` where a batch may end; infinite if not known yet."""
        i = bisect_right(self._ends, offset)
        if i < len(self._ends) and self._begins[i] < offset:
            offset = self._ends[i]
        return math.inf if self.oldest_open < offset else offset

    def before(self, offset: int) -> int:
        """The last offset up to `offset` where a batch may end."""
        offset = int(min(offset, self.oldest_open))
        i = bisect_right(self._ends, offset)
        return self._begins[i] if i < len(self._ends) and self._begins[i] < offset else offset

    @property
    def oldest_open(self) -> float:
        """The first offset of the oldest open transaction; infinite if there is none."""
        while self._heap and self._open.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def give_up(self, below: int) -> dict[str, int]:
        """Allow batches to end inside open transactions that begin before an offset; returns their starts."""
        given_up: dict[str, int] = {}
        while self.oldest_open < below:
            _, transaction = heapq.heappop(self._heap)
            given_up[transaction] = self._open.pop(transaction)
        return given_up

    def within(self, end: int) -> Transactions:
        """The transactions that end at or before an offset: those used to plan a batch that ends there."""
        found, known = Transactions(), bisect_right(self._ends, end)
        found._begins, found._ends = self._begins[:known], self._ends[:known]
        return found


class Cutter:
    """Divides consecutive runs into batches."""

    def __init__(self, limits: Limits, transactions: Transactions, start: int) -> None:
        self._limits, self._transactions = limits, transactions
        self.batches: list[Batch] = []
        self.at = start
        self.due_at = math.inf
        """The time on the monotonic clock at which the current batch is complete regardless of its size."""
        self.oversized: int | None = None
        """The first offset of a batch that is too large because of a transaction; None if there is none."""
        self._open(start)

    def _open(self, first: int) -> None:
        self._first, self._events, self._bytes, self._lost = first, 0, 0.0, 0
        self._runs: list[Run] = []
        self.due_at = math.inf

    def add(self, run: Run) -> None:
        """Add the next run."""
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
            self._runs.append(part)
            self.at = part.next
            if self._bytes > self._limits.max_tx_bytes and self.at > full_at and self.oversized is None:
                self.oversized = self._first
            if self._is_full and self._transactions.after(self.at) == self.at:
                self._close(self.at)

    def finish(self, end: int) -> None:
        """Close the last batch at the end of the input."""
        if end > self._first:
            self._close(end)

    def _close(self, end: int) -> None:
        self.batches.append(Batch(self._first, end, self._lost, self._bytes, tuple(self._runs)))
        self._open(end)

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
        age = max(0.0, time.time() - run.time_us / 1e6)  # the clock may have gone back
        return time.monotonic() + max(0.0, self._limits.max_ms / 1000 - age)


class Batches:
    """The batches of a stream, planned from a start offset that moves forward."""

    def __init__(self, log: Log, limits: Limits, gap: Literal["skip", "fail"]) -> None:
        self._log, self._limits, self._gap = log, limits, gap
        self._look_s = LOOK_S
        self._start = self._seen = 0  # the headers between these offsets are cached
        self._runs: deque[Run] = deque()
        self._transactions = Transactions()
        self._cutter = Cutter(limits, self._transactions, 0)
        self._unended: dict[str, int] = {}  # first offsets of abandoned transactions, by id

    def await_end(self, start: int, patience_s: float) -> int:
        """The end of the complete batches from an offset on; the offset itself if there are none yet.

        Waits up to `patience_s` seconds for a complete batch.
        """
        self._begin(start)
        deadline = time.monotonic() + patience_s
        while True:
            if self._look():
                self._give_up()
            if (end := self._complete()) > start:
                return end
            now = time.monotonic()
            if now >= deadline:
                return start
            if self._cutter.due_at == math.inf:
                self._log.wait(self._seen, deadline - now)
            else:  # the overdue batch waits for the end of a transaction, which may take long
                due_at = self._cutter.due_at if self._cutter.due_at > now else deadline
                time.sleep(min(self._look_s, due_at - now, deadline - now))

    def share(self) -> int | None:
        """The batch size that was chosen for the last planned micro-batch; None if none was chosen."""
        return None

    def unended(self, end: int) -> dict[str, int]:
        """The transactions before an offset that did not end in time, each reported once."""
        found = {transaction: first for transaction, first in self._unended.items() if first < end}
        self._unended = {transaction: first for transaction, first in self._unended.items() if first >= end}
        return found

    def end_before(self, start: int, last: int) -> int:
        """Like `await_end` for a range that ends at `last`: a batch that ends there counts as complete."""
        self._begin(start)
        self._look()
        self._check_size()
        if not self._has_enough:
            return last
        return min(last, self._cutter.batches[self._fitting - 1].next)

    def between(self, start: int, end: int, max_events: int | None = None) -> list[Batch]:
        """The batches of a range, even if it was planned before a restart.

        `max_events` overrides the general limit of batches.
        """
        self._begin(start)
        self._look(end)
        limits = self._limits if max_events is None else replace(self._limits, max_events=max_events)
        cutter = Cutter(limits, self._transactions.within(end), start)
        for run in self._runs:
            if run.base < end:
                cutter.add(run.part(start, end))
        cutter.finish(end)
        return cutter.batches

    def _begin(self, start: int) -> None:
        """Remove the cached runs below an offset."""
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
        self._cut()

    def _cut(self) -> None:
        """Divide all runs into batches again."""
        self._cutter = Cutter(self._limits, self._transactions, self._start)
        for run in self._runs:
            self._cutter.add(run)

    def _forget(self, start: int) -> None:
        self._start = self._seen = start
        self._runs.clear()
        self._transactions = Transactions()
        self._cutter = Cutter(self._limits, self._transactions, start)

    def _check_size(self) -> None:
        if self._cutter.oversized is not None:
            raise too_large(self._cutter.oversized, self._limits.max_tx_bytes)

    def _complete(self) -> int:
        self._check_size()
        batches = self._cutter.batches[: self._fitting]
        end = batches[-1].next if batches else self._start
        if not self._has_enough and time.monotonic() >= self._cutter.due_at:
            end = max(end, self._transactions.before(self._cutter.at))
        return end

    def _give_up(self) -> None:
        """Stop waiting for the ends of transactions that have been open for too long."""
        transactions, since_us = self._transactions, (time.time() - self._limits.max_tx_ms / 1000) * 1e6
        given_up: dict[str, int] = {}
        while (oldest := transactions.oldest_open) < math.inf:
            i = bisect_right(self._runs, oldest, key=lambda run: run.next)
            if i < len(self._runs) and self._runs[i].time_us > since_us:
                break
            given_up |= transactions.give_up(self._runs[i].next if i < len(self._runs) else self._seen)
        if given_up:
            self._unended |= given_up
            self._cut()

    def _look(self, until: int | None = None) -> bool:
        """Read new headers, as many as needed now; true if there are no more."""
        bounds = self._log.bounds()
        if self._seen < bounds.first:
            self._take([Run(self._seen, bounds.first, 0, 0.0, "evicted")])
        if self._seen >= bounds.next:
            return True
        taken: list[Run] = []
        events, size = 0, 0.0
        for span in self._log.storage.spans(self._seen):
            if self._seen >= until if until is not None else self._has_enough:
                return False
            run = Run(span.base, span.next, span.time_us, span.raw_bytes, span.lost, span)
            taken.append(run.part(self._seen, span.next))
            events, size = events + span.next - span.base, size + span.raw_bytes
            if events >= self._limits.max_events or size >= self._limits.max_bytes:
                self._take(taken)
                taken, events, size = [], 0, 0.0
        self._take(taken)
        return self._seen >= bounds.next

    @property
    def _fitting(self) -> int:
        """The number of complete batches that fit into a micro-batch."""
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
        first, end = runs[0].base, runs[-1].next
        if self._limits.respect_source_tx:
            for mark in self._log.storage.transactions(first, end):
                self._transactions.note(*mark)
        for run in runs:
            if run.lost is not None and self._gap == "fail":
                raise gap(run.base, run.next, run.lost)
            self._runs.append(run)
            self._cutter.add(run)
        self._seen = end


def too_large(first: int, limit: float) -> Fault:
    """The fault for a transaction that may not be split and exceeds the size limit."""
    message = f"a transaction makes the batch from offset {first} on larger than {limit:.0f} bytes"
    return Fault(
        "transaction_too_large",
        f"{message}: raise batch.max_tx_bytes, or set batch.respect_source_tx to false",
    )


def gap(first: int, end: int, reason: str) -> Fault:
    """The fault for a gap, if a reader may not skip events."""
    return Fault("gap", f"offsets {first} to {end - 1} of the stream can no longer be read: {reason}")
