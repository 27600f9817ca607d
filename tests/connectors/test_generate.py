from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.connectors.generate_planner import EVENTS, GeneratePlanner
from penstock.spark.planned_source import FORMAT, TABLES, Offset, options
from tests.flows import json_rows, keeper, pipeline, run


def planner(**given: Any) -> GeneratePlanner:
    limits = {"max_events": 10, "max_ms": 0, "max_inflight": 4}
    return GeneratePlanner({"rate": None, "count": None, **limits, **given})


def moved(source: GeneratePlanner, start: Offset) -> Offset:
    """The end of the next micro-batch; there has to be one."""
    end = source.latest(start)
    assert end is not None
    return end


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(1, 30), st.integers(1, 5))
def test_batches_are_dense_and_the_same_when_planned_again(count: int, size: int, inflight: int) -> None:
    source = planner(count=count, max_events=size, max_inflight=inflight)
    at, seen = source.initial(), 0
    while (end := source.latest(at)) is not None:
        made = source.partitions(at, end)
        assert len(made) <= inflight
        assert made == planner(count=count, max_events=size, max_inflight=inflight).partitions(at, end)
        for each in made:
            assert each["first"] == seen
            assert 0 < each["next"] - seen <= size
            assert end["from_us"] <= each["from_us"] <= each["to_us"] <= end["to_us"]
            seen = each["next"]
        at = end
    assert seen == count


def test_the_rate_paces_and_a_batch_waits_for_max_ms() -> None:
    source = planner(rate=200, max_events=1000, max_ms=100)
    began = time.time()
    end = moved(source, source.initial())
    waited = time.time() - began
    assert waited >= 0.1
    assert 1 <= end["n"] <= 200 * (waited + 0.05)


def test_a_full_batch_does_not_wait() -> None:
    source = planner(rate=1000, max_events=5, max_ms=60_000)
    began = time.time()
    assert moved(source, source.initial())["n"] >= 5
    assert time.time() - began < 5


def test_an_idle_poll_ends_soon_so_that_stopping_need_not_wait() -> None:
    source = planner(rate=0.01)
    began = time.time()
    assert source.latest(source.initial()) is None
    assert time.time() - began < 5


def test_a_finite_source_that_waits_is_not_taken_for_its_end() -> None:
    source = planner(rate=0.01, count=5)
    at = source.initial()
    end = moved(source, at)
    assert end != at
    assert end["n"] == 0
    assert source.partitions(at, end) == []


def test_a_pause_makes_no_burst() -> None:
    source = planner(rate=100, max_events=1000, max_ms=10)
    hours_ago = int((time.time() - 7200) * 1e6)
    end = moved(source, {"n": 500, "from_us": hours_ago, "to_us": hours_ago})
    assert end["n"] < 600
    assert end["from_us"] > hours_ago


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**40), st.integers(1, 5000), st.integers(0, 10**9))
def test_tasks_make_the_events_of_their_batch(spark: SparkSession, first: int, count: int, span: int) -> None:
    from_us = 1_767_225_600_000_000
    TABLES["counted"] = lambda reading: [reading["slice"]]
    made = {"first": first, "next": first + count, "from_us": from_us, "to_us": from_us + span}
    given_ = options(spark, {"kind": "counted", "slice": made})
    events = spark.read.format(FORMAT).options(**given_).schema(EVENTS).load()
    found = events.selectExpr("time", "seq", "unix_micros(time) AS us").collect()
    assert [row.seq for row in found] == list(range(first, first + count))
    assert [row.us for row in found] == [from_us + span * i // count for i in range(count)]


def test_rows_are_made_from_the_template(spark: SparkSession, tmp_path: Path) -> None:
    source = {"type": "generate", "count": 25, "row": {"id": "seq * 2", "who": "concat('c', seq % 3)"}}
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    state = run(spark, pipeline(source=source, sinks=sinks), tmp_path / "ck")
    assert (state.outcome, state.error) == ("completed", None)
    assert json_rows(tmp_path / "out") == [{"id": i * 2, "who": f"c{i % 3}"} for i in range(25)]


@pytest.mark.slow
def test_numbers_go_on_after_a_stop(spark: SparkSession, tmp_path: Path) -> None:
    raw = pipeline(
        source={"type": "generate", "rate": 100},
        sinks=[{"type": "file", "path": str(tmp_path / "out"), "format": "json"}],
    )
    for _ in range(2):
        running = threading.Event()
        kept = keeper(spark, raw, tmp_path / "ck", lambda s, e=running: s.ops.get("batches") and e.set())  # type: ignore[misc]
        kept.start()
        assert running.wait(60)
        time.sleep(1)
        kept.drain()
        kept.join(60)
        assert kept.state.phase == "idle"
    numbers = [row["seq"] for row in json_rows(tmp_path / "out")]
    assert sorted(numbers) == list(range(len(numbers)))
    assert numbers
