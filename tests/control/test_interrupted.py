"""Flows that are asked to end while they drain, or while their sinks catch up after the last batch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.faults import Faulty, from_stream, numbers, wait_for
from tests.flows import Streams

pytestmark = pytest.mark.slow


def test_a_flow_that_drains_delivers_nothing_after_its_lease_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT").append(numbers(0, 10))
    flow = from_stream(tmp_path, streams, {"lake": {"retries": 0}})
    kept = flow.keeper(spark, lake=["slow:25"])
    kept.start()
    wait_for("a batch under way", lambda: flow.attempts("lake") == 1)
    kept.drain()
    wait_for("draining", lambda: kept.state.phase == "draining")
    kept.abort()
    kept.join(15)
    assert kept.ended, "it does not wait for the batch"
    time.sleep(0.5)
    assert (flow.batches("lake"), kept.state.outcome) == ([], None)


def test_a_flow_that_has_read_all_can_be_paused_while_a_sink_catches_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = Faulty(tmp_path, {"lake": {}, "mirror": {"required": False, "retries": 0, "backoff_ms": 1}})
    kept = flow.keeper(spark, mirror=["fail", "slow:60"])
    kept.start()
    wait_for("the mirror to catch up", lambda: flow.attempts("mirror") == 2)
    wait_for("the end of the input", lambda: kept._finishing)
    kept.drain()
    kept.join(15)
    assert kept.ended, "it does not wait for the sink"
    assert (kept.state.outcome, flow.ids("mirror")) == (None, [])
    again = flow.keeper(spark)
    again.start()
    again.join(120)
    assert again.state.outcome == "completed"
    assert (flow.ids("lake"), flow.ids("mirror")) == (list(range(10)), list(range(10)))
