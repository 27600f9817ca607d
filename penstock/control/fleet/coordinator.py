"""The coordinator: gives flows that should run to workers that can.

Each step is one conditional write, so two coordinators on one registry do not conflict.
"""

from __future__ import annotations

import contextlib
import threading
import time

import structlog

from penstock.control.fleet.assignments import Flows
from penstock.control.questions.rpc import RpcClient
from penstock.settings import Settings

log = structlog.get_logger()

TICK_S = 0.5


class Coordinator:
    """A thread that looks after workers and assignments."""

    def __init__(self, settings: Settings, flows: Flows, rpc: RpcClient) -> None:
        self.flows, self.rpc = flows, rpc
        self.lease_s = settings.worker.lease_ms / 1000
        self._late_s = self.lease_s / 2 + 2 * TICK_S
        """After this many seconds without the registry, workers get the time of another lease to renew."""
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        self._lock, self._due, self._poking = threading.Lock(), False, False
        self._reached_at: float | None = None
        self._trusted_from = 0.0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for its end."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def poke(self, *, workers: bool = False) -> None:
        """Check the registry now, and make the workers check it, after a change. Returns at once."""
        self._wake.set()
        if workers:
            self._poke_workers()

    def _poke_workers(self) -> None:
        """Make all workers check the registry, without waiting for slow answers."""
        with self._lock:
            self._due, begin, self._poking = True, not self._poking, True
        if begin:
            threading.Thread(target=self._poke_while_due, name="poke", daemon=True).start()

    def _poke_while_due(self) -> None:
        while self._is_due():
            with contextlib.suppress(Exception):  # they check by themselves, a little later
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
                self.step()
            except Exception as error:  # the registry may be out of reach for a while
                log.warning("coordination failed", error=str(error))
            self._wake.wait(TICK_S)
            self._wake.clear()

    def step(self) -> None:
        """Remove dead workers, and assign waiting flows to the least loaded live ones."""
        began = time.monotonic()
        if self._reached_at is not None and began - self._reached_at > self._late_s:
            self._trusted_from = began + self.lease_s  # the workers could not reach the registry either
        if began >= self._trusted_from:
            for lost in self.flows.expire(self._late_s):
                log.warning("worker lost", worker=lost)
        self._place()
        self._reached_at = began

    def _place(self) -> None:
        waiting = self.flows.unassigned()
        if not waiting:
            return
        able = [w for w in self.flows.workers() if w.alive and w.state == "ready"]
        load = {worker.id: worker.flows for worker in able}
        given = False
        for uid in waiting if able else ():
            worker_id = min(load, key=lambda id: load[id])
            if self.flows.assign(uid, worker_id):
                load[worker_id] += 1
                given = True
        if given:
            self._poke_workers()
