"""The coordinator: assigns flows that should run to available workers.

With several servers, only the coordinator of the leader runs. Writes are conditional nevertheless: a leader
may be slow to notice that it no longer leads.
"""

from __future__ import annotations

import contextlib
import threading
import time

import structlog

from penstock.control.fleet.assignments import Flows, WorkerInfo
from penstock.control.fleet.dispatch import Dispatch
from penstock.control.fleet.leadership import Leadership
from penstock.control.fleet.placement import Loads, Waiting, fits
from penstock.control.questions.rpc import RpcClient
from penstock.errors import Problem
from penstock.settings import Settings

log = structlog.get_logger()

TICK_S = 0.5

REBALANCE_S, MOVES = 5.0, 3
"""Interval of rebalancing in seconds, and the maximum moves: each move stops a flow for a few seconds."""

SETTLED_S = 15.0
"""Seconds that a flow must have run before it can be moved."""

ALONE_S = 60.0
"""Seconds without other workers after which a standby worker is promoted: it may just have started first."""

START_TRIES = 3
"""Number of start timeouts after which a flow has failed."""

GIVE_BACK_S = 10.0
"""Seconds beyond the drain timeout within which a worker has to release a recalled flow."""


class Coordinator:
    """A thread that manages workers and assignments."""

    def __init__(self, settings: Settings, flows: Flows, rpc: RpcClient) -> None:
        self.flows, self.rpc = flows, rpc
        self.dispatch = Dispatch(flows.registry)
        self.leadership = Leadership(flows.registry, settings.worker.lease_ms / 1000)
        self.lease_s = settings.worker.lease_ms / 1000
        self._start_s = settings.worker.start_ms / 1000
        self._give_back_s = settings.worker.drain_ms / 1000 + GIVE_BACK_S
        self._rebalance_at = 0.0
        self._alone_since = time.monotonic()
        """When a worker last accepted flows, or this coordinator started."""
        self._taking: set[str] = set()
        """The workers that accepted flows in the last round."""
        self._late_s = self.lease_s / 2 + 2 * TICK_S
        """Seconds without the registry after which workers get the time of another lease to renew."""
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        self._lock, self._due, self._poking = threading.Lock(), False, False
        self._reached_at: float | None = None
        self._trusted_from = 0.0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        with contextlib.suppress(Exception):  # otherwise the lease expires on its own
            self.leadership.resign()

    def poke(self, *, workers: bool = False) -> None:
        """Check the registry now after a change; with `workers`, make them check it too. Doesn't wait."""
        self._wake.set()
        if workers:
            self._poke_workers()

    def _poke_workers(self) -> None:
        """Make all workers check the registry, without waiting for slow responses."""
        with self._lock:
            self._due, begin, self._poking = True, not self._poking, True
        if begin:
            threading.Thread(target=self._poke_while_due, name="poke", daemon=True).start()

    def _poke_while_due(self) -> None:
        while self._is_due():
            with contextlib.suppress(Exception):  # workers also check on their own, a little later
                for worker in self.flows.workers():
                    if worker.alive:
                        self.rpc.poke(worker)

    def _is_due(self) -> bool:
        with self._lock:
            due, self._due = self._due, False
            self._poking = due
            return due

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                # A single server need not wait for the lease of a killed server to expire.
                if not self.flows.registry.shared or self.leadership.look(time.monotonic()):
                    self.step()
            except Exception as error:  # the registry may be temporarily unreachable
                log.warning("coordination failed", error=str(error))
            self._wake.wait(TICK_S)
            self._wake.clear()

    def step(self) -> None:
        """One round: remove dead workers, place waiting flows, recall misplaced flows."""
        began = time.monotonic()
        if self._reached_at is not None and began - self._reached_at > self._late_s:
            self._trusted_from = began + self.lease_s  # the workers could not reach the registry either
        if began >= self._trusted_from:
            for lost in self.flows.expire(self._late_s):
                log.warning("worker lost", worker=lost)
        workers = self._with_standby(self.flows.workers())
        recalled = self._recall(workers)
        if self._place(workers) or recalled:
            self._poke_workers()
        self._reached_at = began

    def _with_standby(self, workers: list[WorkerInfo]) -> list[WorkerInfo]:
        """The workers, after promoting a standby worker for each worker that is gone."""
        present = {worker.id for worker in workers if worker.alive}
        gone = len(self._taking - present)
        ready = {worker.id for worker in workers if worker.takes_flows}
        waiting = [worker.id for worker in workers if worker.alive and worker.state == "standby"]
        if ready:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > ALONE_S:
            gone = max(1, gone)
        promoted = waiting[:gone]
        if promoted:
            log.info("workers on standby take over", workers=promoted)
            self.dispatch.promote(promoted)
            workers = self.flows.workers()
        self._taking = {worker.id for worker in workers if worker.takes_flows}
        return workers

    def _recall(self, workers: list[WorkerInfo]) -> bool:
        """Recall flows from workers that have not started them, lack their labels, or are draining."""
        stuck = self.dispatch.stuck(self._start_s)
        for each in stuck:
            log.warning("a flow has not started in time", flow=each.uid, worker=each.worker)
        self.dispatch.recall_stuck(stuck)
        for uid in self.dispatch.take_back(self._give_back_s):
            log.warning("a worker did not release a flow in time; it is reassigned", flow=uid)
        draining = [worker.id for worker in workers if worker.state == "draining"]
        if draining:
            self.dispatch.recall_all(draining)
        labels = {worker.id: worker.labels for worker in workers}
        misplaced = {
            flow.uid: flow.worker
            for flow in self.dispatch.bound()
            if flow.worker in labels and not fits(labels[flow.worker], flow.labels)
        }
        self.dispatch.recall(misplaced)
        return bool(stuck or draining or misplaced)

    def _place(self, workers: list[WorkerInfo]) -> bool:
        """Assign waiting flows to workers, or else rebalance the load; true if an assignment has changed."""
        loads = Loads(workers)
        waiting = self.dispatch.waiting()
        hopeless = [flow for flow in waiting if len(flow.tried) >= START_TRIES]
        for flow in hopeless:
            self.flows.fail(flow.uid, self._not_started(flow))
        plan = loads.place(flow for flow in waiting if len(flow.tried) < START_TRIES)
        known = {flow.uid: flow.reason for flow in waiting}
        self.dispatch.explain(
            {uid: why for uid, why in plan.refused.items() if known[uid] != why.model_dump()}
        )
        if plan.given:
            return self.dispatch.assign(plan.given) > 0
        return self._rebalance(loads)

    def _rebalance(self, loads: Loads) -> bool:
        now = time.monotonic()
        if now < self._rebalance_at or not loads.is_uneven():
            return False
        self._rebalance_at = now + REBALANCE_S
        if self.dispatch.is_moving():  # loads are known only once these flows have a worker again
            return False
        settled = self.dispatch.settled(SETTLED_S)
        workers = {flow.uid: flow.worker for flow in settled}
        moved = {uid: workers[uid] for uid in loads.moves(settled, MOVES)}
        for uid, worker in moved.items():
            log.info("a flow moves to a worker with less load", flow=uid, worker=worker)
        self.dispatch.recall(moved)
        return bool(moved)

    def _not_started(self, flow: Waiting) -> Problem:
        within = f"{self._start_s:g} s"
        which = ", ".join(dict.fromkeys(worker[:8] for worker in flow.tried))
        return Problem(
            code="start_timeout",
            message=f"the flow did not start within {within}, {START_TRIES} times, on worker {which}",
            hint="check its log and the logs of the workers; raise worker.start_ms to allow more time",
        )
