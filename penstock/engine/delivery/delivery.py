"""Delivery of micro-batches to all sinks of a flow, under its commit policy."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.engine.delivery.attempts import backoff_s
from penstock.engine.delivery.backlog import Backlog
from penstock.engine.delivery.batch import MicroBatch
from penstock.engine.delivery.commit import Commit
from penstock.engine.delivery.copies import Copies
from penstock.engine.delivery.ledger import NOTES, Ledger
from penstock.engine.delivery.sink_states import State
from penstock.engine.delivery.sinks import Context, SinkRunner
from penstock.engine.letters.notes import Report
from penstock.engine.letters.record import Recorder
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import Plan
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.failures import failure_of
from penstock.engine.runtime.flow_log import flow_log
from penstock.errors import Retryable
from penstock.frames.logs import LOGS
from penstock.frames.streams.cursors import oldest_age_ms
from penstock.spark.stored_files import StoredFiles
from penstock.specs.policies import Effort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOOK_S = 0.1
"""Seconds between two checks for sinks that are past their deadline."""


class Beside:
    """A function that runs in another thread."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the function to return; raises its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._error = error


class Drained(Exception):
    """Raised before a batch that must not begin, because the flow is stopping."""


class Delivery:
    """The function that Spark calls with each micro-batch; when it returns, the checkpoint advances.

    `sync` is called with the number of a batch, and returns before any sink gets the batch.
    """

    def __init__(
        self,
        flow: Flow,
        counters: Counters,
        permitted: Callable[[], None],
        sync: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.flow, self.counters, self.permitted, self._sync = flow, counters, permitted, sync
        self.draining = threading.Event()
        self.busy = False
        self.error: BaseException | None = None
        self._cancelled = threading.Event()
        self._sinks: dict[str, SinkRunner] = {}

    def open(self, plan: Plan, spark: SparkSession) -> None:
        """Open the ledger and the sinks. Sinks with a backlog start to catch up."""
        flow, site = self.flow, self.flow.site
        assert site.state is not None
        self._plan = plan
        place = flow.source.component.reads(site)
        self._source = LOGS.log(place.directory) if place else None
        self._copies: Copies | None = None
        if site.copies is not None:
            self._copies = Copies(StoredFiles(spark, site.copies), site.state, site.epoch)
            self._copies.fetch()
        self._ledger = Ledger(site.state, site.epoch, shared=site.shared)
        self._ledger.retain([sink.id for sink in flow.sinks])
        if self._copies is not None:
            self._copies.claim(self._ledger)
        self._log = flow_log(site)
        self._backlog = Backlog(plan, spark, self._ledger, self._log, self._copies)
        self._backlog.tidy()
        self._recorder = Recorder(plan, spark, self.counters)
        self._context = Context(
            flow,
            spark,
            self._ledger,
            self._backlog,
            self.counters,
            self.permitted,
            self._recorder.rejected,
            self._log,
        )
        self._sinks = {sink.id: SinkRunner(sink, self._context) for sink in flow.sinks}
        threading.Thread(target=self._supervise, name=f"sinks of {flow.id}", daemon=True).start()

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        if self.draining.is_set():
            raise Drained
        self.busy = True
        try:
            self.permitted()  # invariant 6: a worker that has lost its lease delivers nothing
            self._deliver(df, batch_id)
        except BaseException as error:
            self.error = error  # Spark passes on only the error's text
            raise
        finally:
            self.busy = False

    @property
    def states(self) -> Mapping[str, State]:
        """The states of the sinks that have had a batch."""
        return self._ledger.states()

    def catch_up(self, sink: str) -> None:
        """Make a sink that is behind retry now."""
        with self._context.changed:
            self._sinks[sink].hurry()

    def rest(self, seconds: float) -> None:
        """Wait up to a number of seconds for deliveries in progress, and start no others."""
        until = time.monotonic() + seconds
        for runner in self._sinks.values():
            runner.rest(until)

    def finish(self) -> None:
        """After the last batch, let sinks that are behind catch up for as long as they make progress."""
        with self._context.changed:
            for runner in self._sinks.values():
                runner.hurry()
            while any(runner.hurrying for runner in self._sinks.values()) and not self._cancelled.is_set():
                self._context.changed.wait(LOOK_S)

    def cancel(self) -> None:
        """Stop delivering and waiting immediately: the run ends."""
        self.draining.set()
        self._cancelled.set()
        for runner in self._sinks.values():
            runner.cancel()

    def close(self) -> None:
        """Close every sink."""
        self.cancel()
        for runner in self._sinks.values():
            runner.close()
        if self._sinks:
            self._ledger.close()

    def _deliver(self, df: DataFrame, number: int) -> None:
        batch = MicroBatch(self._plan, df, number)
        if batch.span.empty and not self.flow.remembering:
            return  # Spark starts with an empty batch if the source has no events yet
        done = self._ledger.begin(batch.lineage, number)
        synced = Beside(lambda: self._sync(number))  # takes some milliseconds, while the batch is computed
        try:
            report = None
            if not done.issuperset((NOTES, *self._sinks)) or self.flow.remembering:
                report = self._computed(batch)
            synced.wait()
            commit = Commit(batch, self._sinks, self._cancelled.is_set)
            commit.deliver(done)
            self._note_age(batch)
            self._leave_behind(batch, commit.acknowledged)
            if NOTES not in done and report is not None:
                self._recorder.record(report, batch.delivery(NOTES))
                self._ledger.settled(batch.lineage, number)
            if self._copies is not None:  # before the checkpoint passes the batch
                self._copies.save()
        finally:
            batch.release()

    def _computed(self, batch: MicroBatch) -> Report:
        """Compute a batch; retries machine failures, which are not caused by the flow.

        A batch that cannot be computed again ends the run instead, and the next run computes it.
        """
        troubles = 0
        while True:
            try:
                return batch.compute()
            except Exception as error:
                failure = failure_of(error)
                if not failure.passing or not batch.repeatable:
                    raise
                troubles += 1
                self._log.warning(failure.problem.message, batch=batch.number, code=failure.problem.code)
                if self._cancelled.wait(backoff_s(Effort(), troubles)):
                    raise Retryable("the run ends") from error

    def _note_age(self, batch: MicroBatch) -> None:
        """Record the age of the oldest event of a batch that was read from a stream."""
        if self._source is None:
            return
        first, end, age = batch.span.first, batch.span.next, None
        with contextlib.suppress(OSError, ValueError):  # only a metric: no reason to fail
            if first is not None and end is not None:
                age = oldest_age_ms(self._source, first, end)
        self.counters.aged(batch.number, age)

    def _leave_behind(self, batch: MicroBatch, acknowledged: set[str]) -> None:
        """Add the batch to the backlog of each sink that has not acknowledged it (invariant 5)."""
        known = self._ledger.missing(batch.lineage, batch.number)
        for sink, runner in self._sinks.items():
            if sink in acknowledged:
                continue
            if sink not in known:
                events = batch.events.of(runner.sink)
                if not self._backlog.add(events, batch.delivery(sink), batch.span):
                    continue
                self.counters.missed(sink)
            with self._context.changed:
                runner.fall_behind()

    def _supervise(self) -> None:
        """End attempts that are past their deadline."""
        while not self._cancelled.is_set():
            with self._context.changed:
                busy = [runner for runner in self._sinks.values() if runner.attempts is not None]
                self._context.changed.wait(LOOK_S if busy else None)
            for runner in busy:
                runner.look()
