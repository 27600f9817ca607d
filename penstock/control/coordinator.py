"""The coordinator: gives flows that should run to workers that can.

Each step is one conditional write, so two coordinators on one registry do no harm to each other.
"""

from __future__ import annotations

import contextlib
import threading

import structlog

from penstock.control.flows import Flows
from penstock.control.rpc import RpcClient
from penstock.settings import Settings

log = structlog.get_logger()

TICK_S = 0.5


class Coordinator:
    """A thread that looks after workers and assignments."""

    def __init__(self, settings: Settings, flows: Flows, rpc: RpcClient) -> None:
        self.flows, self.rpc = flows, rpc
        self.lease_s = settings.worker.lease_ms / 1000
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        self._lock, self._due, self._poking = threading.Lock(), False, False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def poke(self, *, workers: bool = False) -> None:
        """Something has changed: look now, and let the workers look. Returns at once."""
        self._wake.set()
        if workers:
            self._poke_workers()

    def _poke_workers(self) -> None:
        """Let all workers look, without waiting for those that are busy and answer late."""
        with self._lock:
            self._due, begin, self._poking = True, not self._poking, True
        if begin:
            threading.Thread(target=self._poke_while_due, name="poke", daemon=True).start()

    def _poke_while_due(self) -> None:
        while self._is_due():
            with contextlib.suppress(Exception):  # they look anyway, a little later
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
        """Give up dead workers, place waiting flows on the least loaded live ones."""
        for lost in self.flows.expire():
            log.warning("worker lost", worker=lost)
        waiting = self.flows.unassigned()
        if not waiting:
            return
        able = [w for w in self.flows.workers() if w.alive and w.state == "ready"]
        load = {worker.id: worker.flows for worker in able}
        given = False
        for uid in waiting if able else ():
            worker_id = min(load, key=lambda id: load[id])
            if self.flows.assign(uid, worker_id, self.lease_s):
                load[worker_id] += 1
                given = True
        if given:
            self._poke_workers()
