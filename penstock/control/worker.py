"""A worker: one process with one Spark session that runs the flows it holds leases for."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from penstock import __version__
from penstock.connectors.base import Site
from penstock.connectors.logs import LOGS
from penstock.control.flows import Flows, Mark, Report
from penstock.control.lifecycle import Keeper, State
from penstock.control.registry.records import JsonObject, Record, Versions
from penstock.control.registry.store import Registry
from penstock.control.rpc import RpcServer
from penstock.control.state import checkpoint_of, flow_name, remove_state, retire_others, site_of
from penstock.control.streams import Streams
from penstock.control.turns import Turns
from penstock.control.vitals import Vitals
from penstock.engine.flow import Flow, resolve_flow
from penstock.engine.flow_log import FlowLog, flow_log
from penstock.engine.plan import Plan
from penstock.engine.session import is_alive
from penstock.errors import Fatal, PenstockError
from penstock.settings import Settings
from penstock.specs.documents import what_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = structlog.get_logger()

TICK_S = 1.0
LOOK_S = 0.05

RENEW_S = 2.0
"""How often the lease is renewed, unless it is so short that it has to be more often."""

REST = 3
"""After a tick at least this many times its duration passes: while many flows start, there is always news."""

EDITED_S = 60.0
"""A revision younger than this was made by somebody who waits for it to run."""

RESTART_S = 10.0
"""A run that was asked to end is waited for this much longer than it may take to drain."""


Version = tuple[int, Versions]
"""The revision of a document, and the versions of all that it refers to."""


@dataclass
class Held:
    """A flow this worker runs."""

    record: Record
    version: Version
    content: str
    keeper: Keeper
    told: State | None = None
    checkpoint: str | None = None
    """The one that it runs on, until it has shown that it does."""


class Worker:
    """Takes what it is assigned, runs it, says how it goes, and stops when its lease does."""

    def __init__(self, settings: Settings, registry: Registry, spark: SparkSession) -> None:
        self.id = str(uuid.uuid4())
        self.settings, self.registry, self.flows, self.spark = settings, registry, Flows(registry), spark
        self.streams = Streams(settings, registry)
        self.lease_s = settings.worker.lease_ms / 1000
        self.token = uuid.uuid4().hex
        self._held: dict[str, Held] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self.turns = Turns(settings.worker.starts or max(1, (os.cpu_count() or 1) // 2))
        self._hurried: set[str] = set()
        self._mark: Mark | None = None
        self._left = threading.Event()
        self._lease_ends = 0.0
        self._about = {"version": __version__, "spark": spark.version, "master": spark.sparkContext.master}
        self._vitals = Vitals()

    def run(self) -> None:
        """Work until told to stop, then drain every flow and leave."""
        rpc = RpcServer(self)
        rpc.start()
        self._lease_ends = time.monotonic() + self.lease_s
        self.flows.join(self.id, os.getpid(), rpc.url, self.token, self.lease_s, self._info())
        log.info("worker ready", worker=self.id, url=rpc.url)
        lease = threading.Thread(target=self._keep_lease, name="lease", daemon=True)
        lease.start()
        try:
            while not self._stop.is_set():
                if not is_alive(self.spark):
                    self._leave(lease)  # nothing can run here any more, so nothing does
                    raise Fatal("the JVM of this worker has ended")
                began = time.monotonic()
                self._tick()
                self._stop.wait(min(TICK_S, REST * (time.monotonic() - began)))
                self._wake.wait(TICK_S)
                self._wake.clear()
            self._drain()
            self._leave(lease)
        finally:
            self._left.set()
            rpc.stop()

    def poke(self) -> None:
        """Something has changed: look now rather than at the next tick."""
        self._wake.set()

    def catch_up(self, uid: str, sink: str) -> bool:
        """Let a sink of a flow that is behind try again now; false if the flow does not run here."""
        held = self._held.get(uid)
        return held is not None and held.keeper.catch_up(sink)

    def restart(self, uid: str) -> bool:
        """End the run of a flow after the current batch, and return when another can begin.

        False if the flow does not run here, or did not end in time.
        """
        held = self._held.get(uid)
        if held is None:
            return False
        self._hurried.add(uid)
        self._log(held.record).info("asked to restart")
        held.keeper.drain()
        until = time.monotonic() + self.settings.worker.drain_ms / 1000 + RESTART_S
        while self._held.get(uid) is held and time.monotonic() < until:
            time.sleep(LOOK_S)
        return self._held.get(uid) is not held

    def stop(self) -> None:
        """Ask for an orderly end."""
        self._stop.set()
        self._wake.set()

    def permitted(self) -> None:
        """Raises unless this worker may still write."""
        if time.monotonic() >= self._lease_ends:
            raise Fatal("this worker's lease has ended")

    def site(self, record: Record) -> Site:
        """What a flow may know of the place where it runs."""
        return site_of(self.settings, self.streams, record)

    def _log(self, record: Record) -> FlowLog:
        return flow_log(self.site(record))

    def resolve(self, record: Record) -> Flow:
        """The flow of a document as this worker would run it."""
        defaults = self.settings.defaults.model_dump()
        return resolve_flow(record.document, self._lookup, self.site(record), defaults)

    def _keep_lease(self) -> None:
        """Renew the lease until the worker leaves, in a thread of its own: starts must not delay it."""
        every = min(RENEW_S, self.lease_s / 4)
        while not self._left.wait(every):
            asked_at = time.monotonic()
            try:
                if not self.flows.renew(self.id, self.lease_s, self._info()):
                    log.error("given up as dead by the coordinator", worker=self.id)
                    self._abort_all()
                    self.stop()
                    return
                self._lease_ends = asked_at + self.lease_s
            except Exception as error:
                log.warning("registry out of reach", error=str(error))
                if time.monotonic() >= self._lease_ends:
                    self._abort_all()

    def _tick(self) -> None:
        self.turns.look()
        try:
            self._report()
            mark = self.flows.mark(self.id)  # most of the time nothing has changed
            if mark == self._mark and not any(held.keeper.ended for held in self._held.values()):
                return
            self._mark = mark
            self._reconcile(self.flows.assigned(self.id))
            self._report()
        except Exception as error:
            self._mark = None
            log.warning("registry out of reach", error=str(error))

    def _info(self) -> JsonObject:
        """What others may know of this worker: what it is, what it uses, and what its flows wait for."""
        full = {directory.parent.name: why for directory, why in LOGS.full().items()}  # see StreamHome
        return {**self._about, **self._vitals.read(), "full_streams": full}

    def _reconcile(self, assigned: list[Record]) -> None:
        wanted = {record.uid: record for record in assigned}
        versions = self._versions(assigned)
        for uid, held in list(self._held.items()):
            record = wanted.get(uid)
            if record is None or record.flow is None or record.flow.epoch != self._epoch(held):
                held.keeper.abort()  # deleted, or taken away
                if held.keeper.ended:
                    del self._held[uid]
                    if record is None and self.registry.find_by_uid(uid) is None:
                        remove_state(self.settings, held.record)
                        self.streams.forget_reader(flow_name(held.record))
                        self.streams.remove(held.record)
            elif held.keeper.ended:
                self._ended(held, record)
                del wanted[uid]  # it was read before the end was reported: the next look knows what to do
            elif not _should_run(record):
                held.keeper.drain()
            elif held.version != versions[uid]:
                self._renew(held, record, versions[uid])
        for uid, record in wanted.items():
            if uid not in self._held:
                if _should_run(record):
                    self._take(record, versions[uid])
                else:
                    self.flows.release(self.id, uid, record.flow.epoch if record.flow else 0)

    def _renew(self, held: Held, record: Record, version: Version) -> None:
        """Go on under another revision that runs the same, else come to rest to begin with it."""
        if self._content(record, version) == held.content:
            held.record, held.version, held.told = record, version, None
        else:
            held.keeper.drain()

    def _content(self, record: Record, version: Version) -> str:
        """What runs: the document, and all that it refers to, without their tests."""
        found = [self.registry.find_by_uid(uid) for uid, _ in sorted(version[1])]
        documents = [record.document, *(each.document for each in found if each is not None)]
        return json.dumps([what_runs(document) for document in documents], sort_keys=True)

    def _take(self, record: Record, version: Version) -> None:
        flow = record.flow
        assert flow is not None
        log = self._log(record)
        log.begin()

        def checkpoint(plan: Plan) -> str:
            held.checkpoint = checkpoint_of(self.settings, record, plan)
            return held.checkpoint

        keeper = Keeper(
            record.id,
            lambda: self.resolve(record),
            self.spark,
            checkpoint,
            earlier_ops=flow.ops,
            trial=flow.running_revision not in (None, record.revision),
            turns=self.turns,
            front=self._is_waited_for(record),
            drain_s=self.settings.worker.drain_ms / 1000,
            permitted=self.permitted,
            on_change=lambda _: self.poke(),
            log=log,
        )
        self._held[record.uid] = held = Held(record, version, self._content(record, version), keeper)
        log.info("taken by a worker", worker=self.id, revision=record.revision, epoch=flow.epoch)
        keeper.start()

    def _is_waited_for(self, record: Record) -> bool:
        """Whether a person waits for a flow to start: it was asked to restart, or has just been edited."""
        asked = record.uid in self._hurried
        self._hurried.discard(record.uid)
        age = datetime.now(UTC) - record.updated_at
        return asked or (record.revision > 1 and age.total_seconds() < EDITED_S)

    def _ended(self, held: Held, record: Record) -> None:
        """A flow came to rest by itself or was asked to. Next, it is given back or its new revision begun."""
        self._mark = None
        self._report()  # its last words, which may be younger than the last report
        state, fallback = held.keeper.state, record.flow.running_revision if record.flow else None
        del self._held[record.uid]
        self._log(record).info("ended", outcome=state.outcome, revision=held.record.revision)
        if state.rejected and fallback is not None:
            self._roll_back(held.record, fallback, state)
        self.poke()

    def _roll_back(self, record: Record, fallback: int, state: State) -> None:
        error = state.error or {}
        message = f"revision {record.revision} did not start and revision {fallback} is in force again: "
        problem = {**error, "code": "rolled_back", "message": message + str(error.get("message"))}
        try:
            self.registry.rollback(record.kind, record.id, fallback, expected=record.etag, error=problem)
            self._log(record).warning(problem["message"], code="rolled_back")
        except PenstockError as refused:  # the user was faster with yet another revision
            self._log(record).warning(f"no way back to revision {fallback}: {refused}")

    def _report(self) -> None:
        reports = []
        for held in self._held.values():
            state = held.keeper.state
            if state is held.told:
                continue
            held.told = state
            if state.ready:
                self._retire_others(held)
            reports.append(
                Report(
                    held.record.uid,
                    self._epoch(held),
                    held.record.revision,
                    state.phase,
                    state.outcome,
                    state.error,
                    state.attempts,
                    held.record.revision if state.ready else None,
                    state.ops,
                    state.ticket,
                )
            )
        self.flows.report(self.id, reports)

    def _retire_others(self, held: Held) -> None:
        """A flow has shown that it runs: there is no way back to an earlier checkpoint of its source."""
        checkpoint, held.checkpoint = held.checkpoint, None
        if checkpoint is None:
            return
        try:
            retire_others(self.settings, held.record, checkpoint, self.spark)
        except Exception as error:  # they are found again at its next start
            self._log(held.record).warning(f"an old checkpoint stays: {error}")

    def _versions(self, records: list[Record]) -> dict[str, Version]:
        """For each flow something that changes when its document does, or anything that this refers to."""
        referred = self.registry.versions([record.uid for record in records]) if records else {}
        return {record.uid: (record.revision, referred[record.uid]) for record in records}

    def _lookup(self, kind: str, name: str) -> dict[str, Any] | None:
        record = self.registry.find(kind, name)
        return record.document if record else None

    def _epoch(self, held: Held) -> int:
        return held.record.flow.epoch if held.record.flow else 0

    def _abort_all(self) -> None:
        for held in list(self._held.values()):
            held.keeper.abort()

    def _leave(self, lease: threading.Thread) -> None:
        self._left.set()
        lease.join()  # or it might miss the worker that has just left
        self.flows.leave(self.id)

    def _drain(self) -> None:
        log.info("draining", worker=self.id, flows=len(self._held))
        self.flows.draining(self.id)
        for held in self._held.values():
            held.keeper.drain()
        deadline = time.monotonic() + self.settings.worker.drain_ms / 1000 + 5
        while self._held and time.monotonic() < deadline:
            for uid, held in list(self._held.items()):
                if held.keeper.ended:
                    self._report()
                    self.flows.release(self.id, uid, self._epoch(held))
                    del self._held[uid]
            time.sleep(0.05)


def _should_run(record: Record) -> bool:
    flow = record.flow
    return flow is not None and flow.desired == "active" and flow.outcome is None
