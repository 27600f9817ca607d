"""A flow that should process events and does not is never silent: on a real registry, and on Spark."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import Report
from penstock.control.fleet.dispatch import Dispatch
from penstock.control.fleet.progress import flow_name
from penstock.control.monitor.meters import Headway
from penstock.control.monitor.pulse import Pulse
from penstock.control.monitor.snapshot import Attention, FlowPulse
from penstock.control.registry.records import FlowState
from penstock.streams.storage import Cursor
from tests.api.kit import open_service
from tests.cli.commands import wait_for
from tests.control.registry.kit import document, stream
from tests.flows import assign, pipeline

ERROR = {"code": "sink_failed", "message": "the lake is frozen", "path": None, "hint": "thaw it"}


class Stage:
    """A pipeline that reads a stream, and a worker that says what it is told to."""

    def __init__(self, service: Service) -> None:
        self.service, self.pulse = service, Pulse(service)
        service.flows.join("w", 1, "http://nowhere", "secret", 3600.0, {"version": "test"})
        service.streams.ensure(service.registry.create(stream("raw", {"schema": "id BIGINT"})))
        source = {"type": "stream", "stream": "raw"}
        spec = {"source": source, "sinks": [{"type": "drop"}]}
        record = service.registry.create(document("Pipeline", "orders", spec))
        service.streams.log("raw").move_cursor(Cursor(flow_name(record), 0, 1))
        assign(service.flows, record.uid, "w")

    @property
    def flow(self) -> FlowState:
        found = self.service.registry.get("Pipeline", "orders").flow
        assert found is not None
        return found

    def report(self, phase: str, failed: int = 0, **fields: Any) -> None:
        record = self.service.registry.get("Pipeline", "orders")
        assert record.flow is not None
        told = Report(record.uid, record.flow.epoch, record.revision, phase, failed_attempts=failed, **fields)
        self.service.flows.report("w", [told])

    def fails(self, failed: int, phase: str = "backing_off", good_at: float | None = None) -> None:
        """The worker reports one more failed attempt."""
        error = {**ERROR, "at": time.time()}
        self.report(phase, failed, error=error, ops={"batches": 3, "good_at": good_at})

    def append(self, events: int) -> None:
        self.service.streams.log("raw").append(pa.record_batch({"id": list(range(events))}))

    def look(self) -> tuple[FlowPulse, list[Attention]]:
        sample = self.pulse.look()
        return sample.look.flows["Pipeline/orders"], sample.attention

    def phases(self) -> list[str]:
        """The phases that events have told."""
        events = self.service.registry.events_after(0)
        return [event.data["phase"] for event in events if event.type == "status"]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_service(tmp_path, **{"monitor.stalled_ms": "50"}) as service:
        yield Stage(service)


def test_the_first_failure_is_retried_and_the_second_stalls(stage: Stage) -> None:
    stage.fails(1)
    assert stage.flow.phase == "backing_off"
    (told,) = stage.look()[1]
    assert (told.severity, told.code) == ("warning", "backing_off")
    stage.report("starting", 1)
    (told,) = stage.look()[1]
    assert told.code == "backing_off", "a start after a failure is no sign of health"
    stage.fails(2)
    for phase in ("starting", "waiting", "running"):
        stage.report(phase, 2)
        assert stage.flow.phase == "stalled", phase
    assert stage.phases()[-1] == "stalled"


def test_a_stalled_flow_comes_first_with_its_attempts_backlog_and_error(stage: Stage) -> None:
    good_at = time.time() - 90
    stage.fails(3, good_at=good_at)
    stage.append(5)
    stage.look()
    stage.append(7)
    stage.service.registry.create(document("Pipeline", "ended", {"source": {"type": "generate"}}))
    other = stage.service.registry.get("Pipeline", "ended")
    assign(stage.service.flows, other.uid, "w")
    assert other.flow is not None
    given_up = Report(other.uid, 1, 1, "idle", outcome="failed", error={**ERROR, "at": time.time()})
    stage.service.flows.report("w", [given_up])
    stage.fails(4, good_at=good_at)
    flow, told = stage.look()
    assert (flow.phase, flow.failed_attempts, flow.lag_events, flow.lag_growing) == ("stalled", 4, 12, True)
    assert [each.code for each in told] == ["stalled", "failed"]
    assert told[0].message == (
        "Pipeline 'orders' is stalled: 4 failed attempts since its last good batch, "
        "backlog 12 events and growing: the lake is frozen"
    )
    assert told[0].advice.startswith("Thaw it; ")


def test_an_error_is_over_after_a_good_batch(stage: Stage) -> None:
    stage.fails(2)
    assert "recovered" not in (stage.flow.error or {})
    stage.report("running", 0, ops={"batches": 4, "good_at": time.time()})
    assert stage.flow.phase == "running"
    assert (stage.flow.error or {})["recovered"] is True
    assert stage.look()[1] == []
    (event,) = stage.service.registry.events_after(0)[-1:]
    assert event.data["error"]["recovered"] is True
    stage.service.flows.aim(stage.service.registry.get("Pipeline", "orders"), "paused")
    assert stage.look()[1] == [], "an old error does not come back with a pause"


def test_a_backlog_that_grows_while_no_batch_finishes(stage: Stage) -> None:
    stage.report("running", ops={"batches": 1, "good_at": time.time()})
    stage.append(5)
    assert stage.look()[0].phase == "running"
    time.sleep(0.1)
    assert stage.look()[0].phase == "running", "it does not grow"
    stage.append(2)
    flow, (told,) = stage.look()
    assert (flow.phase, told.code) == ("stalled", "stalled")
    assert re.search(r"no batch has finished for \d+ seconds?, backlog 7 events and growing", told.message)
    assert stage.flow.phase == "stalled"
    assert Pulse(stage.service).look().look.flows["Pipeline/orders"].phase == "stalled", "a restarted server"
    stage.report("running", ops={"batches": 2, "good_at": time.time()})
    stage.look()
    assert (stage.flow.phase, stage.look()[1]) == ("running", [])
    assert stage.phases()[-2:] == ["stalled", "running"]


def test_a_user_who_starts_it_again_starts_from_zero(stage: Stage) -> None:
    stage.fails(3)
    stage.service.flows.aim(stage.service.registry.get("Pipeline", "orders"), "active")
    assert (stage.flow.failed_attempts, stage.flow.error) == (0, None)
    assert stage.flow.phase != "stalled"


def test_a_worker_that_does_not_start_it_in_time_is_a_failed_attempt(stage: Stage) -> None:
    stage.report("starting")
    dispatch = Dispatch(stage.service.registry)
    dispatch.recall_stuck(dispatch.stuck(-1))
    assert stage.flow.failed_attempts == 1


def test_headway() -> None:
    headway = Headway()
    headway.mark(0, 1, 10, True)
    headway.mark(60, 1, 20, True)
    assert headway.grows
    assert (headway.stalled_since(60, 59), headway.stalled_since(60, 61)) == (0, None)
    headway.mark(61, 2, 30, True)
    assert not headway.grows, "a batch has finished"
    headway.mark(70, 2, 31, False)
    assert headway.stalled_since(1000, 1) is None, "it is paused"
    headway.mark(71, 2, None, True)
    headway.mark(72, 2, 5, True)
    assert headway.stalled_since(1000, 1) is None, "what was not known cannot have grown"


@pytest.mark.slow
def test_a_flow_on_spark_that_fails_again_and_again_and_recovers(service: Service, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sinks = [{"type": "file", "path": str(tmp_path / "file"), "format": "json"}]
    spec: dict[str, Any] = {"source": {"type": "generate", "rate": 50}, "sinks": sinks}
    spec["restart"] = {"max_attempts": 1000, "backoff_ms": 10, "max_backoff_ms": 10}
    service.create("Pipeline", pipeline("orders", **spec))

    def flow() -> FlowState:
        found = service.get("Pipeline", "orders").flow
        assert found is not None
        return found

    wait_for("the second failure", lambda: flow().failed_attempts >= 2)
    seen = {flow().phase for _ in range(20) if time.sleep(0.02) is None}
    assert seen == {"stalled"}, "also between two attempts"
    (tmp_path / "file").unlink()
    wait_for("a batch", lambda: flow().phase == "running")
    assert (flow().failed_attempts, (flow().error or {})["recovered"]) == (0, True)
    service.act("Pipeline", "orders", "stop")
