"""Decides when a batch may be committed: it is delivered until the commit policy is met, or can't be met."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from penstock.engine.delivery.attempts import Overdue
from penstock.engine.delivery.batch import MicroBatch
from penstock.engine.delivery.sinks import Order, SinkRunner
from penstock.engine.plan.flow import Flow
from penstock.engine.runtime.failures import SinkFailed
from penstock.errors import Retryable

PATIENCE_S = 1.0
"""Once the policy is met, the other sinks get this many seconds, or the time elapsed so far, if longer."""

LOOK_S = 0.5
"""Seconds between two checks of the clock while no sink reports anything."""

GRACE_S = 5.0
"""Seconds that a sink may take to end an attempt that was interrupted at its deadline."""


def policy_met(flow: Flow, acknowledged: set[str]) -> bool:
    """Whether a batch that these sinks have acknowledged may be committed."""
    policy = flow.commit_policy
    if policy.mode == "quorum":
        return len(acknowledged) >= (policy.quorum or len(flow.sinks))
    return all(sink.id in acknowledged for sink in flow.sinks if policy.mode == "all" or sink.required)


class Commit:
    """The delivery of one batch to all sinks that can accept it."""

    def __init__(
        self, batch: MicroBatch, sinks: Mapping[str, SinkRunner], cancelled: Callable[[], bool]
    ) -> None:
        self.batch, self.sinks = batch, sinks
        self.acknowledged: set[str] = set()
        self._cancelled = cancelled
        self._orders: dict[str, Order] = {}
        self._context = next(iter(sinks.values())).context
        self._began = time.monotonic()

    def deliver(self, acknowledged: set[str]) -> None:
        """Return when the batch may be committed; sinks in `acknowledged` do not get it again.

        Raises the reason if it may not be committed (invariant 3).
        """
        flow = self.batch.flow
        self.acknowledged = acknowledged & set(self.sinks)
        with self._context.changed:
            while not policy_met(flow, self.acknowledged):
                self._give()
                if not policy_met(flow, self.acknowledged | self._hopeful):
                    self._await_others(None)
                    raise self._failure
                self._wait(LOOK_S)
            now = time.monotonic()
            self._await_others(now + max(PATIENCE_S, now - self._began))

    def _give(self) -> None:
        """Pass the batch to every sink that can accept it, including sinks that have just caught up."""
        for sink, runner in self.sinks.items():
            if sink in self.acknowledged or sink in self._orders or not runner.free:
                continue
            if self._context.ledger.has_acked(self.batch.delivery(sink)):  # delivered from the sink's backlog
                self.acknowledged.add(sink)
                continue
            self.batch.events.hold()
            adoption = None if self.batch.events.in_memory else self.batch.adoption()
            order = self._orders[sink] = Order(self.batch, adoption)
            runner.give(order)

    @property
    def _hopeful(self) -> set[str]:
        """The sinks that may still acknowledge the batch."""
        absent = {
            sink for sink, runner in self.sinks.items() if not runner.hopeless and self._in_time(runner)
        }
        return (absent - set(self._orders)) | self._running

    def _in_time(self, runner: SinkRunner) -> bool:
        """Whether a sink that is catching up has made progress within its deadline, or still has time."""
        waited = time.monotonic() - max(self._began, runner.moved_at)
        return runner.catching_up or waited < runner.sink.effort.deadline_ms / 1000

    @property
    def _running(self) -> set[str]:
        now = time.monotonic()
        running = set()
        for sink, order in self._orders.items():
            attempts = self.sinks[sink].attempts
            stuck = attempts is not None and now > attempts.deadline + GRACE_S
            if not order.done and not stuck:
                running.add(sink)
        return running

    def _await_others(self, until: float | None) -> None:
        """Wait for sinks that are delivering: until a point in time, or until their deadlines."""
        while self._running:
            wait = LOOK_S if until is None else min(LOOK_S, until - time.monotonic())
            if wait <= 0:
                return
            self._wait(wait)

    def _wait(self, seconds: float) -> None:
        """Wait for a change, and record new acknowledgements."""
        self._context.changed.wait(seconds)
        if self._cancelled():
            raise Retryable("the run ends")
        self.acknowledged |= {
            sink for sink, order in self._orders.items() if order.done and order.error is None
        }

    @property
    def _failure(self) -> Exception:
        """The reason why the batch cannot be committed: the error of a required sink, if one has failed."""
        absent = [runner for sink, runner in self.sinks.items() if sink not in self.acknowledged]
        first = min(absent, key=lambda runner: (not runner.sink.required, runner.error is None))
        if first.error is None and first.sink.id in self._orders:  # the sink hangs
            first.error = Overdue(first.sink.effort)
            first.note(first.error, self.batch.number)
        return SinkFailed(first.sink, first.error or Retryable("is behind and has not caught up in time"))
