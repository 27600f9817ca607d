"""Each rule of what a person should look at, by what it says and when it is silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.control.fleet.processes import WorkerStart
from penstock.control.monitor.attention import GIB, Scene, attention
from penstock.control.monitor.snapshot import (
    Attention,
    FlowPulse,
    GoneWorker,
    Lately,
    Look,
    ReaderPulse,
    SinkPulse,
    StreamPulse,
    Totals,
    WorkerPulse,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AT = NOW.timestamp()
ERROR = {"code": "sink_failed", "message": "the lake is frozen", "hint": "thaw it.", "at": AT}


MISSED = {
    "target_ms": 200,
    "p99_ms": 480.0,
    "met": False,
    "cause": "fixed_cost",
    "reason": "a micro-batch takes at least 240 ms, of which sink 'lake' takes 150 ms",
    "missed_since": AT - 60,
}


def flow(**changes: Any) -> FlowPulse:
    found = FlowPulse(
        key="Pipeline/orders",
        kind="Pipeline",
        id="orders",
        name="Orders",
        status="active",
        phase="running",
        worker="w",
        in_rate=1.0,
        out_rate=1.0,
        lag_events=None,
        lag_ms=None,
        latency_ms=None,
        batch_ms=None,
        input_events=10,
        dead_letters=0,
        sinks=(SinkPulse("lake", "file", "in_sync", 1.0, 10, 0),),
        error=None,
        updated_at=NOW,
    )
    return replace(found, **changes)


def stream(**changes: Any) -> StreamPulse:
    found = StreamPulse("Stream/raw", "raw", "raw", 1.0, 10, 100, 1, 10, 0, None, 0, False, ())
    return replace(found, **changes)


def worker(**changes: Any) -> WorkerPulse:
    found = WorkerPulse("w", "here", 1, "http://here", "secret", NOW, "ready", True, 1, {})
    return replace(found, **changes)


def found(
    *flows: FlowPulse,
    streams: tuple[StreamPulse, ...] = (),
    workers: tuple[WorkerPulse, ...] = (worker(),),
    free: int = 500 * GIB,
    uptime_s: float = 3600,
    startup: tuple[WorkerStart, ...] = (),
    **lately: Any,
) -> list[Attention]:
    look = Look(
        NOW,
        Totals(0, 0, 0, 0, 0, free, 1000 * GIB),
        {each.key: each for each in flows},
        {each.key: each for each in streams},
        workers,
        Lately(**lately),
        startup,
    )
    return attention(Scene(look, NOW - timedelta(seconds=uptime_s), GIB // 4))


def only(*args: Any, **kwargs: Any) -> Attention:
    (one,) = found(*args, **kwargs)
    return one


def test_nothing_is_said_when_all_is_well() -> None:
    assert found(flow(), flow(key="Pipeline/b", status="completed"), streams=(stream(),)) == []


@pytest.mark.parametrize(
    ("status", "hint", "advice"),
    [
        ("failed", "thaw it.", "Thaw it; then start it again: `penstock start orders`."),
        ("failed", None, "Open it, check the error and the log, and fix the cause; then start it again"),
    ],
)
def test_a_flow_that_has_failed(status: str, hint: str | None, advice: str) -> None:
    told = only(flow(status=status, error={**ERROR, "hint": hint}))
    assert (told.severity, told.code, told.key, told.since) == ("error", "failed", "Pipeline/orders", NOW)
    assert told.message == "Pipeline 'Orders' has failed: the lake is frozen"
    assert told.advice.startswith(advice)


def test_commands_name_the_kind_of_what_is_no_pipeline() -> None:
    told = only(flow(key="Task/orders", kind="Task", status="failed", error=ERROR))
    assert "penstock start task/orders" in told.advice


def test_a_source_that_lost_its_system() -> None:
    told = only(flow(reconnecting=True, error=ERROR))
    assert (told.severity, told.code) == ("warning", "source_unreachable")
    assert "The source of pipeline 'Orders' can't be reached" in told.message
    assert found(flow(reconnecting=True, status="paused", error=None)) == []


def test_a_flow_that_is_tried_again() -> None:
    told = only(flow(phase="backing_off", failed_attempts=1, error=ERROR))
    assert (told.severity, told.code) == ("warning", "backing_off")
    assert only(flow(phase="starting", failed_attempts=1, error=ERROR)).code == "backing_off"
    assert "the lake is frozen" in told.message
    assert "automatically" in told.advice


@pytest.mark.parametrize(("status", "verb"), [("paused", "resume"), ("stopped", "start")])
def test_a_flow_that_rests_with_an_error(status: str, verb: str) -> None:
    told = only(flow(status=status, phase="idle", error=ERROR))
    assert (told.severity, told.code) == ("info", "paused_with_error")
    assert f"penstock {verb} orders" in told.advice
    invalid = only(flow(status=status, phase="idle", error={**ERROR, "problems": [ERROR]}))
    assert (invalid.severity, invalid.code) == ("info", "invalid")
    assert found(flow(status=status, phase="idle")) == []


def test_a_sink_that_is_behind() -> None:
    behind = only(flow(sinks=(SinkPulse("lake", "file", "behind", 0.0, 10, 3),)))
    assert (behind.severity, behind.code) == ("warning", "sink_behind")
    assert "penstock catch-up orders lake" in behind.advice
    catching_up = only(flow(sinks=(SinkPulse("lake", "file", "catching_up", 0.0, 10, 3),)))
    assert (catching_up.severity, catching_up.code) == ("info", "sink_behind")


def test_dead_letters_of_the_last_minutes() -> None:
    told = only(flow(dead_letters=900), letters={"Pipeline/orders": (1, AT - 60)})
    assert (told.severity, told.code) == ("warning", "dead_letters")
    assert "could not process 1 event in" in told.message
    assert told.advice.startswith("Open its dead letters, fix the step, and replay them")
    assert told.since == NOW - timedelta(minutes=1)
    assert found(flow(dead_letters=900)) == []  # they are old


def test_a_lag_that_grows() -> None:
    growing = {"Pipeline/orders": AT - 180}
    told = only(flow(lag_events=12_000), growing=growing)
    assert (told.severity, told.code) == ("warning", "lag_growing")
    assert "12,000 events" in told.message
    assert found(flow(status="paused", worker=None, lag_events=12_000), growing=growing) == []


def test_a_latency_goal_that_is_missed() -> None:
    told = only(flow(latency=MISSED))
    assert (told.severity, told.code, told.since) == ("warning", "latency_missed", NOW - timedelta(minutes=1))
    assert told.message == (
        "Pipeline 'Orders' misses its latency goal of 200 ms (now 480 ms): a micro-batch takes at least "
        "240 ms, of which sink 'lake' takes 150 ms"
    )
    assert only(flow(latency={**MISSED, "cause": "backlog"})).severity == "info"


@pytest.mark.parametrize(
    "changes",
    [
        {"latency": {**MISSED, "missed_since": AT - 5}},
        {"latency": {**MISSED, "met": True, "missed_since": None}},
        {"latency": MISSED, "status": "paused"},
    ],
    ids=["for a moment only", "met again", "paused"],
)
def test_a_latency_goal_that_is_no_finding(changes: dict[str, Any]) -> None:
    assert found(flow(**changes)) == []


def test_a_stream_that_is_full() -> None:
    reader = ReaderPulse("pipeline:orders:1", "Pipeline/orders", 0.0, 4_000, 9)
    told = only(streams=(stream(full="buffer_full", readers=(reader,)),))
    assert (told.severity, told.code, told.kind) == ("warning", "backpressure", "Stream")
    assert "Pipeline/orders, which is 4,000 events behind" in told.advice
    assert only(streams=(stream(full="buffer_full"),)).advice.startswith("Start a reader")
    disk = only(streams=(stream(full="disk_full"),))
    assert (disk.severity, disk.code) == ("error", "stream_full")


def test_a_stream_that_drops() -> None:
    told = only(streams=(stream(),), lost={"Stream/raw": (7, AT)})
    assert (told.severity, told.code, told.since) == ("warning", "stream_dropping", NOW)
    assert "7 events" in told.message


@pytest.mark.parametrize(
    ("free", "severity"), [(GIB // 8, "error"), (5 * GIB, "warning"), (60 * GIB, None), (0, "error")]
)
def test_a_disk_that_fills_up(free: int, severity: str | None) -> None:
    assert [(each.severity, each.code) for each in found(free=free)] == (
        [(severity, "disk_low")] if severity else []
    )


def test_no_worker() -> None:
    told = only(flow(), workers=(worker(alive=False),))
    assert (told.severity, told.code) == ("error", "no_worker")
    assert "1 flow should" in told.message
    assert only(workers=()).severity == "warning"
    assert only(flow(), workers=(worker(state="draining"),), uptime_s=5).severity == "info"


def test_a_worker_that_starts_or_cannot() -> None:
    start = WorkerStart(1, "starting_spark", NOW, 0, None, "/logs/worker-1.log")
    told = only(flow(), workers=(), uptime_s=5, startup=(start,))
    assert (told.severity, told.message) == ("info", "A worker is starting; 1 flow will start then")
    failed = replace(start, phase="failed", failures=1, error="error[no_java] no Java\n  hint: install it")
    told = only(flow(), workers=(), uptime_s=5, startup=(failed,))
    assert (told.severity, told.code) == ("error", "no_worker")
    assert told.message == "Worker 1 failed to start: error[no_java] no Java"
    assert "/logs/worker-1.log" in told.advice
    assert found(flow(), startup=(failed,)) == [], "another one is ready"


def test_a_worker_that_is_gone() -> None:
    told = only(flow(), gone=(GoneWorker("0123456789", 3, AT),))
    assert (told.severity, told.code, told.since) == ("warning", "worker_gone", NOW)
    assert "01234567 was lost" in told.message
    assert "3 flows" in told.message
    told = only(flow(), gone=(GoneWorker("0123456789", 1, AT, "its JVM isn't responding"),))
    assert told.message.startswith(
        "Worker 01234567 was stopped because its JVM isn't responding; other workers"
    )


def test_a_worker_that_is_stuck() -> None:
    told = only(flow(), workers=(worker(info={"ailment": "its JVM isn't responding"}),))
    assert (told.severity, told.code) == ("error", "worker_stuck")
    assert told.message == "Worker w (1 flow) is stuck: its JVM isn't responding"


def test_the_most_urgent_comes_first() -> None:
    told = found(
        flow(status="paused", phase="idle", error=ERROR),
        flow(key="Pipeline/b", status="failed", error=ERROR),
        flow(key="Pipeline/c", phase="backing_off", error=ERROR),
        free=0,
    )
    assert [each.code for each in told] == ["disk_low", "failed", "backing_off", "paused_with_error"]


def test_transactions_without_an_end_are_told_with_their_stream() -> None:
    one = only(streams=(stream(),), unended={stream().key: (2, NOW.timestamp())})
    assert (one.severity, one.code, one.since) == ("warning", "transaction_unended", NOW)
    assert one.message.startswith("2 transactions of stream ")
    assert "max_tx_ms under batch" in one.advice
