"""Sources that fetch events with a client of their own: from the client to the sink."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.messages.source import MessageSource, raw_events
from penstock.connectors.received import Ended, Received, Receiver
from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.plan.flow import Flow
from penstock.errors import Problem, Unavailable
from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.streams.storage import Producer
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.source_suite import ids


@dataclass
class Shelf:
    """The other system: a list of messages."""

    messages: list[bytes] = field(default_factory=list)
    down: bool = False
    finite: bool = False
    lose_acknowledgement: bool = False
    opened: list[str | None] = field(default_factory=list)
    taken: int = 0
    acknowledged: int = 0

    def put(self, first: int, end: int) -> None:
        self.messages += [
            json.dumps({"id": number, "name": f"n{number}"}).encode() for number in range(first, end)
        ]


SHELVES: dict[str, Shelf] = {}


class ShelfReceiver(Receiver):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.next = shelf, 0
        self.idle = threading.Event()

    def open(self, position: str | None) -> None:
        self._require_up()
        self.shelf.opened.append(position)
        self.next = int(position or 0)

    def receive(self, wait_s: float) -> Received | None:
        self._require_up()
        found = self.shelf.messages[self.next : self.next + 10]
        if not found:
            if self.shelf.finite:
                raise Ended
            self.idle.wait(0.05)
            return None
        self.next += len(found)
        self.shelf.taken = self.next
        headers = [{"h": "x"} for _ in found]
        return Received(raw_events(found, [b"k"] * len(found), headers), str(self.next))

    def acknowledge(self, received: Received) -> None:
        if self.shelf.lose_acknowledgement:
            self.shelf.lose_acknowledgement = False
            raise ConnectionResetError("the connection is lost")
        self.shelf.acknowledged = int(received.position or 0)

    def lag(self) -> int:
        return len(self.shelf.messages) - self.next

    def _require_up(self) -> None:
        if self.shelf.down:
            problem = Problem(code="shelf_down", message="the shelf is down", path="shelf", hint="wait")
            raise Unavailable(problem)


class ShelfSource(MessageSource):
    type: Literal["http"] = "http"
    shelf: str = ""
    example: ClassVar = ""

    def receiver(self, site: Site) -> Receiver:
        return ShelfReceiver(SHELVES[self.shelf])


@pytest.fixture
def shelf(request: pytest.FixtureRequest) -> Iterator[Shelf]:
    yield SHELVES.setdefault(request.node.name, Shelf())
    del SHELVES[request.node.name]


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


RESTART = {"max_attempts": 2, "backoff_ms": 50, "max_backoff_ms": 100}


@dataclass
class Flows:
    """Pipelines from the shelf to files."""

    bench: Bench
    shelf: str

    @property
    def out(self) -> Path:
        return self.bench.root / "out"

    def keeper(self, sink: dict[str, Any] | None = None, **spec: Any) -> Keeper:
        def change(flow: Flow) -> Flow:
            source = ShelfSource(shelf=self.shelf, schema="id BIGINT, name STRING")  # type: ignore[call-arg]
            return replace(flow, source=replace(flow.source, component=source))

        return self.bench.keeper(
            {"type": "http"}, sink or to_files(self.out), change, **{"restart": RESTART} | spec
        )

    @contextmanager
    def running(self, **more: Any) -> Iterator[Keeper]:
        kept = self.keeper(**more)
        kept.start()
        try:
            yield kept
        finally:
            kept.drain()
            kept.join(60)
            assert kept.ended


@pytest.fixture
def flows(bench: Bench, request: pytest.FixtureRequest, shelf: Shelf) -> Flows:
    return Flows(bench, request.node.name)


def has(flows: Flows, count: int) -> Any:
    return lambda: len(files(flows.out)) >= count


def test_events_come_once_over_restarts_and_a_lost_acknowledgement(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 35)
    shelf.lose_acknowledgement = True
    with flows.running() as kept:
        wait_until("the first events", has(flows, 35))
        wait_until("no lag", lambda: kept.state.ops.get("lag_events") == 0)
        assert kept.state.ops["receiver"]["state"] == "receiving"
    shelf.put(35, 60)
    with flows.running():
        wait_until("the other events", has(flows, 60))
    assert ids(files(flows.out)) == list(range(60))
    assert shelf.opened == [None, "10", "35"]
    assert shelf.acknowledged == 60


def test_an_outage_does_not_end_the_flow(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 10)
    with flows.running() as kept:
        wait_until("the first events", has(flows, 10))
        shelf.down = True
        wait_until("the error", lambda: kept.state.error is not None)
        error = kept.state.error or {}
        assert (error["code"], error["path"]) == ("shelf_down", "spec.source.shelf")
        wait_until("it tries again", lambda: kept.state.ops["receiver"]["failures"] > 3)
        assert (kept.state.phase, kept.state.attempts) == ("running", [])
        shelf.put(10, 20)
        shelf.down = False
        wait_until("the other events", has(flows, 20))
        wait_until("the state", lambda: kept.state.ops["receiver"]["state"] == "receiving")
    assert ids(files(flows.out)) == list(range(20))


def test_a_system_that_was_never_reached_fails_the_flow(flows: Flows, shelf: Shelf) -> None:
    shelf.down = True
    kept = flows.keeper()
    kept.start()
    kept.join(60)
    assert kept.state.outcome == "failed"
    assert len(kept.state.attempts) == 2
    assert (kept.state.error or {})["code"] == "shelf_down"


def test_a_finite_source_completes_the_flow(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 25)
    shelf.finite = True
    kept = flows.keeper()
    kept.start()
    kept.join(60)
    assert kept.state.outcome == "completed", kept.state
    assert ids(files(flows.out)) == list(range(25))


def test_the_end_of_a_finite_source_closes_its_windows(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 25)
    shelf.finite = True
    window = {"type": "window", "kind": "tumbling", "size": "1h", "aggregates": {"n": "count(*)"}}
    kept = flows.keeper(processors=[window])
    kept.start()
    kept.join(60)
    assert kept.state.outcome == "completed", kept.state
    assert sum(row["n"] for row in files(flows.out)) == 25


def test_a_full_input_stream_stops_the_receiver(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 300)
    slow = {"type": "throttle", "rate": 100}
    spec = {"processors": [slow], "buffer": {"limit": 50}, "batch": {"max_events": 10, "max_inflight": 1}}
    with flows.running(**spec) as kept:
        wait_until("it waits", lambda: (kept.state.ops.get("receiver") or {}).get("state") == "waiting")
        assert shelf.taken < 250
        wait_until("all events", has(flows, 300))
    assert ids(files(flows.out)) == list(range(300))


def test_a_buffer_that_drops_counts_what_it_drops(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 600)
    slow = {"type": "throttle", "rate": 100}
    buffer = {"limit": 50, "mode": "drop"}
    with flows.running(processors=[slow], buffer=buffer, batch={"max_events": 10, "max_inflight": 1}) as kept:
        wait_until("all are received", lambda: shelf.acknowledged == 600)
        site = flows.bench.site
        storage = LOGS.log(site.stream(site.input).directory).storage
        dropped = sum(count for name, count in storage.counts().items() if name.startswith("dropped"))
        assert 0 < dropped < 600
        wait_until("the others", has(flows, 600 - dropped))
        assert kept.state.ops["receiver"]["failures"] == 0
    assert len(set(ids(files(flows.out)))) == 600 - dropped


def test_an_older_epoch_appends_nothing(flows: Flows, shelf: Shelf) -> None:
    shelf.put(0, 5)
    with flows.running():
        wait_until("the events", has(flows, 5))
    site = flows.bench.site
    log = LOGS.log(site.stream(site.input).directory)
    log.append(raw_events([b"{}"]), producer=Producer(f"{site.flow}/receiver", 1, epoch=7, position="5"))
    shelf.put(5, 10)
    kept = flows.keeper()
    kept.start()
    kept.join(60)
    assert (kept.state.outcome, (kept.state.error or {})["code"]) == ("failed", "fenced")
    assert log.bounds().next == 6


def test_values_are_decoded_by_the_strict_rule(flows: Flows, shelf: Shelf) -> None:
    shelf.messages = [b'{"id": 1, "name": "a"}', b'{"id": "x"}', b"no json"]
    with flows.running() as kept:
        wait_until("the event and the letters", lambda: kept.state.ops.get("dead_letters") == 2)
    assert files(flows.out) == [{"id": 1, "name": "a"}]
    letters = flows.bench.letters()
    assert {letter["code"] for letter in letters} == {"wrong_type", "not_json"}
    assert {letter["key"] for letter in letters} == {b"k"}
