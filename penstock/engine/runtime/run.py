"""One run of a flow: a streaming query from its start to its end."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.received import ReceivedSource
from penstock.engine.delivery.delivery import Delivery
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import Plan
from penstock.engine.runtime.batch_log import BatchLine, write_batches
from penstock.engine.runtime.checkpoint_files import CheckpointFiles
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.failures import Failure, RunFailed, SinkFailed, failure_of, source_failure
from penstock.engine.runtime.flow_log import flow_log
from penstock.engine.runtime.latency_goal import goal_of
from penstock.engine.runtime.reception import Reception
from penstock.engine.runtime.storage import storage_failure
from penstock.errors import Problem
from penstock.frames.python_source import UNENDED
from penstock.frames.streams.cursors import keep_up
from penstock.processors.support.ticker import Clock
from penstock.spark.queries import (
    failure_in,
    has_nothing_to_do,
    is_between_batches,
    progress_since,
    start_query,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

End = Literal["completed", "failed", "stopped"]

EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
"""Allows Spark to close windows in a micro-batch without events, which costs as much as any other."""

FIRST_S = 30.0
"""Seconds without a failure after which a query counts as started, even without a first response.

A shorter time would be wrong: a source that starts at the end may not have determined the end yet.
"""

REST_S = 5.0
"""Seconds that a sink may catch up while the flow is drained; it resumes at the next start."""


class Run:
    """A running query. All methods except `give_up` are called by one thread.

    `on_batch` is called with true before each batch, and with false after each delivered batch.
    """

    def __init__(
        self,
        plan: Plan,
        checkpoint: str,
        counters: Counters,
        permitted: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
        on_batch: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.flow, self.counters, self.checkpoint = plan.flow, counters, checkpoint
        self._on_end, self._on_batch = on_end, on_batch
        self._plan = plan
        counters.goal = goal_of(plan.flow)
        self._files = CheckpointFiles(checkpoint)
        self._delivery = Delivery(plan.flow, counters, permitted, self._files.sync)
        self._reception = _reception_of(plan.flow, permitted)
        self._query: StreamingQuery | None = None
        self._writer: DataStreamWriter | None = None
        self._started_at = 0.0
        self._stopping = self._input_ended = False
        self._seen: tuple[int, str] | None = None
        self._answered = False
        self.ready = False

    def start(self) -> None:
        """Start the query; raises the error if it cannot start."""
        writer = self._plan.delivered.writeStream.queryName(self.flow.id).option(
            "checkpointLocation", self.checkpoint
        )
        writer = writer.trigger(**self.flow.source.component.trigger(self.flow.batch))
        self._writer = writer
        self._started_at = time.monotonic()
        if removed := self._files.repair():
            text = f"unfinished files of the checkpoint were removed: {', '.join(removed)}"
            flow_log(self.flow.site).warning(text, code="checkpoint_repaired")
        try:
            self._delivery.open(self._plan, self._plan.input.sparkSession)
            self._start_query()
            if self._reception is not None:
                self._reception.start()
        except BaseException as error:
            self._delivery.close()
            if (failure := storage_failure(error, self.checkpoint)) is not None:
                raise RunFailed(failure) from error
            raise

    def _deliver(self, df: DataFrame, batch_id: int) -> None:
        self._on_batch(True)
        self._delivery(df, batch_id)
        if self.flow.remembering:
            self._files.sync_state(batch_id)
        self._on_batch(False)

    def _start_query(self) -> None:
        assert self._writer is not None
        closes = str(not self._flushes_later()).lower()
        self._plan.output.sparkSession.conf.set(EMPTY_BATCHES, closes)
        self._query = start_query(self._writer, self._deliver)
        threading.Thread(target=self._await_end, name=f"end of {self.flow.id}", daemon=True).start()

    def _await_end(self) -> None:
        with contextlib.suppress(Exception):  # raises the query's failure, which `failure` describes better
            self._running.awaitTermination()
        self._on_end()

    def observe(self) -> bool:
        """Process the query's progress; true when the query has ended."""
        query = self._running
        ended = not query.isActive
        batches = []
        for progress in progress_since(query, self._seen):
            self._seen = progress["batchId"], progress["timestamp"]
            batches.append(self._count(progress))
        write_batches(self.flow.site.state, [batch for batch in batches if batch is not None])
        self.counters.stands(self._delivery.states)
        if not self._answered:
            self._answered = self._seen is not None or (not ended and has_nothing_to_do(query))
        if not self.ready:
            late = time.monotonic() - self._started_at > FIRST_S
            self.ready = self._answered or (not ended and late)
        return self._observe_reception(ended) and not self._flushing()

    def _observe_reception(self, ended: bool) -> bool:
        """Process the state of the receiver; true when the query has ended."""
        reception = self._reception
        if reception is None:
            return ended
        self.counters.received(reception.report(), reception.lag)
        if reception.failure is not None and not ended:
            self._running.stop()
            return True
        if reception.ended and not self._input_ended and not ended:
            self._read_the_rest()
            return False
        return ended

    def _read_the_rest(self) -> None:
        """After the last event was received, run the query to the end of the input stream."""
        self._input_ended = True
        self._finish_batch(float("inf"))
        self._running.stop()
        self._delivery.draining.clear()
        assert self._writer is not None
        self._writer = self._writer.trigger(availableNow=True)
        self._start_query()

    def _finish_batch(self, deadline: float) -> None:
        """Wait for the current batch to be committed, and begin no other."""
        query = self._running
        self._delivery.draining.set()
        while query.isActive and not is_between_batches(query) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _flushing(self) -> bool:
        """Whether stateful steps still hold events after the end of a finite input.

        If so, the clock is set past all of them, and the query runs until they are output.
        """
        if not self._finite_memory or self.end != "completed":
            return False
        assert self.flow.site.state is not None
        if not Clock(self.flow.site.state).flush(str(self._running.id)):
            return False
        self._running.awaitTermination()  # an inactive query may still occupy its name
        self._start_query()
        return True

    def _flushes_later(self) -> bool:
        """Whether another query will follow that flushes all events of the stateful steps."""
        if not self._finite_memory:
            return False
        assert self.flow.site.state is not None
        return Clock(self.flow.site.state).read().flush is None

    @property
    def _finite_memory(self) -> bool:
        """Whether the flow has stateful steps and a finite input."""
        finite = "availableNow" in self.flow.source.component.trigger(self.flow.batch) or self._input_ended
        return finite and any(part.component.stateful for part in self.flow.processors)

    def _count(self, progress: Mapping[str, Any]) -> BatchLine | None:
        behind = self.flow.source.component.behind((progress.get("sources") or [{}])[0])
        batch = self.counters.progressed(progress, behind)
        self._warn_of_unended(progress)
        remembering = [part for part in self.flow.processors if part.component.stateful]
        # Spark lists the last operator first.
        for part, state in zip(remembering, reversed(progress["stateOperators"]), strict=False):
            if part.component.folds:  # for other steps, the input and output counts show it
                self.counters.late(part.id, int(state["numRowsDroppedByWatermark"]))
        return batch

    def _warn_of_unended(self, progress: Mapping[str, Any]) -> None:
        """Log the transactions that were read without their end."""
        for source in progress["sources"] if "addBatch" in progress["durationMs"] else ():
            begin, end = source["startOffset"], source["endOffset"]
            if not isinstance(end, dict) or UNENDED not in end or begin == end:
                continue
            found = end[UNENDED]
            flow_log(self.flow.site).warning(
                f"{found['count']} transactions did not end within batch.max_tx_ms: their events were "
                f"processed without the rest. The first is '{found['id']}', from offset {found['first']} on.",
                code="transaction_unended",
                batch=progress["batchId"],
                transactions=found["count"],
            )

    @property
    def answered(self) -> bool:
        """Whether the source has responded at least once, so that the start is complete."""
        return self._answered or self._delivery.busy

    @property
    def idle(self) -> bool:
        """Whether the source had no new events at the last poll, so that no batch is in progress."""
        query = self._running
        waits = self._answered and not self._delivery.busy and query.isActive
        return waits and not query.status["isDataAvailable"]

    def drain(self, seconds: float) -> None:
        """Wait up to `seconds` for the current batch to be committed, begin no other, then stop."""
        self._stopping = True
        deadline = time.monotonic() + seconds
        self._finish_batch(deadline)
        self._delivery.rest(max(0.0, min(REST_S, deadline - time.monotonic())))
        self.stop()

    def give_up(self) -> None:
        """Cancel all delivery, so that no other method waits for a sink. Any thread may call it."""
        self._stopping = True
        self._delivery.cancel()

    def stop(self) -> None:
        """Stop now; the current batch is abandoned and will be repeated."""
        self.give_up()  # otherwise Spark would wait for a sink that waits for its server
        if self._reception is not None:
            self._reception.stop()
        try:
            self._running.stop()
        finally:
            self.observe()

    def finish(self) -> None:
        """After the last batch, let sinks that are behind catch up for as long as they make progress."""
        self._delivery.finish()
        self.counters.stands(self._delivery.states)

    def close(self) -> None:
        """Stop the receiver, close the sinks, and move the cursor."""
        if self._reception is not None:
            self._reception.stop()
        self._delivery.close()
        with contextlib.suppress(Exception):  # must not fail the end of a run
            self._keep_cursor()

    def _keep_cursor(self) -> None:
        """Move the flow's cursor past all committed events, in case a new checkpoint begins there."""
        place, last = self.flow.source.component.reads(self.flow.site), self._running.lastProgress
        if place is not None and last is not None:
            source = json.loads(last.json)["sources"][0]
            keep_up(self.flow.site, place, int(source["endOffset"]["offset"]))

    def catch_up(self, sink: str) -> None:
        """Make a sink that is behind retry now."""
        self._delivery.catch_up(sink)

    @property
    def trouble(self) -> Problem | None:
        """The failure of the source because of which its receiver is retrying; the flow continues."""
        return self._reception.trouble if self._reception is not None else None

    @property
    def end(self) -> End:
        """How the query ended."""
        if self._stopping:
            return "stopped"
        return "failed" if self.failure else "completed"

    @property
    def failure(self) -> Failure | None:
        """The failure that ended the query; None if it ended as intended."""
        if self._reception is not None and self._reception.failure is not None:
            return self._reception.failure
        error = self._delivery.error
        if isinstance(error, SinkFailed):
            return failure_of(error)
        found = error if error is not None else failure_in(self._running)
        if found is None:
            return None
        return storage_failure(found, self.checkpoint) or source_failure(self.flow.source, found)

    @property
    def _running(self) -> StreamingQuery:
        if self._query is None:
            raise RuntimeError("the run was not started")
        return self._query


def _reception_of(flow: Flow, permitted: Callable[[], None]) -> Reception | None:
    source = flow.source.component
    return Reception(flow, source, permitted) if isinstance(source, ReceivedSource) else None
