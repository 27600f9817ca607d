"""The real coordinator over workers that only report: a flow has one worker under an epoch."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.fleet import Fleet
from penstock.control.fleet import coordinator as coordinator_module
from penstock.control.fleet.assignments import Report

NIGHTLY = bool(os.environ.get("PENSTOCK_TEST_NIGHTLY"))
FLOWS, WORKERS, ROUNDS = (10_000, 500, 60) if NIGHTLY else (150, 12, 60)
MOST_STATEMENTS = 40


@pytest.fixture(params=["sqlite", *(["postgresql"] if NIGHTLY else [])])
def fleet(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(coordinator_module, "SETTLED_S", 0.0)
    monkeypatch.setattr(coordinator_module, "REBALANCE_S", 0.0)
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    found = Fleet(url, tmp_path, FLOWS, WORKERS)
    yield found
    found.registry.close()


def test_a_flow_has_one_worker_under_an_epoch_whatever_happens(fleet: Fleet) -> None:
    chance = random.Random(7)
    holders: dict[tuple[str, int], str] = {}
    number = WORKERS
    for _ in range(ROUNDS):
        seconds, statements = fleet.round()
        lost = 1 + sum(worker.state != "ready" for worker in fleet.flows.workers())
        assert statements < MOST_STATEMENTS + lost, "a round costs the same, whatever the number of flows"
        if not NIGHTLY:
            assert seconds < 5
        workers = {worker.id: worker for worker in fleet.flows.workers()}
        for running in fleet.registry.running():
            flow = running.flow
            if flow.worker is None:
                continue
            assert holders.setdefault((flow.uid, flow.epoch), flow.worker) == flow.worker
            zone = (flow.placement or {}).get("zone")
            if flow.recalled_at is None and flow.worker in workers and zone is not None:
                assert workers[flow.worker].labels["zone"] == zone
        number = _something_happens(fleet, chance, list(workers), number)
    assert max(epoch for _, epoch in holders) > 1, "flows have moved"


def _something_happens(fleet: Fleet, chance: random.Random, workers: list[str], number: int) -> int:
    """Workers report, give back, die, are drained and join; some work with what they knew long ago."""
    for worker in chance.sample(workers, k=max(1, len(workers) // 2)):
        for record in fleet.flows.assigned(worker):
            flow = record.flow
            assert flow is not None
            late = chance.random() < 0.1
            if flow.recalled_at is not None and chance.random() < 0.8:
                fleet.flows.release(worker, record.uid, flow.epoch - late)
            elif flow.phase != "running":
                fleet.flows.report(worker, [Report(record.uid, flow.epoch - late, 1, "running")])
    match chance.randrange(4):
        case 0 if len(workers) > 4:
            fleet.flows.leave(chance.choice(workers))
        case 1 if len(workers) > 4:
            fleet.flows.draining(chance.choice(workers))
        case 2:
            fleet.join(number)
            number += 1
    return number


def test_two_coordinators_at_once_place_a_flow_once(fleet: Fleet) -> None:
    """The second one decides on what it read before the first one wrote."""
    waiting = fleet.coordinator.dispatch.waiting()
    fleet.round()
    before = {running.flow.uid: running.flow.worker for running in fleet.registry.running()}
    given = {flow.uid: "w0001" for flow in waiting}
    assert fleet.coordinator.dispatch.assign(given) == 0
    assert {running.flow.uid: running.flow.worker for running in fleet.registry.running()} == before
