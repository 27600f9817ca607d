"""The coordinator: gives flows that should run to workers that can.

Each step is one conditional write, so two coordinators on one registry do no harm to each other.
"""

from __future__ import annotations

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

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def poke(self) -> None:
        """Something has changed: look now."""
        self._wake.set()

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
        given = set()
        for uid in waiting if able else ():
            worker_id = min(load, key=lambda id: load[id])
            if self.flows.assign(uid, worker_id, self.lease_s):
                load[worker_id] += 1
                given.add(worker_id)
        for worker in able:
            if worker.id in given:
                self.rpc.poke(worker)
