"""One run of a flow: a streaming query from its start to its end."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.cursors import keep_up
from penstock.engine.counters import Counters
from penstock.engine.delivery import Delivery
from penstock.engine.failures import Failure, failure_of, java_failure
from penstock.engine.plan import Plan
from penstock.processors.ticker import Clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

End = Literal["completed", "failed", "stopped"]

QUIET_S, BUSY_S = 3.0, 30.0
"""A query counts as started after so long without a failure: with no data yet, or in its first batch."""

REST_S = 5.0
"""How long a sink that catches up may take to end when the flow is drained; it goes on at the next start."""

LOOKING = "Getting offsets from"
WAITING = ("Waiting for data to arrive", "Waiting for next trigger")


class Run:
    """A running query. All methods are called by one thread."""

    def __init__(
        self,
        plan: Plan,
        checkpoint: str,
        counters: Counters,
        permitted: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
        on_batch: Callable[[], None] = lambda: None,
    ) -> None:
        self.flow, self.counters, self.checkpoint = plan.flow, counters, checkpoint
        self._on_end, self._on_batch = on_end, on_batch
        self._plan = plan
        self._delivery = Delivery(plan.flow, counters, permitted)
        self._query: StreamingQuery | None = None
        self._writer: DataStreamWriter | None = None
        self._started_at = 0.0
        self._stopping = False
        self._seen: tuple[int, str] | None = None
        self._answered = False
        self.ready = False

    def start(self) -> None:
        """Start the query; raises what keeps it from starting."""
        writer = self._plan.output.writeStream.foreachBatch(self._deliver)
        writer = writer.queryName(self.flow.id).option("checkpointLocation", self.checkpoint)
        writer = writer.trigger(**self.flow.source.component.trigger(self.flow.batch))
        self._writer = writer
        self._started_at = time.monotonic()
        try:
            self._delivery.open(self._plan, self._plan.input.sparkSession)
            self._start_query()
        except BaseException:
            self._delivery.close()
            raise

    def _deliver(self, df: DataFrame, batch_id: int) -> None:
        try:
            self._delivery(df, batch_id)
        finally:
            self._on_batch()

    def _start_query(self) -> None:
        assert self._writer is not None
        self._query = self._writer.start()
        threading.Thread(target=self._await_end, name=f"end of {self.flow.id}", daemon=True).start()

    def _await_end(self) -> None:
        with contextlib.suppress(Exception):  # raises the query's failure, which `failure` tells better
            self._running.awaitTermination()
        self._on_end()

    def observe(self) -> bool:
        """Take notice of progress; true when the query has ended."""
        query = self._running
        ended = not query.isActive
        last = query.lastProgress
        if last is not None and _mark(last) != self._seen:  # most of the time nothing is new
            for progress in query.recentProgress:
                if self._seen is None or _mark(progress) > self._seen:
                    self._seen = _mark(progress)
                    self._count(json.loads(progress.json))
        if not self._answered:
            self._answered = self._seen is not None or (not ended and query.status["message"] in WAITING)
        if not self.ready:
            patience = BUSY_S if self._delivery.busy else QUIET_S
            late = time.monotonic() - self._started_at > patience
            self.ready = self._answered or (not ended and late)
        return ended and not self._flushing()

    def _flushing(self) -> bool:
        """Whether steps that remember events still hold some after the last of a finite input.

        Then the clock is set past all of them, and the query goes on for a moment.
        """
        finite = "availableNow" in self.flow.source.component.trigger(self.flow.batch)
        stateful = any(part.component.stateful for part in self.flow.processors)
        if not (finite and stateful) or self.end != "completed":
            return False
        assert self.flow.site.state is not None
        if not Clock(self.flow.site.state).flush(str(self._running.id)):
            return False
        self._start_query()
        return True

    def _count(self, progress: Mapping[str, Any]) -> None:
        self.counters.progressed(progress)
        remembering = [part for part in self.flow.processors if part.component.stateful]
        # Spark tells of the last one first.
        for part, state in zip(remembering, reversed(progress["stateOperators"]), strict=False):
            if part.component.folds:  # of others one sees that fewer events come out
                self.counters.late(part.id, int(state["numRowsDroppedByWatermark"]))

    @property
    def answered(self) -> bool:
        """Whether the source has answered at least once: all that a start needs is there."""
        return self._answered or self._delivery.busy

    @property
    def idle(self) -> bool:
        """Whether the source was asked and had nothing new the last time, so that no batch is in hand."""
        query = self._running
        waits = self._answered and not self._delivery.busy and query.isActive
        return waits and not query.status["isDataAvailable"]

    def drain(self, seconds: float) -> None:
        """Let the batch in hand finish and be committed, begin no other, then stop."""
        query = self._running
        self._stopping = True
        self._delivery.draining.set()
        deadline = time.monotonic() + seconds
        while query.isActive and not _between_batches(query) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._delivery.rest(max(0.0, min(REST_S, deadline - time.monotonic())))
        self.stop()

    def stop(self) -> None:
        """Stop now; the batch in hand is given up and will be repeated."""
        self._stopping = True
        self._delivery.cancel()  # or Spark would wait for a sink that waits for the other side
        try:
            self._running.stop()
        finally:
            self.observe()

    def close(self) -> None:
        """Let go of what the sinks hold; after the last batch they may catch up first."""
        with contextlib.suppress(Exception):  # Spark itself may be gone
            if self.end == "completed":
                self._delivery.finish()
        self._delivery.close()
        with contextlib.suppress(Exception):  # likewise
            self._keep_cursor()

    def _keep_cursor(self) -> None:
        """Let the cursor of the flow tell of all that is committed, should a new checkpoint begin there."""
        place, last = self.flow.source.component.reads(self.flow.site), self._running.lastProgress
        if place is not None and last is not None:
            source = json.loads(last.json)["sources"][0]
            keep_up(self.flow.site, place, int(source["endOffset"]["offset"]))

    def catch_up(self, sink: str) -> None:
        """Let a sink that is behind try again now."""
        self._delivery.catch_up(sink)

    @property
    def end(self) -> End:
        """How the query ended."""
        if self._stopping:
            return "stopped"
        return "failed" if self.failure else "completed"

    @property
    def failure(self) -> Failure | None:
        """Why the query ended, if it was not meant to."""
        if self._delivery.error is not None:
            return failure_of(self._delivery.error)
        found = self._running._jsq.exception()
        return java_failure(found.get()) if found.isDefined() else None

    @property
    def _running(self) -> StreamingQuery:
        if self._query is None:
            raise RuntimeError("the run was not started")
        return self._query


def _between_batches(query: StreamingQuery) -> bool:
    """Whether the last batch is committed and no other has begun. A source may take long to find one."""
    status = query.status
    return not status["isTriggerActive"] or status["message"].startswith(LOOKING)


def _mark(progress: StreamingQueryProgress) -> tuple[int, str]:
    return progress.batchId, progress.timestamp
