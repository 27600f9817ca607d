"""Leases, epochs and reports on both databases, and a model of them under random use."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from penstock.control.fleet.assignments import Flows, Report
from penstock.control.registry import Registry
from tests.flows import assign, pipeline, unassigned

LEASE_S = 60.0


@pytest.fixture(params=["sqlite", "postgresql"])
def flows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Flows]:
    url = (
        f"sqlite:///{tmp_path / 'registry.db'}"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_database")
    )
    registry = Registry.open(url)
    yield Flows(registry)
    registry.close()


def join(flows: Flows, name: str, lease_s: float = LEASE_S) -> None:
    flows.join(name, 1, "http://127.0.0.1:1", "token", lease_s, {})


def report(flows: Flows, worker: str, uid: str, **fields: Any) -> None:
    flows.report(worker, [Report(uid, **{"epoch": 1, "revision": 1, "phase": "running", **fields})])


def statuses(flows: Flows) -> list[tuple[str, str]]:
    events = flows.registry.events_after(0)
    return [(e.data["status"], e.data["phase"]) for e in events if e.type == "status"]


def test_a_flow_is_given_to_one_worker(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"))
    join(flows, "a")
    join(flows, "b")
    assert unassigned(flows) == [record.uid]
    assert assign(flows, record.uid, "a")
    assert not assign(flows, record.uid, "b")
    assert unassigned(flows) == []
    (held,) = flows.assigned("a")
    assert held.flow is not None
    assert (held.flow.epoch, held.flow.worker) == (1, "a")
    assert [(w.id, w.flows, w.alive) for w in flows.workers()] == [("a", 1, True), ("b", 0, True)]


def test_what_is_paused_is_not_given_out(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"), desired="paused")
    join(flows, "a")
    assert unassigned(flows) == []
    assert not assign(flows, record.uid, "a")


def test_a_fenced_worker_changes_nothing(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"))
    join(flows, "old", lease_s=-1)
    assign(flows, record.uid, "old")
    assert flows.expire() == ["old"]
    join(flows, "new")
    assign(flows, record.uid, "new")
    report(flows, "old", record.uid, outcome="failed", phase="idle", ops={"batches": 9})
    flows.release("old", record.uid, 1)
    assert not flows.renew("old", LEASE_S)
    now = flows.registry.get("Pipeline", "orders").flow
    assert now is not None
    assert (now.worker, now.epoch, now.status, now.ops) == ("new", 2, "active", {})


def test_a_report_of_an_older_revision_does_not_end_the_new_one(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"))
    join(flows, "a")
    assign(flows, record.uid, "a")
    flows.registry.update("Pipeline", "orders", pipeline("orders", batch={"max_ms": 1}))
    report(flows, "a", record.uid, outcome="failed", phase="idle", error={"code": "x"}, ops={"batches": 3})
    now = flows.registry.get("Pipeline", "orders").flow
    assert now is not None
    assert (now.status, now.error, now.ops) == ("active", None, {"batches": 3})


def test_who_sees_that_a_revision_was_rolled_back_sees_why(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"))
    join(flows, "a")
    assign(flows, record.uid, "a")
    report(flows, "a", record.uid, running_revision=1)
    flows.registry.update("Pipeline", "orders", pipeline("orders", batch={"max_ms": 1}))
    error = {"code": "rolled_back", "message": "it did not start"}
    now = flows.registry.rollback("Pipeline", "orders", 1, expected="2", error=error)
    assert now.flow is not None
    assert (now.revision, now.flow.error, now.flow.running_revision) == (3, error, None)
    assert flows.registry.get("Pipeline", "orders").flow == now.flow


def test_a_flow_that_waits_has_a_place_in_the_queue_of_its_worker(flows: Flows) -> None:
    records = [flows.registry.create(pipeline(f"p{i}")) for i in range(5)]
    for worker in "ab":
        join(flows, worker)
    for record in records:
        assert assign(flows, record.uid, "b" if record is records[4] else "a")

    def places() -> list[int | None]:
        found = [flows.registry.get("Pipeline", record.id).flow for record in records]
        assert [flow.queue_position for flow in found if flow] == [
            running.flow.queue_position for running in flows.registry.running()
        ]
        return [flow.queue_position for flow in found if flow]

    assert places() == [None] * 5, "assigned, and not taken yet"
    assert flows.registry.get("Pipeline", "p0").flow.phase == "waiting"  # type: ignore[union-attr]
    for record, ticket in zip(records, (7, 9, -3, 8, 100), strict=True):
        worker = "b" if record is records[4] else "a"
        report(flows, worker, record.uid, phase="waiting", ticket=ticket)
    assert places() == [2, 4, 1, 3, 1]
    report(flows, "a", records[2].uid, phase="starting")
    assert places() == [1, 3, None, 2, 1]
    report(flows, "a", records[0].uid)
    assert places() == [None, 2, None, 1, 1]
    flows.leave("a")
    assert places() == [None, None, None, None, 1], "flows without a worker are in no queue"


def test_others_that_start_or_wait_to_start_are_seen(flows: Flows) -> None:
    one, other = (flows.registry.create(pipeline(name)) for name in ("one", "other"))
    assert not flows.starting(one.uid), "without a worker nothing starts"
    join(flows, "a")
    assert assign(flows, other.uid, "a")
    assert (flows.starting(one.uid), flows.starting(other.uid)) == (True, False)
    report(flows, "a", other.uid, phase="starting")
    assert flows.starting(one.uid)
    report(flows, "a", other.uid)
    assert not flows.starting(one.uid)


def test_a_mark_changes_with_documents_and_with_what_flows_should_do(flows: Flows) -> None:
    registry = flows.registry
    join(flows, "a")
    marks = [flows.mark("a")]

    def changed() -> bool:
        marks.append(flows.mark("a"))
        return marks[-1] != marks[-2]

    record = registry.create(pipeline("orders"))
    assert changed()
    assign(flows, record.uid, "a")
    assert changed()
    report(flows, "a", record.uid, ops={"batches": 1})
    assert not changed(), "what a worker has said itself is no news to it"
    flows.aim(record, "paused")
    assert changed()
    flows.aim(record, "active")
    assert changed()
    registry.create({"kind": "Stream", "metadata": {"name": "s"}, "spec": {}})
    assert changed()
    registry.update(
        "Stream", "s", {"kind": "Stream", "metadata": {"name": "s"}, "spec": {"storage": "sqlite"}}
    )
    assert changed()
    registry.delete("Stream", "s")
    assert changed()
    flows.release("a", record.uid, 1)
    assert changed()
    assert not changed()


def test_a_change_of_status_or_phase_is_an_event(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"))
    join(flows, "a")
    assign(flows, record.uid, "a")
    report(flows, "a", record.uid)
    report(flows, "a", record.uid, ops={"batches": 1})
    report(flows, "a", record.uid, phase="idle", outcome="completed")
    flows.aim(flows.registry.get("Pipeline", "orders"), "stopped")
    assert statuses(flows) == [("active", "running"), ("completed", "idle"), ("stopped", "idle")]


def test_an_event_names_the_kind_that_runs(flows: Flows) -> None:
    flows.registry.create({"kind": "Stream", "metadata": {"name": "raw"}})
    sink = {"kind": "Sink", "metadata": {"name": "Lake"}, "spec": {"type": "drop", "stream": "raw"}}
    record = flows.registry.create(sink)
    flows.aim(record, "stopped")
    last = flows.registry.events_after(0)[-1]
    assert (last.kind, last.name, last.data["status"]) == ("Sink", "Lake", "stopped")


def test_what_no_longer_runs_is_left_alone(flows: Flows) -> None:
    flows.registry.create({"kind": "Stream", "metadata": {"name": "raw"}})
    sink = {"kind": "Sink", "metadata": {"name": "lake"}, "spec": {"type": "drop", "stream": "raw"}}
    record = flows.registry.create(sink)
    join(flows, "a")
    assign(flows, record.uid, "a")
    flows.registry.update("Sink", "lake", {**sink, "spec": {"type": "drop"}})
    last = flows.registry.last_event_id()
    report(flows, "a", record.uid, phase="idle", outcome="failed")
    flows.release("a", record.uid, 1)
    flows.aim(record, "paused")
    assert flows.assigned("a") == []
    assert (flows.registry.get("Sink", "lake").flow, flows.registry.last_event_id()) == (None, last)


def test_a_worker_that_surely_ended_frees_its_flows_at_once(flows: Flows) -> None:
    record = flows.registry.create(pipeline("orders"))
    join(flows, "a")
    assign(flows, record.uid, "a")
    flows.leave("a")
    assert unassigned(flows) == [record.uid]
    assert flows.workers() == []


class Leases(RuleBasedStateMachine):
    """Any order of what people, workers and the coordinator do keeps a flow with at most one worker."""

    workers = Bundle("workers")

    @initialize()
    def open(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.flows = Flows(Registry.open(f"sqlite:///{self.directory.name}/registry.db"))
        self.uid = self.flows.registry.create(pipeline("orders")).uid
        self.desired, self.outcome, self.holder, self.epoch = "active", None, None, 0
        self.alive: set[str] = set()
        self.revision, self.number = 1, 0

    @rule(target=workers)
    def join(self) -> str:
        self.number += 1
        name = f"w{self.number}"
        join(self.flows, name)
        self.alive.add(name)
        return name

    @rule(worker=workers)
    def assign(self, worker: str) -> None:
        free = self.holder is None and self.desired == "active" and self.outcome is None
        free = free and worker in self.alive
        assert assign(self.flows, self.uid, worker) == free
        if free:
            self.holder, self.epoch = worker, self.epoch + 1

    @rule(desired=st.sampled_from(["active", "paused", "stopped"]))
    def aim(self, desired: str) -> None:
        self.flows.aim(self.flows.registry.get("Pipeline", "orders"), desired)
        self.desired = desired
        if desired == "active":
            self.outcome = None

    @rule(worker=workers, behind=st.integers(0, 2), stale=st.booleans())
    def report(self, worker: str, behind: int, stale: bool) -> None:
        outcome = "failed" if stale else "completed"
        told = Report(self.uid, self.epoch - behind, self.revision - stale, "idle", outcome)
        self.flows.report(worker, [told])
        if self.holder == worker and behind == 0 and not stale:
            self.outcome = outcome

    @rule()
    def revise(self) -> None:
        self.revision += 1
        self.flows.registry.update("Pipeline", "orders", pipeline("orders", batch={"max_ms": self.revision}))
        self.outcome = None

    @rule(worker=workers, behind=st.integers(0, 2))
    def release(self, worker: str, behind: int) -> None:
        self.flows.release(worker, self.uid, self.epoch - behind)
        if self.holder == worker and behind == 0:
            self.holder = None

    @rule(worker=workers)
    def leave(self, worker: str) -> None:
        self.flows.leave(worker)
        self.alive.discard(worker)
        if self.holder == worker:
            self.holder = None

    @rule(worker=workers)
    def lose(self, worker: str) -> None:
        """The lease of a worker ends without a word."""
        assert self.flows.renew(worker, -1) == (worker in self.alive)
        dead = [worker] if worker in self.alive else []
        self.alive.discard(worker)
        if self.holder == worker:
            self.holder = None
        assert self.flows.expire() == dead

    @invariant()
    def agrees(self) -> None:
        now = self.flows.registry.get("Pipeline", "orders").flow
        assert now is not None
        assert (now.worker, now.epoch, now.desired) == (self.holder, self.epoch, self.desired)
        status = self.outcome if self.desired == "active" and self.outcome else self.desired
        assert now.status == status
        waiting = status == "active" and self.holder is None
        assert unassigned(self.flows) == ([self.uid] if waiting else [])
        if self.holder is None:
            assert now.phase == ("waiting" if waiting else "idle")

    def teardown(self) -> None:
        if hasattr(self, "flows"):
            self.flows.registry.close()
            self.directory.cleanup()


TestLeases = Leases.TestCase
TestLeases.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
