"""Where flows run: labels, capacity, load, moves, drains and starts that never end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, update

from penstock.control.documents.service import Service
from penstock.control.fleet import coordinator as coordinator_module
from penstock.control.fleet.assignments import Flows, Report
from penstock.control.monitor.pulse import Pulse
from penstock.control.questions.rpc import RpcClient
from penstock.control.registry import Registry
from penstock.control.registry.records import FlowState
from penstock.control.registry.tables import flows as table
from penstock.settings import load
from tests.flows import pipeline

START_S, DRAIN_S = 60.0, 5.0


class Fleet:
    """A registry with a coordinator whose rounds the test makes, and workers that only report."""

    def __init__(self, url: str, home: Path) -> None:
        overrides = {
            "home": home,
            "worker.start_ms": int(START_S * 1000),
            "worker.drain_ms": int(DRAIN_S * 1000),
        }
        loaded = load({**overrides, "registry.url": url}, env={}, cwd=home)
        self.service = Service(loaded, Registry.open(url))
        self.flows: Flows = self.service.flows
        self.coordinator = self.service.coordinator

    def join(self, worker: str, capacity: int | None = None, **labels: str) -> None:
        about: dict[str, Any] = {"labels": labels, "capacity": capacity}
        self.flows.join(worker, 1, "http://127.0.0.1:1", "token", 600.0, {}, **about)

    def create(self, name: str, **labels: str) -> str:
        placement = {"placement": {"labels": labels}} if labels else {}
        return self.service.registry.create(pipeline(name, **placement)).uid

    def flow(self, name: str) -> FlowState:
        found = self.service.registry.get("Pipeline", name).flow
        assert found is not None
        return found

    def round(self) -> None:
        self.coordinator._rebalance_at = 0.0
        self.coordinator.step()

    def report(self, name: str, phase: str = "running", **fields: Any) -> None:
        flow = self.flow(name)
        assert flow.worker is not None
        self.flows.report(flow.worker, [Report(flow.uid, flow.epoch, 1, phase, **fields)])

    def pass_time(self, seconds: float) -> None:
        """Let the past of all flows be longer ago."""
        with self.service.registry.begin() as conn:
            earlier = {"since": table.c.since - seconds, "recalled_at": table.c.recalled_at - seconds}
            conn.execute(update(table).values(**earlier))

    def give_back(self, worker: str) -> list[str]:
        """What a worker does that sees which of its flows are recalled."""
        recalled = [
            record for record in self.flows.assigned(worker) if record.flow and record.flow.recalled_at
        ]
        for record in recalled:
            assert record.flow is not None
            self.flows.release(worker, record.uid, record.flow.epoch)
        return sorted(record.id for record in recalled)

    def held(self) -> dict[str, int]:
        return {worker.id: worker.flows for worker in self.flows.workers()}


@pytest.fixture(params=["sqlite", "postgresql"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(RpcClient, "poke", lambda self, worker: None)
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    found = Fleet(url, tmp_path)
    yield found
    found.service.registry.close()


def test_a_flow_goes_to_a_worker_with_all_its_labels(fleet: Fleet) -> None:
    fleet.join("plain")
    fleet.join("a", zone="a")
    fleet.join("both", zone="a", disk="ssd")
    for number in range(3):
        fleet.create(f"p{number}", zone="a", disk="ssd")
    fleet.round()
    assert fleet.held() == {"plain": 0, "a": 0, "both": 3}


def test_a_flow_that_fits_no_worker_waits_and_says_why(fleet: Fleet) -> None:
    fleet.join("a", zone="a")
    fleet.create("p", zone="b")
    fleet.round()
    flow = fleet.flow("p")
    assert (flow.worker, flow.phase) == (None, "waiting")
    assert flow.waits_for is not None
    assert flow.waits_for["code"] == "no_matching_worker"
    assert "zone=b" in flow.waits_for["message"]
    assert "--label zone=b" in flow.waits_for["hint"]
    found = Pulse(fleet.service).look().attention
    assert [(each.code, each.key) for each in found if each.key] == [("no_matching_worker", "Pipeline/p")]
    fleet.join("b", zone="b")
    fleet.round()
    assert (fleet.flow("p").worker, fleet.flow("p").waits_for) == ("b", None)


def test_load_is_relative_to_capacity_and_capacity_is_a_limit(fleet: Fleet) -> None:
    fleet.join("large", capacity=6)
    fleet.join("small", capacity=2)
    for number in range(4):
        fleet.create(f"p{number}")
    fleet.round()
    assert fleet.held() == {"large": 3, "small": 1}
    for number in range(4, 10):
        fleet.create(f"p{number}")
    fleet.round()
    assert fleet.held() == {"large": 6, "small": 2}
    waits = [fleet.flow(f"p{number}").waits_for for number in range(10)]
    assert [why["code"] for why in waits if why] == ["no_capacity"] * 2


def test_a_worker_that_joins_gets_flows_a_few_at_a_time_and_stop_before_start(fleet: Fleet) -> None:
    fleet.join("a")
    names = [f"p{number}" for number in range(12)]
    for name in names:
        fleet.create(name)
    fleet.round()
    for name in names:
        fleet.report(name)
    fleet.join("b")
    fleet.round()
    assert fleet.give_back("a") == [], "they have just started"
    fleet.pass_time(coordinator_module.SETTLED_S + 1)
    fleet.round()
    assert fleet.held() == {"a": 12, "b": 0}, "the old worker has them until it gives them back"
    fleet.round()
    moved = fleet.give_back("a")
    assert len(moved) == coordinator_module.MOVES
    fleet.round()
    assert fleet.held() == {"a": 9, "b": 3}
    assert all((fleet.flow(name).worker, fleet.flow(name).epoch) == ("b", 2) for name in moved)
    for _ in range(10):
        for name in names:
            if fleet.flow(name).worker is not None:
                fleet.report(name)
        fleet.pass_time(coordinator_module.SETTLED_S + 1)
        fleet.round()
        fleet.give_back("a")
        fleet.round()
    assert fleet.held() == {"a": 6, "b": 6}
    assert {fleet.flow(name).epoch for name in names} == {1, 2}, "none has moved twice"


def test_a_difference_that_does_not_matter_moves_nothing(fleet: Fleet) -> None:
    fleet.join("a", capacity=20)
    fleet.join("b", capacity=20)
    for number in range(20):
        fleet.create(f"p{number}")
    fleet.round()
    assert fleet.held() == {"a": 10, "b": 10}
    fleet.flows.aim(fleet.service.registry.get("Pipeline", "p0"), "stopped")
    stopped = fleet.flow("p0")
    assert stopped.worker is not None
    fleet.flows.release(stopped.worker, stopped.uid, stopped.epoch)
    for number in range(1, 20):
        fleet.report(f"p{number}")
    fleet.pass_time(1000)
    fleet.round()
    assert [fleet.give_back(worker) for worker in "ab"] == [[], []]


def test_an_edit_of_the_placement_moves_a_flow_without_a_restart_where_it_fits(fleet: Fleet) -> None:
    fleet.join("a", zone="a")
    fleet.join("b", zone="b")
    fleet.create("p", zone="a")
    fleet.round()
    fleet.report("p", running_revision=1)
    registry = fleet.service.registry
    registry.update("Pipeline", "p", pipeline("p"))
    fleet.round()
    assert fleet.give_back("a") == []
    assert fleet.flow("p").running_revision == 2, "what runs is the same"
    registry.update("Pipeline", "p", pipeline("p", placement={"labels": {"zone": "b"}}))
    fleet.round()
    assert fleet.give_back("a") == ["p"]
    fleet.round()
    assert (fleet.flow("p").worker, fleet.flow("p").epoch) == ("b", 2)


def test_a_drained_worker_gives_all_back_and_gets_nothing(fleet: Fleet) -> None:
    fleet.join("first")
    for number in range(5):
        fleet.create(f"p{number}")
    fleet.round()
    fleet.join("second")
    assert fleet.service.drain_worker("fir").state == "draining"
    fleet.round()
    assert len(fleet.give_back("first")) == 5
    fleet.create("late")
    fleet.round()
    fleet.round()
    assert fleet.held() == {"first": 0, "second": 6}
    assert [worker.state for worker in fleet.flows.workers()] == ["drained", "ready"]
    assert "drained" in [event.type for event in fleet.service.registry.events_after(0)]


def test_a_flow_that_never_starts_is_tried_on_another_worker_and_fails_in_the_end(fleet: Fleet) -> None:
    fleet.join("a")
    fleet.join("b")
    fleet.create("p")
    fleet.round()
    first = fleet.flow("p").worker
    fleet.report("p", "waiting", ticket=7)
    fleet.pass_time(START_S + 1)
    fleet.round()
    assert fleet.flow("p").recalled_at is None, "it waits for its turn"
    fleet.report("p", "starting")
    fleet.pass_time(START_S + 1)
    fleet.round()
    assert fleet.flow("p").recalled_at is not None
    fleet.round()
    assert fleet.flow("p").worker == first, "the worker has its time to give it back"
    fleet.pass_time(DRAIN_S + coordinator_module.GIVE_BACK_S + 1)
    fleet.round()
    second = fleet.flow("p")
    assert (second.worker, second.epoch) == (({"a", "b"} - {first}).pop(), 2), "reassigned"
    for epoch in (3, 4):
        assert second.worker is not None
        fleet.pass_time(START_S + 1)
        fleet.round()
        fleet.flows.release(second.worker, second.uid, second.epoch)
        fleet.round()
        second = fleet.flow("p")
        if epoch == 3:
            assert second.epoch == 3
    assert (second.status, second.worker, second.error and second.error["code"]) == (
        "failed",
        None,
        "start_timeout",
    )
    fleet.flows.aim(fleet.service.registry.get("Pipeline", "p"), "active")
    fleet.round()
    assert fleet.flow("p").epoch == 4, "a person starts it again"


def test_a_flow_that_runs_has_not_failed_to_start(fleet: Fleet) -> None:
    fleet.join("a")
    fleet.create("p")
    fleet.round()
    fleet.pass_time(START_S + 1)
    fleet.round()
    fleet.flows.release("a", fleet.flow("p").uid, 1)
    fleet.round()
    assert fleet.flow("p").tried == ["a"]
    fleet.report("p", "starting")
    fleet.report("p")
    assert fleet.flow("p").tried is None


def test_a_flow_is_not_taken_from_a_worker_that_has_it_under_a_later_epoch(fleet: Fleet) -> None:
    fleet.join("a")
    fleet.create("p")
    fleet.round()
    fleet.pass_time(START_S + 1)
    stuck = fleet.coordinator.dispatch.stuck(START_S)
    assert [each.epoch for each in stuck] == [1]
    fleet.flows.release("a", fleet.flow("p").uid, 1)
    fleet.round()
    fleet.coordinator.dispatch.recall_stuck(stuck)
    assert (fleet.flow("p").epoch, fleet.flow("p").recalled_at) == (2, None)


def test_one_round_is_a_few_statements_whatever_the_number_of_flows(fleet: Fleet) -> None:
    for worker in range(10):
        fleet.join(f"w{worker:02}")
    for number in range(60):
        fleet.create(f"p{number}")
    statements: list[str] = []
    engine = fleet.service.registry.engine
    event.listen(engine, "before_cursor_execute", lambda *about: statements.append(about[2]))
    began = time.monotonic()
    fleet.round()
    assert set(fleet.held().values()) == {6}
    assert len(statements) < 25, statements
    assert time.monotonic() - began < 5
