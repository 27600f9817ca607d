"""Batches as sinks see them: thresholds, transactions, several at once, and the order of a key."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.streams.log import Log
from penstock.testing.faulty_sink import deliveries
from tests.engine.faults import SCHEMA, Faulty, numbers, wait_for
from tests.flows import Streams, keeper, pipeline, running
from tests.java import quick_environment

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
GENEROUS = {"max_events": 1_000_000, "max_bytes": 2**40, "max_ms": HOUR_MS, "max_inflight": 1}


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


def reading(root: Path, streams: Streams, **batch: Any) -> Faulty:
    source = {"type": "stream", "stream": "in"}
    return Faulty(root, {"lake": {}}, streams.site(), {"source": source, "batch": {**GENEROUS, **batch}})


def sizes(flow: Faulty) -> list[int]:
    return [len(rows) for _, rows in deliveries(flow.root / "lake")]


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [({"max_events": 25}, [25, 25, 25, 25]), ({"max_bytes": 400}, [50, 50]), ({"max_ms": 500}, [100])],
    ids=["max_events", "max_bytes", "max_ms"],
)
def test_each_threshold_alone_makes_a_batch(
    spark: SparkSession, streams: Streams, tmp_path: Path, threshold: dict[str, int], expected: list[int]
) -> None:
    log = streams.make("in", schema=SCHEMA)
    flow = reading(tmp_path, streams, **threshold)
    with running(flow.keeper(spark)):
        log.append(numbers(0, 100))
        wait_for("batches", lambda: sum(sizes(flow)) == 100)
    assert sizes(flow) == expected


def test_an_event_that_comes_alone_waits_for_max_ms_and_no_longer(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    flow = reading(tmp_path, streams, max_ms=2000)
    with running(flow.keeper(spark)):
        for i in range(2):
            began = time.monotonic()
            log.append(numbers(i, 1))
            wait_for("the event", lambda i=i: len(flow.ids("lake")) == i + 1)  # type: ignore[misc]
            assert time.monotonic() - began > 1.9
    assert sizes(flow) == [1, 1]


def test_a_transaction_of_ten_thousand_events_stays_whole(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    log.append(numbers(0, 130))
    for i in range(4):
        log.append(numbers(130 + i * 2500, 2500), tx=[(0, 2500, "big", i == 3)])
    log.append(numbers(10_130, 70))
    flow = reading(tmp_path, streams, max_events=100, max_ms=10)
    with running(flow.keeper(spark)):
        wait_for("all", lambda: sum(sizes(flow)) == 10_200)
    assert sizes(flow) == [100, 10_030, 70]


def test_a_transaction_that_is_too_large_fails_the_pipeline(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    log.append(numbers(0, 1000), tx=[(0, 1000, "big", True)])
    kept = reading(tmp_path, streams, max_events=100, max_tx_bytes=4000).keeper(spark)
    kept.start()
    kept.join(180)
    assert kept.state.error is not None
    assert (kept.state.outcome, kept.state.error["code"]) == ("failed", "transaction_too_large")
    assert "max_tx_bytes" in kept.state.error["message"]


def test_events_of_one_key_keep_their_order_into_a_sink(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    schema = "customer BIGINT, seq BIGINT"
    source, target = streams.make("in", schema=schema), streams.make("out", schema=schema)
    for i in range(40):
        rows = range(i * 100, i * 100 + 100)
        source.append(pa.record_batch({"customer": [n % 7 for n in rows], "seq": list(rows)}))
    raw = pipeline(
        source={"type": "stream", "stream": "in"},
        processors=[{"type": "filter", "where": "seq % 3 > 0"}],
        sinks=[{"type": "stream", "stream": "out"}],
        batch={"max_events": 100, "max_inflight": 8, "max_ms": 10},
    )
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())):
        wait_for("all", lambda: target.bounds().next == sum(n % 3 > 0 for n in range(4000)))
    for customer in range(7):
        seen = [seq for who, seq in pairs(target) if who == customer]
        assert seen == sorted(seen)


def pairs(log: Log) -> list[tuple[int, int]]:
    chunks = [chunk.batch for chunk in log.read(0) if chunk.batch is not None]
    return [(row["customer"], row["seq"]) for batch in chunks for row in batch.to_pylist()]


def test_three_batches_are_really_processed_at_once(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root), **quick_environment()}
    command = [sys.executable, "-m", "tests.engine.at_once", str(tmp_path)]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    # Each batch has waited until two others were there.
    assert sorted(done.stdout.split()) == ["0-10", "10-20", "20-30"]
