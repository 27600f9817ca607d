"""Reads and writes of the coordinator: a bounded number of statements per round, for any number of flows.

Each write is conditional on the state that the decision was based on, so two coordinators do not conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, exists, func, null, select, update

from penstock.control.fleet.placement import HOME, Labels, Settled, Waiting
from penstock.control.registry.records import JsonObject
from penstock.control.registry.store import Registry
from penstock.control.registry.tables import flows, workers
from penstock.errors import Problem

WANTED = and_(flows.c.desired == "active", flows.c.outcome.is_(None))
HELD = and_(WANTED, flows.c.worker.is_not(None), flows.c.recalled_at.is_(None))


@dataclass(frozen=True)
class Unplaced(Waiting):
    """A flow without a worker, and the stored reason why it waits."""

    reason: JsonObject | None = None


@dataclass(frozen=True)
class Stuck:
    """A flow that its worker has not started in time."""

    uid: str
    epoch: int
    worker: str
    tried: Sequence[str]


class Dispatch:
    """The flows of a registry as the coordinator sees and changes them."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def waiting(self) -> list[Unplaced]:
        """Flows that should run and have no worker, longest-waiting first."""
        columns = (flows.c.uid, flows.c.placement, flows.c.home, flows.c.tried, flows.c.wait_reason)
        found = select(*columns).where(WANTED, flows.c.worker.is_(None)).order_by(flows.c.updated_at)
        with self.registry.engine.connect() as conn:
            return [
                Unplaced(uid, _bound(labels, home), tried or (), why)
                for uid, labels, home, tried, why in conn.execute(found)
            ]

    def assign(self, given: Mapping[str, str]) -> int:
        """Assign flows to workers under a new epoch; returns the number, without flows assigned meanwhile."""
        if not given:
            return 0
        free = and_(
            flows.c.uid == bindparam("flow"),
            flows.c.worker.is_(None),
            WANTED,
            exists().where(workers.c.id == bindparam("to")),
        )
        with self.registry.begin() as conn:
            taken = update(flows).where(free)
            values: dict[str, Any] = {
                "worker": bindparam("to"),
                "epoch": flows.c.epoch + 1,
                "phase": "waiting",
            }
            home = select(workers.c.home).where(workers.c.id == bindparam("to")).scalar_subquery()
            values |= {"home": func.coalesce(flows.c.home, home)}
            values |= {
                "ticket": None,
                "recalled_at": None,
                "wait_reason": None,
                "since": self.registry.now(conn),
            }
            pairs = [{"flow": uid, "to": worker} for uid, worker in sorted(given.items())]
            return conn.execute(taken.values(**values), pairs).rowcount

    def explain(self, reasons: Mapping[str, Problem]) -> None:
        """Store the reasons why flows wait."""
        if not reasons:
            return
        waits = and_(flows.c.uid == bindparam("flow"), flows.c.worker.is_(None))
        stored = [{"flow": uid, "why": why.model_dump()} for uid, why in sorted(reasons.items())]
        with self.registry.begin() as conn:
            conn.execute(update(flows).where(waits).values(wait_reason=bindparam("why")), stored)

    def settled(self, seconds: float) -> list[Settled]:
        """Flows that have run for at least the given number of seconds."""
        with self.registry.engine.connect() as conn:
            since = flows.c.since < self.registry.now(conn) - seconds
            columns = (flows.c.uid, flows.c.worker, flows.c.placement, flows.c.home)
            found = conn.execute(select(*columns).where(HELD, flows.c.phase == "running", since))
            return [Settled(uid, worker, _bound(labels, home)) for uid, worker, labels, home in found]

    def bound(self) -> list[Settled]:
        """Flows with a worker and required labels: they can't run on every worker."""
        found = select(flows.c.uid, flows.c.worker, flows.c.placement).where(
            HELD, flows.c.placement.is_not(null())
        )
        with self.registry.engine.connect() as conn:
            return [Settled(uid, worker, labels) for uid, worker, labels in conn.execute(found) if labels]

    def is_moving(self) -> bool:
        """Whether a worker has yet to release a recalled flow."""
        with self.registry.engine.connect() as conn:
            return bool(conn.scalar(select(exists().where(flows.c.recalled_at.is_not(None)))))

    def recall(self, held: Mapping[str, str]) -> None:
        """Ask workers to release flows after the current batch."""
        mine = and_(flows.c.uid == bindparam("flow"), flows.c.worker == bindparam("of"), HELD)
        asked = [{"flow": uid, "of": worker} for uid, worker in sorted(held.items())]
        if asked:
            with self.registry.begin() as conn:
                conn.execute(update(flows).where(mine).values(recalled_at=self.registry.now(conn)), asked)

    def recall_all(self, ids: Sequence[str]) -> None:
        """Ask workers to release all their flows, and mark workers without flows as drained."""
        held = exists().where(flows.c.worker == workers.c.id)
        empty = and_(workers.c.id.in_(ids), workers.c.state == "draining", ~held)
        with self.registry.begin() as conn:
            theirs = and_(flows.c.worker.in_(ids), HELD)
            self._lock(conn, theirs)
            conn.execute(update(flows).where(theirs).values(recalled_at=self.registry.now(conn)))
            for worker in conn.scalars(
                update(workers).where(empty).values(state="drained").returning(workers.c.id)
            ):
                self.registry.emit(conn, "Worker", worker, "drained")

    def promote(self, ids: Sequence[str]) -> None:
        """Promote standby workers: they can be assigned flows from now on."""
        waits = and_(workers.c.id.in_(ids), workers.c.state == "standby")
        with self.registry.begin() as conn:
            for worker in conn.scalars(
                update(workers).where(waits).values(state="ready").returning(workers.c.id)
            ):
                self.registry.emit(conn, "Worker", worker, "promoted")

    def stuck(self, seconds: float) -> list[Stuck]:
        """Flows assigned for the given number of seconds that have not started, or are still starting.

        Flows in the start queue of their worker have a ticket, and are not included.
        """
        idle = and_(flows.c.phase.in_(("waiting", "starting")), flows.c.ticket.is_(None))
        with self.registry.engine.connect() as conn:
            late = flows.c.since < self.registry.now(conn) - seconds
            found = select(flows.c.uid, flows.c.epoch, flows.c.worker, flows.c.tried).where(HELD, idle, late)
            return [
                Stuck(uid, epoch, worker, tried or ()) for uid, epoch, worker, tried in conn.execute(found)
            ]

    def recall_stuck(self, found: Iterable[Stuck]) -> None:
        """Ask workers to release flows that they have not started."""
        mine = and_(flows.c.uid == bindparam("flow"), flows.c.epoch == bindparam("at"), HELD)
        asked = [
            {"flow": each.uid, "at": each.epoch, "had": [*each.tried, each.worker]}
            for each in sorted(found, key=lambda each: each.uid)
        ]
        if asked:
            with self.registry.begin() as conn:
                values = {"recalled_at": self.registry.now(conn), "tried": bindparam("had")}
                values |= {"failed_attempts": flows.c.failed_attempts + 1}
                conn.execute(update(flows).where(mine).values(**values), asked)

    def take_back(self, seconds: float) -> list[str]:
        """Revoke flows that workers have not released in time after a recall; the next epoch fences them."""
        with self.registry.engine.connect() as conn:
            late = self._kept(self.registry.now(conn) - seconds)
            if not conn.scalar(select(exists().where(late))):  # the usual case, so no lock is taken
                return []
        with self.registry.begin() as conn:
            values = {"worker": None, "recalled_at": None}
            late = self._kept(self.registry.now(conn) - seconds)
            self._lock(conn, late)
            return list(conn.scalars(update(flows).where(late).values(**values).returning(flows.c.uid)))

    def _lock(self, conn: Connection, which: ColumnElement[bool]) -> None:
        """Lock flows in the same order as the reports of workers; see `Flows`."""
        conn.execute(select(flows.c.uid).where(which).order_by(flows.c.uid).with_for_update())

    def _kept(self, before: float) -> ColumnElement[bool]:
        return and_(flows.c.worker.is_not(None), flows.c.recalled_at < before)


def _bound(labels: Labels | None, home: str | None) -> Labels:
    """The labels that the worker of a flow must have, including the home of its progress."""
    return {**(labels or {}), **({} if home is None else {HOME: home})}
