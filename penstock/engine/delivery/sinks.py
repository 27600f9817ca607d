"""The sinks of a running flow: each has its own thread, which delivers one batch after the other.

A sink either gets the current batch or is behind: then it delivers its backlog, in order and each batch under
its own number, until the backlog is empty. No sink waits for another.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.connectors.base import Delivered, DeliveryId, Rejected, Sink, SinkWriter
from penstock.engine.delivery.attempts import Attempt, Attempts, Overdue, backoff_s
from penstock.engine.delivery.backlog import Backlog, Lost
from penstock.engine.delivery.batch import Adoption, MicroBatch
from penstock.engine.delivery.events import ComputedEvents
from penstock.engine.delivery.ledger import Gap, Ledger, Span
from penstock.engine.plan.flow import Flow, Part
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.failures import failure_of, sink_failure
from penstock.engine.runtime.flow_log import FlowLog
from penstock.engine.runtime.limits import POOL
from penstock.errors import Retryable
from penstock.spark import jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN_S = 5.0
"""Seconds that a thread may take to end; a thread that hangs is abandoned, and ends with the process."""


@dataclass(frozen=True)
class Context:
    """State that the sinks of a run share."""

    flow: Flow
    spark: SparkSession
    ledger: Ledger
    backlog: Backlog
    counters: Counters
    permitted: Callable[[], None]
    """Raises if this process must not write any more (invariant 6)."""
    rejected: Callable[[Iterable[Rejected], DeliveryId], int]
    """Stores events that a sink has rejected, and returns their number."""
    log: FlowLog
    changed: threading.Condition = field(default_factory=threading.Condition)
    """Guards the state shared by the threads of the sinks and of the batch."""


@dataclass
class Order:
    """The current batch, for one sink."""

    batch: MicroBatch
    adoption: Adoption | None = None
    """Makes the delivery part of the query; None if it starts no jobs."""
    done: bool = False
    error: Exception | None = None


class SinkRunner:
    """Delivers batches to one sink."""

    def __init__(self, sink: Part[Sink], context: Context) -> None:
        self.sink, self.context = sink, context
        self.behind = context.ledger.next_gap(sink.id, context.flow.id) is not None
        self.error: Exception | None = None
        """The error because of which the sink is or was behind."""
        self.failures = 0
        """Consecutive failures while the sink catches up."""
        self.attempts: Attempts | None = None
        """The attempts in progress."""
        self._order: Order | None = None
        self._writer: SinkWriter | None = None
        self._due = 0.0
        self._ending = self._resting = False
        self._cancelled = threading.Event()
        self.moved_at = 0.0
        """When the sink last acknowledged a batch, on the monotonic clock."""
        self.catching_up = False
        """Whether missed events are being read again; this time does not count toward the sink's deadline."""
        self._tag = f"penstock-{uuid.uuid4().hex}"
        """The tag of the jobs that read missed events."""
        self._attempt: Attempt | None = None
        """The attempt in progress."""
        self._thread = threading.Thread(target=self._run, name=f"sink {sink.id}", daemon=True)
        self._thread.start()

    # Called with `context.changed`

    @property
    def free(self) -> bool:
        """Whether the sink can accept the current batch."""
        return not self.behind and self._order is None

    @property
    def hopeless(self) -> bool:
        """Whether the sink will not retry on its own."""
        return self.behind and self._due == math.inf

    @property
    def hurrying(self) -> bool:
        """Whether the sink was requested to catch up now, and has not failed since."""
        return self.behind and self._due == 0.0

    def give(self, order: Order) -> None:
        """Start the delivery of the current batch."""
        self._order = order
        self.context.changed.notify_all()

    def fall_behind(self) -> None:
        """Mark the sink as behind: the current batch is committed without it."""
        if not self.behind:
            self.behind, self.failures, self._due = True, 0, 0.0
            why = None if self.error is None else sink_failure(self.sink, self.error).problem
            about = {"error": why.message, "path": why.path} if why else {}
            self.context.log.warning(
                "sink fell behind: batches continue without it", sink=self.sink.id, **about
            )
            if self._order is None and self.error is not None:
                self._back_off(self.error)
        self.context.changed.notify_all()

    def hurry(self) -> None:
        """Retry the backlog now."""
        self._due = 0.0
        self.context.changed.notify_all()

    # Called by any thread

    def look(self) -> None:
        """Interrupt an attempt that is past its deadline."""
        if (attempt := self._attempt) is not None:
            attempt.look()

    def rest(self, until: float) -> None:
        """Start no further delivery, and wait until a point in time for the current one."""
        with self.context.changed:
            self._resting = True
            self.context.changed.wait_for(lambda: self.attempts is None, max(0.0, until - time.monotonic()))

    def cancel(self) -> None:
        """Cancel the current delivery."""
        self._cancelled.set()
        with self.context.changed:
            self._ending = True
            self.context.changed.notify_all()
        if (attempt := self._attempt) is not None:
            attempt.interrupt()
        if self.catching_up:
            jobs.cancel(self.context.spark, self._tag)

    def close(self) -> None:
        """Close the writer and end the thread."""
        self.cancel()
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            self.context.log.warning("sink did not stop at the end of the run", sink=self.sink.id)
        elif self._writer is not None:
            self._writer.close()

    # In the thread of the sink

    def _run(self) -> None:
        while (work := self._await_work()) is not None:
            work()
        if self._order is not None:
            self._order.batch.events.release()

    def _await_work(self) -> Callable[[], None] | None:
        changed = self.context.changed
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
        batch = order.batch
        try:
            deliver = self._deliver if order.adoption is None else order.adoption(self._deliver)
            deliver(batch.events, batch.delivery(self.sink.id), batch.span)
        except Exception as error:
            order.error = error
        finally:
            batch.events.release()
        with self.context.changed:
            self.error = order.error
            self._order, order.done = None, True
            if self.behind and order.error is not None:  # the batch was committed without this sink
                self._back_off(order.error)
            self.context.changed.notify_all()

    def _catch_up(self) -> None:
        """Deliver the oldest batch of the backlog; if the backlog is empty, the sink is in sync again."""
        context, sink = self.context, self.sink.id
        try:
            with context.changed:
                gap = context.ledger.next_gap(sink, context.flow.id)
                context.ledger.stands(sink, "in_sync" if gap is None else "catching_up")
                if gap is None:
                    self.behind, self.failures, self.error = False, 0, None
                    context.log.info("sink caught up", sink=sink)
                    context.changed.notify_all()
                    return
            self._deliver_gap(gap)
        except Exception as error:
            with context.changed:
                self.error = error
                self._back_off(error)
                context.changed.notify_all()
            with contextlib.suppress(sqlite3.Error):  # the ledger itself may have failed
                context.ledger.stands(sink, "behind")
        else:
            self.failures = 0

    def _deliver_gap(self, gap: Gap) -> None:
        context = self.context
        context.spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)  # live batches come first
        self.catching_up = True
        try:
            with jobs.tagged(context.spark, self._tag):
                events = context.backlog.events(gap, self.sink)
        except Lost as lost:
            message = f"a missed batch is lost: {lost}"
            context.log.error(message, sink=self.sink.id, batch=gap.delivery.batch)
            context.ledger.lose(gap, str(lost))
            context.backlog.settle(gap.file)
            return
        except Exception as error:
            self.note(error, gap.delivery.batch)
            raise
        finally:
            self.catching_up, self.moved_at = False, time.monotonic()
        try:
            self._deliver(events, gap.delivery, gap.span)
        finally:
            events.release()

    def _deliver(self, events: ComputedEvents, delivery: DeliveryId, span: Span) -> None:
        context = self.context
        attempts = Attempts(self.sink.effort, self._cancelled.wait, lambda e: self.note(e, delivery.batch))
        began = time.monotonic()
        with context.changed:
            self.attempts = attempts
            context.changed.notify_all()
        try:
            delivered = attempts.run(lambda: self._write(events, delivery, attempts))
            rejected = context.rejected(delivered.rejected, delivery)  # before the ack: invariant 7
            context.backlog.settle(context.ledger.acked(delivery, span))
        finally:
            with context.changed:
                self.attempts, self.moved_at = None, time.monotonic()
                context.changed.notify_all()
        took = time.monotonic() - began
        context.counters.acknowledged(self.sink.id, delivered.events, rejected, took)

    def _write(self, events: ComputedEvents, delivery: DeliveryId, attempts: Attempts) -> Delivered:
        context = self.context
        context.permitted()
        # Links may have changed since the last batch. Names are resolved when a connection is opened.
        context.flow.site.policy.require(self.sink.component, resolve=self._writer is None)
        if self._writer is None:
            self._writer = self.sink.component.open(context.flow.site)
            self._writer.permitted = context.permitted
        writer = self._writer
        self._attempt = attempt = Attempt(context.spark, writer, attempts, jobs=not events.in_memory)
        try:
            if self._cancelled.is_set():
                raise Retryable("the run ends")
            outcome, interrupted = attempt.run(lambda: writer.write(events.of(self.sink), delivery))
        finally:
            self._attempt = None
        if interrupted:
            writer.close()
            self._writer = None  # cancelled permanently: the next attempt opens another
        if not isinstance(outcome, Exception):
            return outcome
        if interrupted and not self._cancelled.is_set():
            raise Overdue(self.sink.effort) from outcome
        raise outcome

    def _back_off(self, error: Exception) -> None:
        self.failures += 1
        wait = math.inf if failure_of(error).fatal else backoff_s(self.sink.effort, self.failures)
        self._due = time.monotonic() + wait

    def note(self, error: Exception, batch: int) -> None:
        """Record an error of the sink in the log, the counters and the ledger."""
        if self._cancelled.is_set():
            return
        failure, sink = sink_failure(self.sink, error), self.sink.id
        problem = failure.problem
        about = {"code": problem.code, "path": problem.path, "hint": problem.hint}
        self.context.log.warning(f"delivery failed: {problem.message}", sink=sink, batch=batch, **about)
        if failure.passing:
            return
        text = f"{problem.path}: {problem.message}" if problem.path else problem.message
        self.context.counters.failed(sink, text)
        self.context.ledger.failed(sink, text)
