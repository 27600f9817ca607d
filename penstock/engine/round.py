"""One round of delivery: a batch is given to the sinks, until the commit policy is met or cannot be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.connectors.base import DeliveryId
from penstock.engine.attempts import Overdue
from penstock.engine.failures import SinkFailed
from penstock.engine.flow import Flow
from penstock.engine.frame import Frame
from penstock.engine.lanes import Adopted, Lane, Order
from penstock.engine.ledger import Span
from penstock.errors import Retryable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATIENCE_S = 1.0
"""Once the policy is met the others are waited for so long, or as long as it took to meet it, if longer."""

LOOK_S = 0.5
"""How often to look at the clock while nobody says anything."""

GRACE_S = 5.0
"""A sink that was interrupted at its deadline has so long to let go."""


def policy_met(flow: Flow, acknowledged: set[str]) -> bool:
    """Whether a batch that these sinks have acknowledged may be committed."""
    policy = flow.commit_policy
    if policy.mode == "quorum":
        return len(acknowledged) >= (policy.quorum or len(flow.sinks))
    return all(sink.id in acknowledged for sink in flow.sinks if policy.mode == "all" or sink.required)


class Round:
    """The batch in hand."""

    def __init__(
        self,
        flow: Flow,
        lanes: Mapping[str, Lane],
        lineage: str,
        batch: int,
        span: Span,
        frame: Frame,
        cancelled: Callable[[], bool],
    ) -> None:
        self.flow, self.lanes, self.frame, self.span = flow, lanes, frame, span
        self.lineage, self.batch = lineage, batch
        self.acknowledged: set[str] = set()
        self.computed = False
        """Whether the frame has been computed by somebody."""
        self._cancelled = cancelled
        self._orders: dict[str, Order] = {}
        self._yard = next(iter(lanes.values())).yard
        self._began = time.monotonic()

    def delivery(self, sink: str) -> DeliveryId:
        """The name of this batch for a sink."""
        return DeliveryId(self.flow.id, sink, self.lineage, self.batch)

    def deliver(self, acknowledged: set[str]) -> None:
        """Return when the batch may be committed; those that have acknowledged before are left alone.

        Raises why it may not (invariant 3).
        """
        self.acknowledged = acknowledged & set(self.lanes)
        with self._yard.changed:
            while not policy_met(self.flow, self.acknowledged):
                self._give()
                if not policy_met(self.flow, self.acknowledged | self._hopeful):
                    self._await_others(None)
                    raise self._failure
                self._wait(LOOK_S)
            now = time.monotonic()
            self._await_others(now + max(PATIENCE_S, now - self._began))

    def _give(self) -> None:
        """Give the batch to all that can take it, also to those that have caught up just now."""
        for id, lane in self.lanes.items():
            if id in self.acknowledged or id in self._orders or not lane.free:
                continue
            if self._yard.ledger.has_acked(self.delivery(id)):  # it was among those it had missed
                self.acknowledged.add(id)
                continue
            self.frame.hold()
            adopted = _adopted(self.frame.df)
            order = self._orders[id] = Order(self.delivery(id), self.span, self.frame, adopted)
            lane.give(order)

    @property
    def _hopeful(self) -> set[str]:
        """Those who may still acknowledge the batch."""
        absent = {id for id, lane in self.lanes.items() if not lane.hopeless and self._in_time(lane)}
        return (absent - set(self._orders)) | self._running

    def _in_time(self, lane: Lane) -> bool:
        """Whether a sink that catches up has got on within its deadline, or may not have had the time."""
        waited = time.monotonic() - max(self._began, lane.moved_at)
        return lane.computing or waited < lane.sink.effort.deadline_ms / 1000

    @property
    def _running(self) -> set[str]:
        now = time.monotonic()
        running = set()
        for id, order in self._orders.items():
            attempts = self.lanes[id].attempts
            stuck = attempts is not None and now > attempts.deadline + GRACE_S
            if not order.done and not stuck:
                running.add(id)
        return running

    def _await_others(self, until: float | None) -> None:
        """Wait for those that are under way: up to a moment, or until their deadlines have ended them."""
        while self._running:
            wait = LOOK_S if until is None else min(LOOK_S, until - time.monotonic())
            if wait <= 0:
                return
            self._wait(wait)

    def _wait(self, seconds: float) -> None:
        """Wait for news, and take them in."""
        self._yard.changed.wait(seconds)
        if self._cancelled():
            raise Retryable("the run ends")
        done = {id for id, order in self._orders.items() if order.done and order.error is None}
        self.acknowledged |= done
        self.computed = self.computed or bool(done)

    @property
    def _failure(self) -> Exception:
        """Why the batch cannot be committed: the error of a sink that had to have it, if there is one."""
        absent = [lane for id, lane in self.lanes.items() if id not in self.acknowledged]
        first = min(absent, key=lambda lane: (not lane.sink.required, lane.error is None))
        if first.error is None and first.sink.id in self._orders:  # it hangs
            first.error = Overdue(first.sink.effort)
            first.note(first.error, self.batch)
        return SinkFailed(first.sink, first.error or Retryable("is behind and has not caught up in time"))


def _adopted(df: DataFrame) -> Adopted:
    """Makes a function run as a part of the query, so that stopping it reaches its jobs too.

    One for each thread: those that share one would share the tags of their jobs, and cancel one another's.
    """
    from pyspark import inheritable_thread_target

    return inheritable_thread_target(df.sparkSession)
