"""The look at everything: on a real registry and real streams, with what a worker would report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import Report
from penstock.control.fleet.progress import flow_name
from penstock.control.monitor import stream_sampling
from penstock.control.monitor.pulse import TOTALS, Pulse
from penstock.control.monitor.snapshot import FlowPulse, StreamPulse
from penstock.streams.storage import Cursor
from tests.api.kit import open_service
from tests.control.registry.kit import document, stream
from tests.flows import assign

LEASE_S = 3600.0


class Stage:
    """A service, a worker that says what it is told to, and the pulse."""

    def __init__(self, service: Service) -> None:
        self.service, self.pulse = service, Pulse(service)
        service.flows.join("w", 1, "http://nowhere", "secret", LEASE_S, {"version": "test"})

    def save(self, raw: dict[str, Any]) -> None:
        saved = self.service.registry.create(raw)
        if saved.kind == "Stream":
            self.service.streams.ensure(saved)

    def report(self, name: str, phase: str = "running", **ops: Any) -> None:
        record = self.service.registry.get("Pipeline", name)
        assign(self.service.flows, record.uid, "w")
        record = self.service.registry.get("Pipeline", name)
        assert record.flow is not None
        report = Report(record.uid, record.flow.epoch, record.revision, phase, ops=ops)
        self.service.flows.report("w", [report])

    def flow(self, name: str = "orders") -> FlowPulse:
        return self.pulse.look().look.flows[f"Pipeline/{name}"]

    def stream(self, id: str) -> StreamPulse:
        return self.pulse.look().look.streams[f"Stream/{id}"]

    def look_until(self, seen: Callable[[dict[str, StreamPulse]], bool]) -> None:
        """A change of documents is seen soon, but not at once if looking at them took long."""
        deadline = time.monotonic() + 30
        while not seen(self.pulse.look().look.streams):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def append(self, id: str, *ids: int) -> None:
        self.service.streams.log(id).append(pa.record_batch({"id": list(ids)}))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_service(tmp_path) as service:
        yield Stage(service)


@pytest.fixture
def orders(stage: Stage) -> Stage:
    """A pipeline from a stream to two sinks."""
    stage.save(stream("Raw", {"schema": "id BIGINT"}))
    source = {"type": "stream", "stream": "raw"}
    sinks = [{"type": "drop"}, {"id": "lake", "type": "file", "path": "out", "format": "json"}]
    stage.save(document("Pipeline", "orders", {"source": source, "sinks": sinks}))
    return stage


def counts(events: int) -> dict[str, Any]:
    return {"events": events, "batches": 1, "failures": 0, "missed_batches": 0}


def test_nothing(stage: Stage) -> None:
    sample = stage.pulse.look()
    assert (sample.look.flows, sample.look.streams) == ({}, {})
    assert sample.look.totals.disk_total_bytes > sample.look.totals.disk_free_bytes > 0
    assert [worker.id for worker in sample.look.workers] == ["w"]
    assert stage.pulse.latest() is sample


def test_rates_come_from_what_the_worker_counts(orders: Stage) -> None:
    orders.report("orders", input_events=1000, sinks={"drop": counts(1000), "lake": counts(900)})
    first = orders.flow()
    assert (first.in_rate, first.out_rate, first.input_events) == (0.0, 0.0, 1000)  # since when, nobody knows
    assert [(sink.id, sink.type, sink.state) for sink in first.sinks] == [
        ("drop", "drop", "in_sync"),
        ("lake", "file", "in_sync"),
    ]
    time.sleep(0.05)
    orders.report(
        "orders", input_events=1500, dead_letters=3, sinks={"drop": counts(1400), "lake": counts(900)}
    )
    second = orders.flow()
    drop, lake = second.sinks
    assert second.in_rate > drop.rate > lake.rate == 0.0
    assert (second.out_rate, second.dead_letters) == (drop.rate, 3)
    look = orders.pulse.latest().look
    assert (look.totals.in_rate, look.totals.dead_letters) == (second.in_rate, 3)
    assert look.workers[0].flow_keys == ("Pipeline/orders",)
    assert [each.code for each in orders.pulse.latest().attention] == ["dead_letters"]
    orders.report("orders", input_events=10, sinks={})  # as if its counters had been lost
    assert orders.flow().in_rate == 0.0


def test_letters_of_a_new_flow_are_recent_those_before_the_server_started_are_not(stage: Stage) -> None:
    sinks = [{"type": "drop"}]
    stage.save(document("Pipeline", "old", {"source": {"type": "generate"}, "sinks": sinks}))
    stage.report("old", dead_letters=5)
    stage.pulse.look()
    stage.save(document("Pipeline", "new", {"source": {"type": "generate"}, "sinks": sinks}))
    stage.report("new", dead_letters=1)
    assert stage.flow("new").dead_letters == 1
    found = stage.pulse.latest().attention
    assert [(each.code, each.id) for each in found] == [("dead_letters", "new")]
    assert "1 event in the last 10 minutes" in found[0].message


def test_what_nobody_runs_has_no_rate(orders: Stage) -> None:
    orders.report("orders", input_events=0, last_batch={"id": 1, "duration_ms": 20, "latency_ms": 50})
    orders.flow()
    time.sleep(0.02)
    orders.report("orders", input_events=500, last_batch={"id": 2, "duration_ms": 20, "latency_ms": 50})
    busy = orders.flow()
    assert busy.in_rate > 0
    assert (busy.batch_ms, busy.latency_ms) == (20, 50)
    record = orders.service.registry.get("Pipeline", "orders")
    assert record.flow is not None
    orders.service.flows.aim(record, "paused")
    orders.service.flows.release("w", record.uid, record.flow.epoch)
    rests = orders.flow()
    assert (rests.status, rests.in_rate, rests.batch_ms, rests.input_events) == ("paused", 0.0, None, 500)


def test_streams_and_their_readers(orders: Stage) -> None:
    orders.append("raw", *range(10))
    orders.stream("raw")
    time.sleep(0.02)
    orders.append("raw", *range(10))
    reader = flow_name(orders.service.registry.get("Pipeline", "orders"))
    log = orders.service.streams.log("raw")
    log.move_cursor(Cursor(reader, 5))
    log.move_cursor(Cursor(f"{reader}/join", 15))
    log.move_cursor(Cursor("somebody", 20))
    found = orders.stream("raw")
    assert (found.name, found.events, found.next, found.lag_events) == ("Raw", 20, 20, 15)
    assert found.in_rate > 0
    assert {(each.reader, each.key, each.lag_events) for each in found.readers} == {
        (reader, "Pipeline/orders", 15),
        (f"{reader}/join", "Pipeline/orders", 5),
        ("somebody", None, 0),
    }
    flow = orders.flow()
    assert flow.lag_events == 15
    assert flow.lag_ms is not None
    assert orders.pulse.latest().look.totals.lag_events == 15
    assert "Stream/raw.dead" in orders.pulse.latest().look.streams  # it has one for what does not fit


def test_what_is_lost_is_counted_and_told(orders: Stage) -> None:
    storage = orders.service.streams.log("raw").storage
    storage.count(dropped_timeout=5, evicted_retention_ms=100)
    assert orders.stream("raw").dropped == 5  # what retention removes in its time is not lost
    storage.count(dropped_timeout=2, dropped_no_reader=30)
    found = orders.stream("raw")
    assert found.dropped == 37
    (told,) = orders.pulse.latest().attention
    assert (told.code, told.key) == ("stream_dropping", "Stream/raw")
    assert "2 events" in told.message
    assert "drop:timeout" in orders.pulse.history.read("Stream/raw", 15).series


def test_a_stream_that_a_worker_waits_for(orders: Stage) -> None:
    orders.service.flows.renew("w", LEASE_S, {"full_streams": {"raw": "buffer_full"}, "cpu_percent": 7.5})
    assert orders.stream("raw").full == "buffer_full"
    assert [each.code for each in orders.pulse.latest().attention] == ["backpressure"]
    assert orders.pulse.latest().look.workers[0].cpu_percent == 7.5


def test_sinks_that_are_behind(orders: Stage) -> None:
    sinks = {"drop": counts(10), "lake": {**counts(10), "state": "catching_up"}}
    orders.report("orders", phase="starting", sinks=sinks)
    assert [sink.state for sink in orders.flow().sinks] == ["in_sync", "behind"]  # it does not run yet
    orders.report("orders", sinks=sinks)
    assert [sink.state for sink in orders.flow().sinks] == ["in_sync", "catching_up"]
    assert [each.code for each in orders.pulse.latest().attention] == ["sink_behind"]


def test_only_what_changed_is_told_to_those_who_follow(orders: Stage) -> None:
    first = orders.pulse.look()
    nothing = orders.pulse.since(first.number)
    assert nothing is not None
    assert (nothing.flows, nothing.streams, nothing.gone) == ([], [], [])
    orders.report("orders", input_events=7)
    orders.save(stream("new"))
    orders.look_until(lambda streams: "Stream/new" in streams)
    orders.service.registry.delete("Stream", "new")
    orders.look_until(lambda streams: "Stream/new" not in streams)
    found = orders.pulse.since(first.number)
    assert found is not None
    assert [flow.key for flow in found.flows] == ["Pipeline/orders"]
    assert ([each.key for each in found.streams], found.gone) == ([], ["Stream/new"])
    orders.save(stream("new"))
    orders.look_until(lambda streams: "Stream/new" in streams)
    again = orders.pulse.since(first.number)
    assert again is not None
    assert ([each.key for each in again.streams], again.gone) == (["Stream/new"], [])


def test_history_is_there_when_somebody_asks(orders: Stage) -> None:
    orders.pulse.look()
    flow, all_together = (
        orders.pulse.history.read("Pipeline/orders", 15),
        orders.pulse.history.read(TOTALS, 15),
    )
    assert {"in_rate", "out_rate", "batch_ms", "latency_ms", "lag_events", "lag_ms", "dead_letters"} < set(
        flow.series
    )
    assert {"sink:drop", "sink:lake"} < set(flow.series)
    assert set(all_together.series) == {
        "in_rate",
        "out_rate",
        "lag_events",
        "dead_letters",
        "stream_bytes",
    }
    assert flow.at == all_together.at
    assert {"in_rate", "bytes", "segments", "events", "lag_events", "dropped"} <= set(
        orders.pulse.history.read("Stream/raw", 15).series
    )


def test_a_namesake_has_another_past(orders: Stage) -> None:
    orders.report("orders", input_events=100, dead_letters=1)
    orders.pulse.look()
    orders.service.registry.delete("Pipeline", "orders")
    orders.save(document("Pipeline", "orders", {"source": {"type": "generate"}, "sinks": [{"type": "drop"}]}))
    orders.report("orders", input_events=5)
    assert orders.flow().input_events == 5
    assert orders.pulse.latest().attention == []
    assert set(orders.pulse.history.read("Pipeline/orders", 15).series) <= {
        *("in_rate", "out_rate", "batch_ms", "latency_ms", "lag_events", "lag_ms", "dead_letters"),
        "sink:drop",
    }


def test_a_worker_that_vanishes_is_told_and_one_that_says_farewell_is_not(orders: Stage) -> None:
    flows = orders.service.flows
    flows.join("polite", 2, "http://nowhere", "secret", LEASE_S, {})
    orders.report("orders")
    orders.pulse.look()
    flows.draining("polite")
    orders.pulse.look()
    flows.leave("polite")
    flows.leave("w")
    codes = [each.code for each in orders.pulse.look().attention]
    assert sorted(codes) == ["no_worker", "worker_gone"]


def test_very_many_streams_have_their_turn(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_sampling, "BUDGET_S", 0.0)  # time for one each
    for name in ("a", "b", "c"):
        stage.save(stream(name))
    seen = [set(stage.pulse.look().look.streams) for _ in range(3)]
    assert [len(each) for each in seen] == [1, 2, 3]
    for name in ("a", "b", "c"):
        stage.append(name, 1)
    for _ in range(3):
        found = stage.pulse.look().look.streams
    assert {each.next for each in found.values()} == {1}


def test_a_stream_that_could_not_be_read_is_seen_when_there_is_another_of_its_name(stage: Stage) -> None:
    stage.save(stream("raw"))
    stage.look_until(lambda streams: "Stream/raw" in streams)
    record = stage.service.registry.get("Stream", "raw")
    stage.service.streams.remove(record)  # as during a deletion: its document is still there
    stage.look_until(lambda streams: "Stream/raw" not in streams)
    stage.service.registry.delete("Stream", "raw")
    stage.pulse.look()
    time.sleep(0.1)  # more than the pause between two readings of all documents
    stage.pulse.look()
    stage.save(stream("raw"))
    stage.look_until(lambda streams: "Stream/raw" in streams)


def test_a_registry_that_is_down_for_a_moment_does_no_harm(
    orders: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulse, running = orders.pulse, orders.service.registry.running
    down = True

    def ask() -> Any:
        if down:
            raise OSError("gone")
        return running()

    monkeypatch.setattr(orders.service.registry, "running", ask)
    monkeypatch.setattr("penstock.control.monitor.pulse.STEP_MS", 50)
    pulse.start()
    try:
        time.sleep(0.3)
        assert pulse._sample is None
        down = False
        deadline = time.monotonic() + 30
        while pulse._sample is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        pulse.stop()
    assert "Pipeline/orders" in pulse.latest().look.flows


def test_a_missed_latency_goal_is_found_and_cleared(orders: Stage) -> None:
    since = time.time() - 30
    goal = {"target_ms": 200, "p99_ms": 480.0, "met": False, "cause": "rate", "missed_since": since}
    orders.report("orders", latency={**goal, "reason": "12,000 events/s arrive, about 8,000 events/s can be"})
    orders.pulse.look()
    (finding,) = [each for each in orders.pulse.latest().attention if each.code == "latency_missed"]
    assert "12,000 events/s arrive" in finding.message
    orders.report("orders", latency={**goal, "met": True, "cause": None, "missed_since": None})
    orders.pulse.look()
    assert [each for each in orders.pulse.latest().attention if each.code == "latency_missed"] == []
