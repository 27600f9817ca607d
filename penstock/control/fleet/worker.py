"""A worker: one process with one Spark session that runs the flows it holds leases for."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from penstock import __version__
from penstock.control.fleet.assignments import Report
from penstock.control.fleet.control import Control, RegistryAway
from penstock.control.fleet.lease import Lease
from penstock.control.fleet.lifecycle import Keeper, State
from penstock.control.fleet.progress import (
    checkpoint_of,
    checkpoints_of,
    copies_of,
    flow_name,
    remove_state,
    retire_others,
    site_of,
)
from penstock.control.fleet.start_turns import Turns
from penstock.control.monitor.process_usage import Vitals
from penstock.control.questions.rpc import RpcServer
from penstock.control.registry.records import JsonObject, Mark, Record, Versions
from penstock.engine.plan.flow import Flow, resolve_flow
from penstock.engine.plan.plan import Plan
from penstock.engine.runtime.flow_log import FlowLog, flow_log
from penstock.errors import Fatal, PenstockError, Suspended, Unauthorised
from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.settings import Settings
from penstock.spark.driver import is_alive
from penstock.specs.documents import what_runs
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from starlette.types import ASGIApp

log = structlog.get_logger()

TICK_S = 1.0
LOOK_S = 0.05

REST = 3
"""Minimum pause after a tick, in multiples of its duration: while flows start, every tick has changes."""

EDITED_S = 60.0
"""Seconds after an edit in which a user is assumed to wait for the new revision to run."""

RESTART_S = 10.0
"""Seconds beyond the drain timeout to wait for the end of a run."""


Version = tuple[int, Versions]
"""The revision of a document, and the versions of all documents that it refers to."""


@dataclass
class Held:
    """A flow that this worker runs."""

    record: Record
    version: Version
    content: str
    keeper: Keeper
    told: State | None = None
    checkpoint: str | None = None
    """The checkpoint of the run, until the run is proven."""


class Worker:
    """Runs its assigned flows, reports their state, and stops them when its lease expires."""

    def __init__(
        self,
        settings: Settings,
        control: Control,
        spark: SparkSession,
        *,
        standby: bool = False,
        questions: bool = False,
        worker_id: str | None = None,
    ) -> None:
        self.id, self._standby, self.questions = worker_id or str(uuid.uuid4()), standby, questions
        self.limited: Callable[[ASGIApp], ASGIApp] = lambda app: app
        """Wraps the app that answers questions with limits."""
        self.ailment: Callable[[], str | None] = lambda: None
        """What impairs this worker, as a phrase that completes a sentence; None if it is healthy."""
        self.settings, self.control, self.spark = settings, control, spark
        self.registry, self.flows, self.streams = control.documents, control.flows, control.streams
        self._refused: Unauthorised | None = None
        self.lease_s = settings.worker.lease_ms / 1000
        self.token = uuid.uuid4().hex
        self._held: dict[str, Held] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self.turns = Turns(settings.worker.starts or max(1, (os.cpu_count() or 1) // 2))
        self._suspects = Turns(1)
        self._hurried: set[str] = set()
        self._mark: Mark | None = None
        self._lease = Lease(
            self.lease_s,
            self._renew_lease,
            every_s=(settings.worker.heartbeat_ms or settings.worker.lease_ms / 5) / 1000,
            on_lapse=self._abort_all,
            on_return=self.poke,
            on_lost=self._given_up,
        )
        context = spark.sparkContext
        self._about = {"version": __version__, "spark": spark.version, "master": context.master}
        if context.uiWebUrl:  # with spark.ui.enabled
            self._about["spark_ui"] = context.uiWebUrl
        self._vitals = Vitals()

    def run(self) -> None:
        """Run flows until asked to stop, then drain every flow and deregister."""
        rpc = RpcServer(self)
        rpc.start()
        asked_at = time.monotonic()
        about = self.settings.worker
        self.flows.join(
            self.id,
            os.getpid(),
            rpc.url,
            self.token,
            self.lease_s,
            self._info(),
            labels=about.labels,
            capacity=about.capacity,
            host=socket.gethostname(),
            home=self.control.home,
            certificate=rpc.certificate,
            standby=self._standby,
            questions=self.questions,
        )
        self._lease.start(asked_at)
        log.info("worker ready", worker=self.id, url=rpc.url)
        try:
            while not self._stop.is_set():
                if not is_alive(self.spark):
                    raise Fatal("the JVM of this worker exited")  # no flow can run in this process any more
                began = time.monotonic()
                self._tick()
                self._stop.wait(min(TICK_S, REST * (time.monotonic() - began)))
                self._wake.wait(TICK_S)
                self._wake.clear()
            if self._refused is not None:
                raise self._refused
            self._drain()
        finally:
            self._leave()
            rpc.stop()

    def _renew_lease(self) -> bool:
        try:
            return self.flows.renew(self.id, self.lease_s, self._info())
        except Unauthorised as refused:
            self._refused = refused
            return False

    def poke(self) -> None:
        """Check the registry now rather than at the next tick."""
        self._wake.set()

    def catch_up(self, uid: str, sink: str) -> bool:
        """Make a sink that is behind retry now; false if the flow does not run here."""
        held = self._held.get(uid)
        return held is not None and held.keeper.catch_up(sink)

    def restart(self, uid: str) -> bool:
        """End the run of a flow after the current batch, and return when a new run can start.

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
        """Request a clean shutdown."""
        self._stop.set()
        self._wake.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the worker is shutting down."""
        return self._stop.is_set()

    def permitted(self) -> None:
        """Raise `Suspended` unless this worker may write: its flows stop, and restart once it has a lease."""
        if not self._lease.valid:
            self._abort_all()
            raise Suspended("the lease of this worker expired and could not be renewed")

    def site(self, record: Record) -> Site:
        """The site of a flow in this worker."""
        # Workers with the home of the server have the local files of its flows, too.
        copies = copies_of(self.settings, record) if self.control.home else None
        return replace(site_of(self.settings, self.streams, record), stream=self._place, copies=copies)

    def _log(self, record: Record) -> FlowLog:
        return flow_log(self.site(record))

    def resolve(self, record: Record) -> Flow:
        """The flow of a document as this worker would run it."""
        defaults = self.settings.defaults.model_dump()
        return resolve_flow(record.document, self._lookup, self.site(record), defaults)

    def _tick(self) -> None:
        self.turns.look()
        self._suspects.look()
        if not self._lease.valid:  # nothing may start without a lease
            return
        try:
            self._report()
            mark = self.flows.mark(self.id)  # usually nothing has changed
            if mark == self._mark and not any(held.keeper.ended for held in self._held.values()):
                return
            self._mark = mark
            self._reconcile(self.flows.assigned(self.id))
            self._report()
        except Exception as error:
            self._mark = None
            log.warning("registry out of reach", error=str(error))

    def _info(self) -> JsonObject:
        """Public info about this worker: versions, resource usage, full streams that its flows wait for."""
        full = {directory.parent.name: why for directory, why in LOGS.full().items()}  # see StreamHome
        ailment = {"ailment": text} if (text := self.ailment()) else {}
        return {**self._about, **self._vitals.read(), "full_streams": full, **ailment}

    def _reconcile(self, assigned: list[Record]) -> None:
        wanted = {record.uid: record for record in assigned}
        versions = self._versions(assigned)
        for uid, held in list(self._held.items()):
            record = wanted.get(uid)
            if record is None or record.flow is None or record.flow.epoch != self._epoch(held):
                held.keeper.abort()  # deleted, or reassigned
                if held.keeper.ended:
                    del self._held[uid]
                    if record is None and self.registry.find_by_uid(uid) is None:
                        self._remove_state(held.record)
                        self.streams.forget_reader(flow_name(held.record))
                        self.streams.remove(held.record)
            elif held.keeper.ended:
                self._ended(held, record)
                del wanted[uid]  # read before the end was reported: the next tick handles it
            elif not _should_run(record):
                held.keeper.drain()
            elif held.version != versions[uid]:
                self._renew(held, record, versions[uid])
        for uid, record in wanted.items():
            if uid not in self._held:
                if _should_run(record):
                    self._take(record, versions[uid])
                else:
                    self._release(record)

    def _remove_state(self, record: Record) -> None:
        try:
            remove_state(self.settings, record, self.spark)
        except Exception as error:  # nothing uses the name again
            self._log(record).warning(f"the checkpoint of a deleted flow could not be removed: {error}")

    def _release(self, record: Record) -> None:
        """Release a flow, as untouched if it has no progress here: it may then start on another machine."""
        untouched = not self.streams.has_input(record)
        if untouched:
            try:
                untouched = checkpoints_of(self.settings, record, self.spark) == []
            except Exception:  # the checkpoint storage is unreachable
                untouched = False
        self.flows.release(self.id, record.uid, record.flow.epoch if record.flow else 0, untouched)

    def _renew(self, held: Held, record: Record, version: Version) -> None:
        """Continue if the new revision runs the same, else stop the flow to restart with the revision."""
        if self._content(record, version) == held.content:
            held.record, held.version, held.told = record, version, None
        else:
            held.keeper.drain()

    def _content(self, record: Record, version: Version) -> str:
        """The documents that define a run: the flow's own and all its references, without their tests."""
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
            failed_attempts=flow.failed_attempts,
            trial=flow.running_revision not in (None, record.revision),
            turns=self.turns,
            suspects=self._suspects,
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
        """Whether a user is waiting for a flow to start: after a restart request or a recent edit."""
        asked = record.uid in self._hurried
        self._hurried.discard(record.uid)
        age = datetime.now(UTC) - record.updated_at
        return asked or (record.revision > 1 and age.total_seconds() < EDITED_S)

    def _ended(self, held: Held, record: Record) -> None:
        """Handle a flow that has stopped: report its final state, and roll back a rejected revision."""
        self._mark = None
        self._report()  # its final state, which may be newer than the last report
        state, fallback = held.keeper.state, record.flow.running_revision if record.flow else None
        if state.rejected and fallback is not None:
            self._roll_back(held, fallback, state)
        del self._held[record.uid]
        self._log(record).info("ended", outcome=state.outcome, revision=held.record.revision)
        self.poke()

    def _roll_back(self, held: Held, fallback: int, state: State) -> None:
        error, record = state.error or {}, held.record
        message = f"revision {record.revision} did not start; rolled back to revision {fallback}: "
        problem = {**error, "code": "rolled_back", "message": message + str(error.get("message"))}
        try:
            self.flows.roll_back(self.id, record.uid, self._epoch(held), record.revision, fallback, problem)
            self._log(record).warning(problem["message"], code="rolled_back")
        except PenstockError as refused:  # the user has saved yet another revision
            self._log(record).warning(f"rollback to revision {fallback} failed: {refused}")

    def _report(self) -> None:
        """Report changes to the registry; a failed report is retried next time."""
        news = [(held, held.keeper.state) for held in self._held.values()]
        news = [(held, state) for held, state in news if state is not held.told]
        self.flows.report(self.id, [self._report_of(held, state) for held, state in news])
        for held, state in news:
            held.told = state
            if state.ready:
                self._retire_others(held)

    def _report_of(self, held: Held, state: State) -> Report:
        return Report(
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
            state.failed_attempts,
        )

    def _retire_others(self, held: Held) -> None:
        """Remove the earlier checkpoints of a flow once it has proven to run with the current one."""
        checkpoint, held.checkpoint = held.checkpoint, None
        if checkpoint is None:
            return
        try:
            if retire_others(self.settings, held.record, checkpoint, self.spark):
                flow = self.resolve(held.record)
                self.streams.forget_reader(flow.site.flow, still=flow.cursors)
        except Exception as error:  # retried at the next start of the flow
            self._log(held.record).warning(f"an old checkpoint or cursor could not be removed: {error}")

    def _versions(self, records: list[Record]) -> dict[str, Version]:
        """For each flow, a value that changes with its document and the documents that it refers to."""
        referred = self.registry.versions([record.uid for record in records]) if records else {}
        return {record.uid: (record.revision, referred[record.uid]) for record in records}

    def _lookup(self, kind: str, name: str) -> dict[str, Any] | None:
        with _asking_the_registry():
            record = self.registry.find(kind, name)
        return record.document if record else None

    def _place(self, stream: str) -> StreamPlace:
        with _asking_the_registry():
            return self.streams.place(stream)

    def _epoch(self, held: Held) -> int:
        return held.record.flow.epoch if held.record.flow else 0

    def _abort_all(self) -> None:
        for held in list(self._held.values()):
            held.keeper.abort()

    def _given_up(self) -> None:
        log.error("given up as dead by the coordinator", worker=self.id)
        self.stop()

    def _leave(self) -> None:
        self._lease.end()
        self.leave()

    def leave(self) -> None:
        """Deregister, and thereby release all flows: nothing may write for this worker any more."""
        try:
            self.flows.leave(self.id)
        except Exception as error:  # the lease expires on its own
            log.warning("registry out of reach", error=str(error))

    def _drain(self) -> None:
        """Let every flow finish its batch, and release it. Failures are retried until the deadline."""
        log.info("draining", worker=self.id, flows=len(self._held))
        deadline = time.monotonic() + self.settings.worker.drain_ms / 1000 + 5
        for held in self._held.values():
            held.keeper.drain()
        announced = False
        while self._held and time.monotonic() < deadline:
            try:
                if not announced:
                    self.flows.draining(self.id)
                    announced = True
                self._give_back()
            except Exception as error:
                log.warning("registry out of reach", error=str(error))
            time.sleep(LOOK_S)
        if self._held:
            log.warning("ends without all flows given back", worker=self.id, flows=len(self._held))

    def _give_back(self) -> None:
        ended = [(uid, held) for uid, held in self._held.items() if held.keeper.ended]
        if ended:
            self._report()
        for uid, held in ended:
            self._release(held.record)
            del self._held[uid]


@contextmanager
def _asking_the_registry() -> Iterator[None]:
    """Raise `Suspended` if the registry is unreachable, since that is not a failure of the flow."""
    try:
        yield
    except RegistryAway as error:
        raise Suspended(str(error)) from error
    except SQLAlchemyError as error:
        why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise Suspended(f"the registry is out of reach: {why}") from error


def _should_run(record: Record) -> bool:
    flow = record.flow
    wanted = flow is not None and flow.desired == "active" and flow.outcome is None
    return wanted and flow is not None and flow.recalled_at is None
