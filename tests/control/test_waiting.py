"""A flow waits for its turn to start: in a process, and as others see it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.control.documents import service as service_module
from penstock.control.documents.service import Service
from penstock.control.fleet import start_turns as turns_module
from penstock.control.fleet.lifecycle import Keeper, State
from penstock.control.fleet.start_turns import Turn, Turns
from penstock.control.fleet.worker import Worker
from penstock.errors import NotFound
from tests.cli.commands import wait_for
from tests.flows import flow_of, pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICKS = {"type": "generate", "rate": 50}


class Watched:
    """A flow that notes its starts and its states."""

    def __init__(
        self, spark: SparkSession, home: Path, turns: Turns, name: str = "test", **options: Any
    ) -> None:
        self.starts = 0
        self.states: list[State] = []
        self.on_start: Callable[[], None] = lambda: None
        raw = pipeline(name, restart={"backoff_ms": 1, "max_attempts": 2})

        def checkpoint(_: object) -> str:
            self.starts += 1
            self.on_start()
            return str(home / name)

        self.keeper = Keeper(
            name,
            lambda: flow_of(raw),
            spark,
            checkpoint,
            turns=turns,
            on_change=self.states.append,
            **options,
        )

    @property
    def phases(self) -> list[str]:
        """The phases it went through."""
        found = [state.phase for state in self.states]
        return [phase for i, phase in enumerate(found) if i == 0 or phase != found[i - 1]]


@pytest.mark.slow
def test_more_flows_than_turns_start_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    turns, lock = Turns(2), threading.Lock()
    starting: set[str] = set()
    most = 0
    flows = [Watched(spark, tmp_path, turns, f"flow-{i}") for i in range(5)]

    def begins(name: str) -> None:
        nonlocal most
        with lock:
            assert name not in starting, "a start is under way already"
            starting.add(name)
            most = max(most, len(turns._under_way))

    def changes(flow: Watched, name: str, state: State) -> None:
        flow.states.append(state)
        if state.phase not in ("waiting", "starting"):
            with lock:
                starting.discard(name)

    for i, flow in enumerate(flows):
        name = f"flow-{i}"
        flow.on_start = lambda name=name: begins(name)  # type: ignore[misc]
        flow.keeper._on_change = lambda state, flow=flow, name=name: changes(flow, name, state)  # type: ignore[misc]
        flow.keeper.start()
    for flow in flows:
        flow.keeper.join(120)
    assert [flow.keeper.state.outcome for flow in flows] == ["completed"] * 5
    for flow in flows:
        attempts = flow.keeper.state.attempts
        assert {each["code"] for each in attempts} <= {"starved"}  # this machine may be that busy itself
        assert flow.starts <= 1 + len(attempts)
    assert most == 2
    assert [flow.phases[0] for flow in flows] == ["starting"] * 2 + ["waiting"] * 3
    tickets = [flow.states[0].ticket for flow in flows[2:]]
    assert tickets == sorted(tickets, key=lambda ticket: ticket or 0)
    assert all(flow.keeper.state.ticket is None for flow in flows)


@pytest.mark.parametrize("end", [Keeper.drain, Keeper.abort])
def test_a_flow_that_waits_ends_at_once(
    spark: SparkSession, tmp_path: Path, end: Callable[[Keeper], None]
) -> None:
    turns = Turns(1)
    other = turns.ask()
    flow = Watched(spark, tmp_path, turns)
    flow.keeper.start()
    wait_for("its place", lambda: flow.phases == ["waiting"])
    end(flow.keeper)
    flow.keeper.join(5)
    assert flow.keeper.ended
    assert (flow.starts, flow.phases, flow.keeper.state.ticket) == (0, ["waiting", "idle"], None)
    other.end()
    assert turns.ask().begun, "it has left the queue"


def test_an_attempt_after_a_failure_waits_again(spark: SparkSession, tmp_path: Path) -> None:
    turns = Turns(1)
    flow = Watched(spark, tmp_path, turns)
    others: list[Turn] = []

    def fail() -> None:
        if flow.starts == 1:
            others.append(turns.ask())
            raise OSError("not yet")

    flow.on_start = fail
    flow.keeper.start()
    wait_for("its place", lambda: flow.phases == ["starting", "backing_off", "waiting"])
    assert len(flow.keeper.state.attempts) == 1
    others[0].end()
    flow.keeper.join(120)
    state = flow.keeper.state
    assert (flow.starts, state.outcome, len(state.attempts)) == (2, "completed", 1), state.error


def test_a_turn_ends_when_the_source_has_answered(spark: SparkSession, tmp_path: Path) -> None:
    turns = Turns(1)
    raw = pipeline(source=TICKS)
    kept = Keeper("test", lambda: flow_of(raw), spark, lambda _: str(tmp_path / "ck"), turns=turns)
    kept.start()
    wait_for("the start", lambda: kept.state.phase == "running")
    next_one = turns.ask()
    wait_for("the end of the turn", lambda: next_one.begun, 20)
    assert not kept.ended
    kept.drain()
    kept.join(60)


@pytest.fixture
def taken(staff: tuple[Service, Worker], monkeypatch: pytest.MonkeyPatch) -> Turn:
    """The only turn of the worker; it lasts until the test ends it."""
    monkeypatch.setattr(turns_module, "LONGEST_TURN_S", 600.0)
    turn = staff[1].turns.ask()
    assert turn.begun
    return turn


def place(service: Service, name: str) -> tuple[str, str, int | None]:
    flow = service.get("Pipeline", name).flow
    assert flow is not None
    return flow.status, flow.phase, flow.queue_position


def waits(service: Service, name: str, at: int) -> None:
    wait_for(f"{name} at {at}", lambda: place(service, name) == ("active", "waiting", at))


def create(service: Service, *names: str) -> None:
    for at, name in enumerate(names, 1):
        service.create("Pipeline", pipeline(name, source=TICKS))
        waits(service, name, at)


@pytest.mark.slow
def test_flows_that_wait_have_a_place_and_can_be_ended(service: Service, taken: Turn) -> None:
    create(service, "first", "second", "third", "fourth")
    paused = service.act("Pipeline", "first", "pause").flow
    assert paused is not None
    assert (paused.status, paused.phase, paused.worker, paused.queue_position) == (
        "paused",
        "idle",
        None,
        None,
    )
    waits(service, "second", 1)
    service.delete("Pipeline", "second")
    with pytest.raises(NotFound):
        service.get("Pipeline", "second")
    waits(service, "third", 1)
    waits(service, "fourth", 2)
    service.act("Pipeline", "first", "resume")
    waits(service, "first", 3)
    assert service.progress("Pipeline", "first")["queue_position"] == 3
    taken.end()
    for name in ("first", "third", "fourth"):
        wait_for(name, lambda name=name: place(service, name) == ("active", "running", None))  # type: ignore[misc]
        flow = service.get("Pipeline", name).flow
        assert flow is not None
        # Waiting uses up no attempt; this machine may be too busy itself.
        assert {each["code"] for each in flow.attempts} <= {"starved"}


@pytest.mark.slow
def test_what_a_person_waits_for_goes_to_the_front(
    service: Service, taken: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "CROWDED_S", 0.1)
    create(service, "first", "second", "third")
    saved = service.patch("Pipeline", "third", {"batch": {"max_ms": 10}}).record
    assert saved.revision == 2
    waits(service, "third", 1)
    waits(service, "first", 2)
    service.act("Pipeline", "second", "restart")
    waits(service, "second", 2)
    waits(service, "third", 1)
    waits(service, "first", 3)
    taken.end()
    for name in ("first", "second", "third"):
        wait_for(name, lambda name=name: place(service, name)[1] == "running")  # type: ignore[misc]


@pytest.mark.slow
def test_an_edit_of_a_running_flow_answers_while_others_start(
    staff: tuple[Service, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, worker = staff
    service.create("Pipeline", pipeline("runs", source=TICKS))
    wait_for("runs", lambda: place(service, "runs") == ("active", "running", None))
    wait_for("the end of its turn", lambda: not worker.turns._under_way)
    monkeypatch.setattr(turns_module, "LONGEST_TURN_S", 600.0)
    turn = worker.turns.ask()
    create(service, "waits")
    saved = service.patch("Pipeline", "runs", {"batch": {"max_ms": 10}}).record
    assert saved.flow is not None
    assert (saved.revision, saved.flow.running_revision) == (2, 1), "it has not waited for the start"
    waits(service, "runs", 1)
    waits(service, "waits", 2)
    turn.end()
    wait_for("runs", lambda: place(service, "runs")[1] == "running")
    wait_for("waits", lambda: place(service, "waits")[1] == "running")
    flow = service.get("Pipeline", "runs").flow
    assert flow is not None
    assert flow.running_revision == 2
