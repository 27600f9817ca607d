"""The latency goal of a flow: whether it is kept, why not, and real flows that have one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import batch_warnings
from penstock.engine.runtime.latency_goal import LatencyGoal, goal_of, why
from penstock.errors import Invalid
from penstock.frames.streams.pace import Pace
from penstock.specs.policies import PacedBatch
from tests.engine.faults import Faulty, wait_for
from tests.flows import Streams, flow_of, keeper, pipeline, running

SOURCE = {"type": "stream", "stream": "in"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def pace_with(
    seconds: float, events: int = 10, rate: float = 0.0, waiting: int = 0, each: float = 0.0
) -> Pace:
    """A pace that has seen micro-batches of this length, or of costs that depend on their size."""
    pace, now = Pace(0.2, 1), 0.0
    for i in range(61):
        pace.asked(now, 0, 0)
        pace.planned(now, now, size := events * (1 + 39 * (i % 2)) if each else events)
        now += seconds + each * size
    pace.asked(now, 0, 0)
    pace.rate, pace.waiting = rate, waiting
    return pace


def test_the_goal_is_judged_by_the_last_seconds() -> None:
    clock = Clock()
    goal = LatencyGoal(200, lambda: None, clock)
    assert (goal.report()["met"], goal.report()["p99_ms"]) == (None, None)
    for _ in range(5):
        goal.finished(1000, 150.0)
    goal.finished(10, 900.0)
    found = goal.report()
    assert (found["target_ms"], found["p99_ms"], found["met"]) == (200, 150.0, True), "one in 500 may be late"
    goal.finished(100, 900.0)
    found = goal.report()
    assert (found["p99_ms"], found["met"], found["missed_since"] is not None) == (900.0, False, True)
    clock.now += 11
    goal.finished(100, 150.0)
    found = goal.report()
    assert (found["met"], found["reason"], found["missed_since"]) == (True, None, None)
    clock.now += 60
    assert goal.report()["met"] is None


def test_a_slow_micro_batch_is_remembered_for_longer() -> None:
    clock = Clock()
    goal = LatencyGoal(200, lambda: None, clock)
    goal.finished(1, 30_000.0)
    clock.now += 40
    assert goal.report()["met"] is False


def test_a_micro_batch_that_does_not_end_is_late_already() -> None:
    clock = Clock()
    pace = Pace(0.2, 1)
    goal = LatencyGoal(200, lambda: pace, clock)
    pace.planned(clock.now, clock.now - 0.1, 10)
    clock.now += 4
    assert goal.report()["met"] is None
    clock.now += 5
    found = goal.report()
    assert (found["met"], found["cause"], found["p99_ms"]) == (False, "stuck", 9000.0)
    assert "9 s after its first event" in found["reason"]


@pytest.mark.parametrize(
    ("pace", "cause", "text"),
    [
        (
            pace_with(0.24),
            "fixed_cost",
            "a micro-batch takes at least 240 ms, and 240 ms on average, of which sink 'lake' takes 150",
        ),
        (
            pace_with(1.0, 8_000, rate=12_000.0, waiting=50_000),
            "rate",
            "12,000 events/s arrive, about 8,000 events/s can be processed",
        ),
        (
            pace_with(1.0, 10_000, rate=2_000.0, waiting=80_000),
            "backlog",
            "80,000 events are waiting; catching up takes about 10 s",
        ),
        (
            pace_with(0.02, 100, rate=9_000.0, each=0.0001),
            "rate",
            "at 9,000 events/s a micro-batch takes 2",
        ),
        (pace_with(0.02, rate=100.0), "uneven", "a micro-batch takes 20 ms on average, of which sink"),
        (None, "uneven", "the first micro-batches took 900 ms"),
    ],
    ids=["fixed", "overload", "backlog", "rate", "uneven", "unknown"],
)
def test_the_reason(pace: Pace | None, cause: str, text: str) -> None:
    found = why(pace, 200, 900.0, ("lake", 0.15))
    assert found.cause == cause
    assert found.text.startswith(text)


def test_a_quick_sink_is_not_named() -> None:
    assert "lake" not in why(pace_with(0.24), 200, 900.0, ("lake", 0.002)).text


def test_no_rate_is_given_if_no_event_could_be_in_time() -> None:
    found = why(pace_with(0.3, 1_000, rate=9_000.0, each=0.0001), 200, 900.0, None)
    assert (found.cause, "events/s" in found.text) == ("fixed_cost", False)


def test_a_flow_with_a_goal(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT")
    flow = flow_of(pipeline(source=SOURCE, latency="1s"), streams.site())
    assert isinstance(flow.batch, PacedBatch)
    assert flow.latency_ms == 1000
    assert list(batch_warnings(flow)) == []
    goal = goal_of(flow)
    assert goal is not None
    assert goal.target_ms == 1000
    assert goal_of(flow_of(pipeline(source=SOURCE), streams.site())) is None


def test_a_flow_that_ends_has_no_use_for_a_goal(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT")
    flow = flow_of(pipeline(source={**SOURCE, "until": "latest"}, latency="1s"), streams.site())
    (warning,) = batch_warnings(flow)
    assert (warning.code, warning.path) == ("no_effect", "spec.latency")
    assert goal_of(flow) is None


def test_a_step_that_reads_another_stream_is_refused(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT, at TIMESTAMP")
    streams.make("other", schema="id BIGINT, at TIMESTAMP")
    join = {"type": "join", "stream": "other", "on": ["id"], "time": "at", "within": "1m"}
    with pytest.raises(Invalid) as caught:
        flow_of(pipeline(source=SOURCE, processors=[join], latency="1s"), streams.site())
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("latency_unavailable", "spec.latency")
    assert "'join'" in problem.message


@pytest.mark.slow
def test_at_a_low_rate_events_linger_and_share_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log, out = streams.make("in", schema="id BIGINT"), streams.make("out", schema="id BIGINT")
    raw = pipeline(source=SOURCE, sinks=[{"type": "stream", "stream": "out"}], latency="3s")
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
        for i in range(4):  # until the costs are known
            log.append(pa.record_batch({"id": [i]}))
            wait_for("one", lambda i=i: out.bounds().next == i + 1)  # type: ignore[misc]
        wait_for("lingering", lambda: (kept.state.ops["latency"]["linger_ms"] or 0) > 500)
        before = kept.state.ops["batches"]
        for i in range(40):
            log.append(pa.record_batch({"id": [i]}))
            time.sleep(0.05)
        wait_for("all", lambda: out.bounds().next == 44)
        wait_for("reports", lambda: kept.state.ops["input_events"] == 44)
        ops: dict[str, Any] = kept.state.ops
    assert ops["batches"] - before <= 10, "40 events over two seconds"
    assert ops["latency"]["target_ms"] == 3000
    assert ops["latency"]["p99_ms"] > 0


@pytest.mark.slow
def test_a_sink_that_takes_longer_than_the_goal_is_named(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log = streams.make("in", schema="id BIGINT")
    flow = Faulty(
        tmp_path,
        {"lake": {}},
        streams.site(),
        {"source": SOURCE, "latency": "500ms"},
    )
    with running(flow.keeper(spark, lake=["slow:1"] * 50)) as kept:
        for i in range(4):
            log.append(pa.record_batch({"id": [i]}))
            wait_for("one", lambda i=i: kept.state.ops.get("input_events") == i + 1)  # type: ignore[misc]
        wait_for("the miss", lambda: kept.state.ops["latency"]["cause"] == "fixed_cost")
        goal = kept.state.ops["latency"]
    assert goal["met"] is False
    assert goal["p99_ms"] > 1000
    assert "of which sink 'lake' takes 1," in goal["reason"]
    assert goal["missed_since"] is not None


@pytest.mark.slow
def test_a_script_sees_the_batches_that_share_the_work(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "tasks", lambda pace, events: 2)
    streams = Streams(tmp_path)
    log, out = streams.make("in", schema="id BIGINT"), streams.make("out", schema="n BIGINT")
    log.append(pa.record_batch({"id": list(range(600))}))
    script = "function processBatch(events) { return [{n: events.length}] }"
    raw = pipeline(
        source=SOURCE,
        processors=[{"type": "javascript", "inline": script, "schema": "n BIGINT"}],
        sinks=[{"type": "stream", "stream": "out"}],
        latency="1s",
    )
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())):
        wait_for("both", lambda: out.bounds().next == 2)
    found = [chunk.batch for chunk in out.read(0) if chunk.batch is not None]
    assert [n for batch in found for n in batch.column("n").to_pylist()] == [300, 300]
