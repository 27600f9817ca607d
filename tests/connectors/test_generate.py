from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.connectors.generate_reader import GenerateReader
from tests.flows import json_rows, keeper, pipeline, run


def reader(**options: Any) -> GenerateReader:
    given_ = {"rate": None, "count": None, "max_events": 10, "max_ms": 0, "max_inflight": 4, **options}
    return GenerateReader({k: json.dumps(v) for k, v in given_.items()})


def rows(source: GenerateReader, start: dict[str, int], end: dict[str, int]) -> list[tuple[int, Any]]:
    return [
        (row["seq"], row["time"])
        for partition in source.partitions(start, end)
        for batch in source.read(partition)
        for row in batch.to_pylist()
    ]


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(1, 30), st.integers(1, 5))
def test_the_numbers_are_dense_and_the_same_when_read_again(count: int, size: int, inflight: int) -> None:
    source = reader(count=count, max_events=size, max_inflight=inflight)
    at, seen = source.initialOffset(), []
    while (end := source.latestOffset(at, source.getDefaultReadLimit())) != at:
        made = rows(source, at, end)
        assert len(source.partitions(at, end)) <= inflight
        assert made == rows(reader(count=count, max_events=size, max_inflight=inflight), at, end)
        seen += made
        at = end
    assert [n for n, _ in seen] == list(range(count))
    assert [t for _, t in seen] == sorted(t for _, t in seen)


def test_the_rate_paces_and_a_batch_waits_for_max_ms() -> None:
    source = reader(rate=200, max_events=1000, max_ms=100)
    at = source.initialOffset()
    began = time.time()
    end = source.latestOffset(at, ReadMaxRows(4000))
    waited = time.time() - began
    assert waited >= 0.1
    assert 1 <= end["n"] <= 200 * (waited + 0.05)


def test_a_full_batch_does_not_wait() -> None:
    source = reader(rate=1000, max_events=5, max_ms=60_000)
    began = time.time()
    end = source.latestOffset(source.initialOffset(), ReadMaxRows(20))
    assert end["n"] >= 5
    assert time.time() - began < 5


def test_an_idle_poll_ends_soon_so_that_stopping_need_not_wait() -> None:
    source = reader(rate=0.01)
    at = source.initialOffset()
    began = time.time()
    assert source.latestOffset(at, ReadAllAvailable()) == at
    assert time.time() - began < 5


def test_a_finite_source_that_waits_is_not_taken_for_its_end() -> None:
    source = reader(rate=0.01, count=5)
    at = source.initialOffset()
    end = source.latestOffset(at, ReadMaxRows(5))
    assert end != at
    assert end["n"] == 0
    assert source.partitions(at, end) == []


def test_a_pause_makes_no_burst() -> None:
    source = reader(rate=100, max_events=1000, max_ms=10)
    hours_ago = int((time.time() - 7200) * 1e6)
    start = {"n": 500, "from_us": hours_ago, "to_us": hours_ago}
    end = source.latestOffset(start, ReadMaxRows(4000))
    assert end["n"] < 600
    assert end["from_us"] > hours_ago


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
