"""A micro-batch: its name, its events and the reports of its steps, all from one computation."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import DeliveryId
from penstock.engine.delivery.events import ComputedEvents
from penstock.engine.delivery.ledger import Span
from penstock.engine.letters.notes import SOURCE, Report
from penstock.engine.plan.plan import Plan, arrow_of, counted_outside
from penstock.engine.plan.python_steps import BATCHES
from penstock.errors import Retryable
from penstock.frames.python_source import BEGIN
from penstock.frames.streams.reader import FIRST, batches_of, lost_before
from penstock.plurals import plural
from penstock.processors.support.event_time import LATEST, LATEST_SO_FAR
from penstock.processors.support.ticker import Clock
from penstock.spark.micro_batches import CurrentBatch
from penstock.spark.spool import emptied, order_beside, unfinished

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SPOOL = "spool"
"""The directory for the notes of the current batch, next to the ledger."""


Adoption = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Wraps a function so that it runs as part of the query, in any thread."""


class MicroBatch:
    """The batch of a `foreachBatch` call of Spark."""

    def __init__(self, plan: Plan, df: DataFrame, number: int) -> None:
        self._plan, self._df, self._current = plan, df, CurrentBatch(plan.input.sparkSession)
        self.flow, self.number = plan.flow, number
        self.lineage = self._current.query
        offsets = (self._current.committed, self._current.available)
        self.span = Span(*_offsets(*offsets)) if plan.flow.by_offset else Span()
        shaped = plan.shaped if plan.only_sink is None else lambda df, _: df
        self.events = ComputedEvents(df, plan.flow.sinks, shaped)
        assert self.flow.site.state is not None
        self._state: Path = self.flow.site.state
        self._spool = self._state / SPOOL

    def delivery(self, sink: str) -> DeliveryId:
        """The name of this batch for a sink."""
        return DeliveryId(self.flow.id, sink, self.lineage, self.number)

    def compute(self) -> Report:
        """Compute the events, once; returns the report of the steps."""
        shutil.rmtree(self._state / SPOOL, ignore_errors=True)
        # A new directory: a task of an earlier computation may still run on a lost executor.
        self._spool = self._state / SPOOL / uuid.uuid4().hex
        properties = emptied(self._spool)
        if self.flow.remembering:
            properties |= order_beside(self._state / SPOOL, self._current.run, self.number)
            properties[LATEST_SO_FAR] = json.dumps(self._latest_so_far())
        if self.flow.by_offset and self.flow.in_python:
            properties[BATCHES] = json.dumps(self._begins())
        self._current.begin(properties)
        self.events.compute(self._collected, self._verify)
        return Report.of(self._current.end(), self._spool, self._counts())

    @property
    def repeatable(self) -> bool:
        """Whether `compute` may be called again after a failure.

        With a shuffle, only the part after it would be computed again: without the reports of the steps
        before it, and with state that has already changed. In that case a new run has to compute the batch.
        """
        return not self._current.shuffles

    def _verify(self) -> None:
        """Raise `Retryable` unless all notes have arrived (invariant 7)."""
        if missing := unfinished(self._spool):
            raise Retryable(
                f"the reports of {plural(len(missing), 'task')} did not arrive: the batch is computed again"
            )

    def _collected(self, df: DataFrame) -> pa.Table | list[bytes]:
        whole = df is self._df
        if whole and (writer := self._plan.task_writer) is not None:
            return self._current.write(df, writer, whole=True)
        schema = self._plan.arrow if whole else arrow_of(df)
        return self._current.collect(df, schema, self._spool, whole=whole)

    def _counts(self) -> dict[str, int]:
        """The counts that the query did not observe."""
        known = counted_outside(self.flow)
        found = dict.fromkeys(known - {SOURCE}, self.events.rows) if known - {SOURCE} else {}
        first, end = self.span.first, self.span.next
        if SOURCE in known and first is not None and end is not None:
            found[SOURCE] = end - first - lost_before(self.flow.site.flow, end) if end > first else 0
        return found

    def _begins(self) -> list[int]:
        """The first offsets of the batches in this micro-batch."""
        first, end = self.span.first, self.span.next
        if first is None or end is None:
            return []
        return batches_of(self.flow.site.flow, first, end)

    def release(self) -> None:
        """Free the events of a finished batch."""
        self.events.release()
        shutil.rmtree(self._state / SPOOL, ignore_errors=True)

    def adoption(self) -> Adoption:
        """A wrapper for functions that other threads run as part of the query. Call it in the query's thread.

        Stopping the query then also stops the jobs of the function, and tasks that repeat lost work know the
        batch. Create one wrapper per thread: threads that share one would share job tags, and cancel each
        other's jobs.
        """
        from pyspark import inheritable_thread_target

        adoption: Adoption = inheritable_thread_target(self._df.sparkSession)
        return adoption

    def _latest_so_far(self) -> dict[str, int]:
        """The latest time of all events before the batch, by input, including clock ticks."""
        latest = {**Clock(self._state).before(self.lineage, self.number)}
        if watermark := self._current.watermark_ms:
            ticked = watermark + self.flow.delay_ms
            latest = {name: max(ms, ticked) for name, ms in ({LATEST: ticked} | latest).items()}
        return latest


def _offsets(committed: Any, available: Any) -> tuple[int | None, int | None]:
    """The first and the end offset (exclusive) that a batch reads, if its source is a stream."""
    if FIRST in available and not committed:  # Spark does not store the start of the first batch
        return available[FIRST], available["offset"]
    return (available if BEGIN in available else committed).get("offset"), available.get("offset")
