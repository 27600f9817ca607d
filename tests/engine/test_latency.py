"""How old events are when they have been delivered."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.runtime.counters import Counters
from penstock.frames.streams.cursors import oldest_age_ms
from tests.engine.test_streams import wait_for
from tests.flows import Streams, keeper, pipeline, running


def test_the_oldest_event_between_two_offsets(tmp_path: Path) -> None:
    log = Streams(tmp_path).make("in", schema="id BIGINT")
    log.append(pa.record_batch({"id": [1, 2]}))
    time.sleep(0.05)
    log.append(pa.record_batch({"id": [3]}))
    first, second = oldest_age_ms(log, 1, 3), oldest_age_ms(log, 2, 3)
    assert first is not None
    assert second is not None
    assert first > second >= 0
    assert oldest_age_ms(log, 3, 4) is None


@pytest.mark.parametrize(("age", "latency"), [({}, 40), ({7: 1500.0}, 1500.0), ({7: None}, None)])
def test_a_source_that_tells_no_time_has_the_duration_of_the_batch(
    age: dict[int, float | None], latency: float | None
) -> None:
    counters = Counters({})
    for batch, ms in age.items():
        counters.aged(batch, ms)
    durations = {"addBatch": 30, "triggerExecution": 40}
    progress = {"batchId": 7, "timestamp": "2026-01-01T00:00:00.000Z", "numInputRows": 3}
    counters.progressed({**progress, "durationMs": durations})
    assert counters.snapshot()["last_batch"]["latency_ms"] == latency


def test_a_flow_tells_how_long_its_events_took(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log = streams.make("in", schema="id BIGINT")
    log.append(pa.record_batch({"id": [1]}))
    raw = pipeline(source={"type": "stream", "stream": "in"}, sinks=[{"type": "drop"}], batch={"max_ms": 10})
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
        wait_for("batch", lambda: kept.state.ops.get("batches") == 1)
        began = time.time()
        log.append(pa.record_batch({"id": [2]}))
        wait_for("another", lambda: kept.state.ops.get("batches") == 2)
        passed = (time.time() - began) * 1000
    assert 0 < kept.state.ops["last_batch"]["latency_ms"] <= passed
