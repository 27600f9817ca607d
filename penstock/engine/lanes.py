"""Lanes: each sink of a running flow has a thread of its own, in which it gets one batch after the other.

A lane takes part in the batch in hand, or it is behind: then it delivers what was missed, in order and each
batch under its own number, until there is nothing left. What one lane waits for, no other lane waits for.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Delivered, DeliveryId, Rejected, Sink, SinkWriter
from penstock.engine.attempts import Attempts, Overdue, Try, backoff_s
from penstock.engine.counters import Counters
from penstock.engine.failures import failure_of, sink_failure
from penstock.engine.flow import Flow, Part
from penstock.engine.flow_log import FlowLog
from penstock.engine.frame import Frame
from penstock.engine.ledger import Gap, Ledger, Span
from penstock.engine.limits import POOL
from penstock.engine.missed import Lost, Missed
from penstock.errors import Backpressure, Retryable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPUTED_FIRST = "not delivered within deadline_ms: the batch, and all that follow, are computed beforehand"

JOIN_S = 5.0
"""How long a lane may take to end; one that hangs is left behind, and its thread ends with the process."""


@dataclass(frozen=True)
class Yard:
    """What the lanes of a flow share."""

    flow: Flow
    spark: SparkSession
    ledger: Ledger
    missed: Missed
    counters: Counters
    permitted: Callable[[], None]
    """Raises if this process must not write any more (invariant 6)."""
    rejected: Callable[[Sequence[Rejected], DeliveryId], None]
    """Keeps what a sink could not take."""
    chosen: Chosen
    log: FlowLog
    changed: threading.Condition = field(default_factory=threading.Condition)
    """Guards what the lanes and the batch in hand tell one another."""


Adopted = Callable[[Callable[..., Any]], Callable[..., Any]]

Chosen = Callable[["DataFrame", Part[Sink]], "DataFrame"]
"""What of a frame a sink gets."""


@dataclass
class Order:
    """The batch in hand, for one sink."""

    delivery: DeliveryId
    span: Span
    frame: Frame
    adopted: Adopted
    """Makes a function run as a part of the query, so that stopping the query reaches its jobs."""
    done: bool = False
    error: Exception | None = None


class Lane:
    """The way to one sink."""

    def __init__(self, sink: Part[Sink], yard: Yard) -> None:
        self.sink, self.yard = sink, yard
        self.behind = yard.ledger.next_gap(sink.id, yard.flow.id) is not None
        self.error: Exception | None = None
        """Why it is behind, or was."""
        self.failures = 0
        """In a row, while it tries to catch up."""
        self.attempts: Attempts | None = None
        """Those under way."""
        self._order: Order | None = None
        self._writer: SinkWriter | None = None
        self._due = 0.0
        self._ending = self._resting = False
        self._cancelled = threading.Event()
        self.moved_at = 0.0
        """When it last acknowledged a batch, on the monotonic clock."""
        self._slow = False
        """Whether it has not acknowledged a batch in time that was computed meanwhile: then all are first."""
        self._try: Try | None = None
        """The attempt under way."""
        self._seen_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"sink {sink.id}", daemon=True)
        self._thread.start()

    # Called with the lock of the yard

    @property
    def free(self) -> bool:
        """Whether it can take the batch in hand."""
        return not self.behind and self._order is None

    @property
    def hopeless(self) -> bool:
        """Whether it will not try again by itself."""
        return self.behind and self._due == math.inf

    @property
    def hurrying(self) -> bool:
        """Whether it is catching up, and has not failed since it was told to."""
        return self.behind and self._due == 0.0

    @property
    def computing(self) -> bool:
        """Whether Spark computes the batch that it is to get."""
        trial = self._try
        return trial is not None and trial.computing

    def give(self, order: Order) -> None:
        """Let it deliver the batch in hand."""
        self._order = order
        self.yard.changed.notify_all()

    def fall_behind(self) -> None:
        """The batch in hand goes on without it."""
        if not self.behind:
            self.behind, self.failures, self._due = True, 0, 0.0
            why = None if self.error is None else sink_failure(self.sink, self.error).problem
            about = {"error": why.message, "path": why.path} if why else {}
            self.yard.log.warning("falls behind: batches go on without it", sink=self.sink.id, **about)
            if self._order is None and self.error is not None:
                self._back_off(self.error)
        self.yard.changed.notify_all()

    def hurry(self) -> None:
        """Let it try to catch up now."""
        self._due = 0.0
        self.yard.changed.notify_all()

    # Called by anybody

    def look(self) -> None:
        """End attempts that take too long.

        Only the sink's own time counts: not that in which it has no room, nor that in which Spark computes
        the batch.
        """
        trial, writer, now = self._try, self._writer, time.monotonic()
        if trial is None:
            return
        if trial.computing:
            trial.attempts.renew()
        elif writer is not None and writer.waiting:
            trial.attempts.deadline += now - self._seen_at
        self._seen_at = now
        if not trial.interrupted and now >= trial.attempts.deadline:
            trial.interrupted = not _gets_on(trial)
        if trial.interrupted and self._try is trial:
            _interrupt(trial, writer)  # again and again: a job may have begun just now

    def rest(self, until: float) -> None:
        """Begin nothing any more, and wait a while for what is under way."""
        with self.yard.changed:
            self._resting = True
            self.yard.changed.wait_for(lambda: self.attempts is None, max(0.0, until - time.monotonic()))

    def cancel(self) -> None:
        """Give up what is under way."""
        self._cancelled.set()
        with self.yard.changed:
            self._ending = True
            self.yard.changed.notify_all()
        if (trial := self._try) is not None:
            _interrupt(trial, self._writer)

    def close(self) -> None:
        """Let go of everything."""
        self.cancel()
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            self.yard.log.warning("does not let go at the end of the run", sink=self.sink.id)
        elif self._writer is not None:
            self._writer.close()

    # In the thread of the lane

    def _run(self) -> None:
        while (work := self._await_work()) is not None:
            work()
        if self._order is not None:
            self._release(self._order.frame)

    def _await_work(self) -> Callable[[], None] | None:
        changed = self.yard.changed
        with changed:
            while not self._ending:
                if self._order is not None:
                    return self._deliver_order
                wait = None if not self.behind else self._due - time.monotonic()
                if wait is not None and wait <= 0 and not self._resting:
                    return self._catch_up
                changed.wait(None if wait in (None, math.inf) or self._resting else wait)
        return None

    def _deliver_order(self) -> None:
        order = self._order
        assert order is not None
        try:
            order.adopted(self._deliver)(order.frame, order.delivery, order.span, self.yard.chosen)
        except Exception as error:
            order.error = error
        finally:
            self._release(order.frame)
        with self.yard.changed:
            self.error = order.error
            self._order, order.done = None, True
            if self.behind and order.error is not None:  # the batch in hand has gone on without it
                self._back_off(order.error)
            self.yard.changed.notify_all()

    def _catch_up(self) -> None:
        """Deliver the oldest batch that was missed, or find that there is none any more."""
        yard, sink = self.yard, self.sink.id
        try:
            with yard.changed:
                gap = yard.ledger.next_gap(sink, yard.flow.id)
                yard.ledger.stands(sink, "in_sync" if gap is None else "catching_up")
                if gap is None:
                    self.behind, self.failures, self.error = False, 0, None
                    yard.log.info("has caught up", sink=sink)
                    yard.changed.notify_all()
                    return
            self._deliver_gap(gap)
        except Exception as error:
            with yard.changed:
                self.error = error
                self._back_off(error)
                yard.changed.notify_all()
            with contextlib.suppress(sqlite3.Error):  # it may be what has failed
                yard.ledger.stands(sink, "behind")
        else:
            self.failures = 0

    def _deliver_gap(self, gap: Gap) -> None:
        yard = self.yard
        yard.spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)  # live batches come first
        try:
            df, chosen = yard.missed.frame(gap, yard.spark)
        except Lost as lost:
            message = f"a batch that it missed is lost: {lost}"
            yard.log.error(message, sink=self.sink.id, batch=gap.delivery.batch)
            yard.ledger.lose(gap, str(lost))
            yard.missed.drop(gap.file)
            return
        frame = Frame(df, shared=False)
        try:
            self._deliver(frame, gap.delivery, gap.span, _all if chosen else yard.chosen)
        finally:
            self._release(frame)

    def _deliver(self, frame: Frame, delivery: DeliveryId, span: Span, chosen: Chosen) -> None:
        yard = self.yard
        attempts = Attempts(self.sink.effort, self._cancelled.wait, lambda e: self.note(e, delivery.batch))

        def once() -> Delivered:
            yard.permitted()
            self._try = trial = Try(yard.spark, frame, attempts)
            try:
                with trial.tagged():
                    if self._slow:
                        trial.compute()
                    frame.begin()
                    return self._write(trial, chosen, delivery)
            finally:
                self._try = None

        with yard.changed:
            self.attempts, self._seen_at = attempts, time.monotonic()
            yard.changed.notify_all()
        try:
            delivered = attempts.run(once)
            yard.rejected(delivered.rejected, delivery)  # before it counts as acknowledged (invariant 7)
            yard.missed.drop(yard.ledger.acked(delivery, span))
        finally:
            with yard.changed:
                self.attempts, self.moved_at = None, time.monotonic()
                yard.changed.notify_all()
        yard.counters.acknowledged(self.sink.id, delivered.events, len(delivered.rejected))

    def _write(self, trial: Try, chosen: Chosen, delivery: DeliveryId) -> Delivered:
        if self._cancelled.is_set():
            raise Retryable("the run ends")
        writer = self._writer = self._writer or self.sink.component.open(self.yard.flow.site)
        try:
            return writer.write(chosen(trial.frame.df, self.sink), delivery)
        except Exception as error:
            if not trial.interrupted:
                raise
            writer.close()
            self._writer = None  # it was cancelled, for good
            if trial.frame.computed:
                raise Overdue(self.sink.effort) from error
            self._slow = True
            self.yard.log.info(COMPUTED_FIRST, sink=self.sink.id, batch=delivery.batch)
            raise Backpressure(COMPUTED_FIRST, 0.0) from error

    def _release(self, frame: Frame) -> None:
        with self.yard.changed:
            frame.release()

    def _back_off(self, error: Exception) -> None:
        self.failures += 1
        wait = math.inf if failure_of(error).fatal else backoff_s(self.sink.effort, self.failures)
        self._due = time.monotonic() + wait

    def note(self, error: Exception, batch: int) -> None:
        """Keep an error of the sink for those who ask."""
        if self._cancelled.is_set():
            return
        failure, sink = sink_failure(self.sink, error), self.sink.id
        problem = failure.problem
        about = {"code": problem.code, "path": problem.path, "hint": problem.hint}
        self.yard.log.warning(f"delivery failed: {problem.message}", sink=sink, batch=batch, **about)
        if failure.passing:
            return
        told = f"{problem.path}: {problem.message}" if problem.path else problem.message
        self.yard.counters.failed(sink, told)
        self.yard.ledger.failed(sink, told)


def _all(df: DataFrame, _: Part[Sink]) -> DataFrame:
    return df


def _gets_on(trial: Try) -> bool:
    try:
        return trial.gets_on()
    except Exception:  # Spark itself may be gone
        return False


def _interrupt(trial: Try, writer: SinkWriter | None) -> None:
    if writer is not None:
        writer.cancel()
    trial.cancel()
