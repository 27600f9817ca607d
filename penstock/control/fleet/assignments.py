"""Assignments of flows to workers: leases with epochs, and the reports of workers.

A worker may run a flow while the worker's lease is valid and the flow's epoch is the newest. Every write of a
worker names worker and epoch, so writes of a replaced worker are fenced (invariant 6). Times are by the
registry's clock.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, insert, or_, select, update

from penstock.control.registry import queries
from penstock.control.registry.records import JsonObject, Mark, Record, judged
from penstock.control.registry.store import Registry
from penstock.control.registry.tables import documents, flow_phase, flow_status, flows, workers
from penstock.errors import Problem

SHOWN = (
    *("id", "host", "pid", "url", "token", "started_at", "state", "info", "labels", "capacity", "home"),
    "certificate",
)


@dataclass(frozen=True)
class WorkerInfo:
    """A worker as other processes see it."""

    id: str
    host: str
    pid: int
    url: str
    token: str
    started_at: datetime
    state: str
    alive: bool
    flows: int
    info: JsonObject
    labels: dict[str, str] = field(default_factory=dict)
    capacity: int | None = None
    """Maximum number of flows; None: no limit."""
    home: str = ""
    """The id of the home in which the worker stores progress; empty: the server's."""
    certificate: str | None = None
    """The certificate that encrypts questions to the worker, as PEM; None: not encrypted, on loopback."""

    @property
    def takes_flows(self) -> bool:
        """Whether flows can be assigned to the worker."""
        return self.alive and self.state == "ready"

    @property
    def answers_only(self) -> bool:
        """Whether the worker only answers questions and is never assigned flows."""
        return self.state == "questions"


@dataclass(frozen=True)
class Report:
    """A worker's report on a flow, as of `revision`."""

    uid: str
    epoch: int
    revision: int
    phase: str
    outcome: str | None = None
    error: JsonObject | None = None
    attempts: list[JsonObject] = field(default_factory=list)
    running_revision: int | None = None
    ops: JsonObject = field(default_factory=dict)
    ticket: int | None = None
    failed_attempts: int = 0
    """Failed attempts since the last successful batch."""


class Flows:
    """The runtime state in the registry: workers, leases and flows."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    # Workers

    def join(
        self,
        worker: str,
        pid: int,
        url: str,
        token: str,
        lease_s: float,
        info: JsonObject,
        labels: Mapping[str, str] | None = None,
        capacity: int | None = None,
        host: str | None = None,
        home: str = "",
        certificate: str | None = None,
        standby: bool = False,
        questions: bool = False,
    ) -> None:
        """Register a worker; with `standby` it is assigned flows only after another worker is gone.

        With `questions` it is never assigned flows: it only answers questions.
        """
        with self.registry.begin() as conn:
            conn.execute(
                insert(workers).values(
                    id=worker,
                    host=host or socket.gethostname(),
                    pid=pid,
                    url=url,
                    token=token,
                    started_at=datetime.now(UTC),
                    heartbeat_until=self.registry.now(conn) + lease_s,
                    state="questions" if questions else "standby" if standby else "ready",
                    info=info,
                    labels=dict(labels or {}),
                    capacity=capacity,
                    home=home,
                    certificate=certificate,
                )
            )
            self.registry.emit(conn, "Worker", worker, "joined", {"pid": pid})

    def renew(self, worker: str, lease_s: float, info: JsonObject | None = None) -> bool:
        """Renew the lease of a worker and thereby of all its flows; false if the worker was removed as dead.

        `info` replaces the stored info. Writes one row, regardless of the number of flows.
        """
        with self.registry.begin() as conn:
            until = self.registry.now(conn) + lease_s
            values = {"heartbeat_until": until} | ({} if info is None else {"info": info})
            return bool(conn.execute(update(workers).where(workers.c.id == worker).values(**values)).rowcount)

    def draining(self, worker: str) -> None:
        """Mark a worker as draining: it accepts no more flows, and is asked to release its flows."""
        with self.registry.begin() as conn:
            taking = and_(workers.c.id == worker, workers.c.state.in_(("ready", "standby")))
            conn.execute(update(workers).where(taking).values(state="draining"))

    def leave(self, worker: str) -> None:
        """Remove a worker and its leases. Only for a worker whose process has certainly ended."""
        with self.registry.begin() as conn:
            self._lock(conn, flows.c.worker == worker)
            self._forget(conn, [worker])

    def workers(self) -> list[WorkerInfo]:
        """Every registered worker."""
        with self.registry.engine.connect() as conn:
            now = self.registry.now(conn)
            held = {
                row.worker: row.held
                for row in conn.execute(
                    select(flows.c.worker, func.count().label("held")).group_by(flows.c.worker)
                )
            }
            rows = conn.execute(select(workers).order_by(workers.c.started_at)).mappings().all()
        return [
            WorkerInfo(
                alive=row["heartbeat_until"] >= now,
                flows=held.get(row["id"], 0),
                **{name: row[name] for name in SHOWN},
            )
            for row in rows
        ]

    # Coordinator

    def expire(self, patience_s: float = math.inf) -> list[str]:
        """Remove workers whose lease has expired; their flows wait for another worker.

        No worker is removed if the registry took longer than `patience_s` to accept the write: then workers
        may have been delayed too, and are about to renew.
        """
        with self.registry.engine.connect() as conn:
            if not self._expired(conn):  # the usual case, so no lock is taken
                return []
        asked_at = time.monotonic()
        with self.registry.begin() as conn:
            self._lock(conn, flows.c.worker.in_(self._expired(conn)))
            if time.monotonic() - asked_at > patience_s:
                return []
            dead = self._expired(conn, lock=True)  # some may have renewed since
            self._forget(conn, dead)
            return dead

    # Worker

    def assigned(self, worker: str) -> list[Record]:
        """The flows that a worker holds, longest-waiting first."""
        with self.registry.engine.connect() as conn:
            held = queries.select_records().where(flows.c.worker == worker)
            rows = conn.execute(held.order_by(flows.c.updated_at, flows.c.uid))
            return [queries.to_record(row) for row in rows]

    def mark(self, worker: str) -> Mark:
        """A value that changes with any document, and with the desired status of a worker's flows."""
        held = select(flows.c.uid, flows.c.epoch, flows.c.desired, flows.c.outcome, flows.c.recalled_at)
        with self.registry.engine.connect() as conn:
            own = conn.execute(held.where(flows.c.worker == worker).order_by(flows.c.uid))
            return queries.mark(conn), *(tuple(row) for row in own)

    def report(self, worker: str, reports: Sequence[Report]) -> None:
        """Store a worker's reports on the flows it still holds.

        A change of status emits an event. A report on a revision that is no longer current updates only the
        counters.
        """
        if not reports:
            return
        with self.registry.begin() as conn:
            self._lock(conn, flows.c.uid.in_([report.uid for report in reports]))
            for report in reports:
                self._take(conn, worker, report)

    def release(self, worker: str, uid: str, epoch: int, untouched: bool = False) -> None:
        """Release a flow that has stopped, or is to run on another worker.

        `untouched` if the flow has left no progress in the worker's home: it may then start in another home.
        """
        with self.registry.begin() as conn:
            held = self._held(worker, uid, epoch)
            if (before := self._look(conn, held)) is not None:
                values: dict[str, Any] = {
                    "worker": None,
                    "recalled_at": None,
                    "updated_at": datetime.now(UTC),
                }
                values |= {"home": None} if untouched else {}
                conn.execute(update(flows).where(held).values(**values))
                self._announce(conn, uid, before)

    def roll_back(
        self, worker: str, uid: str, epoch: int, revision: int, fallback: int, error: JsonObject
    ) -> None:
        """Make an earlier revision of a flow the newest one, since `revision` did not start."""
        record = self.registry.find_by_uid(uid)
        if record is not None:
            self.registry.rollback(
                record.kind, record.id, fallback, expected=str(revision), error=error, holder=(worker, epoch)
            )

    # Service

    def aim(self, record: Record, desired: str) -> None:
        """Change the desired status of a flow; `active` restarts a flow that has ended."""
        with self.registry.begin() as conn:
            before = self._look(conn, flows.c.uid == record.uid)
            if before is None:  # the document was deleted, or no longer has a flow
                return
            values: dict[str, Any] = {"desired": desired, "updated_at": datetime.now(UTC)}
            if desired == "active":
                values |= {"outcome": None, "error": None, "attempts": [], "running_revision": None}
                values |= {"tried": None, "wait_reason": None, "failed_attempts": 0, "stalled_since": None}
            conn.execute(update(flows).where(flows.c.uid == record.uid).values(**values))
            self._announce(conn, record.uid, before)

    def fail(self, uid: str, problem: Problem) -> None:
        """Mark a flow that no worker has started as failed."""
        waits = and_(flows.c.uid == uid, flows.c.worker.is_(None), flows.c.desired == "active")
        error = {**problem.model_dump(), "at": time.time()}
        values = {"outcome": "failed", "error": error, "tried": None, "updated_at": datetime.now(UTC)}
        with self.registry.begin() as conn:
            if (before := self._look(conn, waits)) is not None:
                conn.execute(update(flows).where(flows.c.uid == uid).values(**values))
                self._announce(conn, uid, before)

    def stall(self, changes: Mapping[str, float | None]) -> None:
        """Store since when flows have made no progress, by uid; None if a flow makes progress again."""
        for uid, since in changes.items():
            with self.registry.begin() as conn:
                if (before := self._look(conn, flows.c.uid == uid)) is not None:
                    conn.execute(update(flows).where(flows.c.uid == uid).values(stalled_since=since))
                    self._announce(conn, uid, before)

    def starting(self, besides: str) -> bool:
        """Whether any other flow is starting or waiting for its turn to start."""
        others = and_(
            flows.c.worker.is_not(None), flows.c.phase.in_(("waiting", "starting")), flows.c.uid != besides
        )
        with self.registry.engine.connect() as conn:
            return bool(conn.scalar(select(exists().where(others))))

    def settling(self) -> bool:
        """Whether any flow that should run is starting, or waiting for a worker or its turn."""
        waits = and_(flows.c.worker.is_(None), flows.c.wait_reason.is_(None))
        starts = and_(flows.c.worker.is_not(None), flows.c.phase.in_(("waiting", "starting")))
        wanted = and_(flows.c.desired == "active", flows.c.outcome.is_(None))
        with self.registry.engine.connect() as conn:
            return bool(conn.scalar(select(exists().where(wanted, or_(waits, starts)))))

    def found_invalid(self, uid: str, problems: Sequence[Problem]) -> None:
        """Store the problems of an invalid document that was saved."""
        first = problems[0].model_dump()
        error = {**first, "at": time.time(), "problems": [p.model_dump() for p in problems]}
        with self.registry.begin() as conn:
            conn.execute(update(flows).where(flows.c.uid == uid).values(error=error))

    def forget_running(self, uid: str) -> None:
        """Clear the running revision, so that no failure rolls back to it."""
        with self.registry.begin() as conn:
            conn.execute(update(flows).where(flows.c.uid == uid).values(running_revision=None))

    # Parts of transactions

    def _lock(self, conn: Connection, which: ColumnElement[bool]) -> None:
        """Lock flows in a fixed order: transactions that change many flows must not deadlock."""
        conn.execute(select(flows.c.uid).where(which).order_by(flows.c.uid).with_for_update())

    def _expired(self, conn: Connection, *, lock: bool = False) -> list[str]:
        """Workers whose lease has expired; with `lock` none can renew before the transaction ends."""
        found = select(workers.c.id).where(workers.c.heartbeat_until < self.registry.now(conn))
        return list(conn.scalars(found.with_for_update() if lock else found))

    def _forget(self, conn: Connection, ids: Iterable[str]) -> None:
        for worker in ids:
            conn.execute(update(flows).where(flows.c.worker == worker).values(worker=None, recalled_at=None))
            if conn.execute(delete(workers).where(workers.c.id == worker)).rowcount:
                self.registry.emit(conn, "Worker", worker, "left")

    def _held(self, worker: str, uid: str, epoch: int) -> Any:
        return and_(flows.c.uid == uid, flows.c.worker == worker, flows.c.epoch == epoch)

    def _take(self, conn: Connection, worker: str, report: Report) -> None:
        held = self._held(worker, report.uid, report.epoch)
        before = self._look(conn, held)
        if before is None:
            return
        values: dict[str, Any] = {"ops": report.ops, "updated_at": datetime.now(UTC)}
        if before.revision == report.revision:
            values |= {"phase": report.phase, "ticket": report.ticket}
            values |= {"outcome": report.outcome, "attempts": report.attempts}
            values |= {"failed_attempts": report.failed_attempts}
            values |= {"error": report.error} if report.error else {}
            if report.phase != before.phase:
                values["since"] = self.registry.now(conn)
            if report.phase == "running":
                values["tried"] = None
            if report.running_revision is not None:
                values["running_revision"] = report.running_revision
        conn.execute(update(flows).where(held).values(**values))
        self._announce(conn, report.uid, before)

    def _look(self, conn: Connection, where: Any) -> Any:
        """The visible state of a flow, locked until the transaction ends."""
        return conn.execute(
            select(
                flows.c.id,
                flows.c.error,
                flows.c.ops,
                flow_status().label("status"),
                flow_phase().label("phase"),
                documents.c.kind,
                documents.c.name,
                documents.c.revision,
            )
            .join(documents, documents.c.uid == flows.c.uid)
            .where(where)
            .with_for_update(of=flows)
        ).first()

    def _announce(self, conn: Connection, uid: str, before: Any) -> None:
        """Emit an event if the status or the phase has changed."""
        now = self._look(conn, flows.c.uid == uid)
        if (now.status, now.phase) != (before.status, before.phase):
            data = {
                "id": now.id,
                "status": now.status,
                "previous": before.status,
                "phase": now.phase,
                "revision": now.revision,
                "error": judged(now.error, now.ops),
            }
            self.registry.emit(conn, now.kind, now.name, "status", data)
