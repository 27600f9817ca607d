from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.engine.delivery.commit import policy_met
from tests.flows import flow_of, json_rows, keeper, pipeline, run


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_the_commit_policy(required: list[bool], data: st.DataObject) -> None:
    required[0] = True
    sinks = [{"id": f"s{i}", "type": "drop", "required": r} for i, r in enumerate(required)]
    acknowledged = data.draw(st.sets(st.sampled_from([s["id"] for s in sinks])))
    quorum = data.draw(st.integers(1, len(sinks)))

    def met(**policy: Any) -> bool:
        return policy_met(flow_of(pipeline(sinks=sinks, commit_policy=policy)), acknowledged)

    needed = {s["id"] for s in sinks if s["required"]}
    assert met(mode="all") == (len(acknowledged) == len(sinks))
    assert met(mode="required") == (needed <= acknowledged)
    assert met(mode="quorum", quorum=quorum) == (len(acknowledged) >= quorum)


def test_a_best_effort_sink_that_fails_stalls_nobody(spark: SparkSession, tmp_path: Path) -> None:
    sinks = [
        {"id": "lake", "type": "file", "path": str(tmp_path / "out"), "format": "json"},
        {"id": "mirror", "type": "spark", "format": "nosuch", "required": False},
    ]
    state = run(spark, pipeline(sinks=sinks), tmp_path / "ck")
    assert state.outcome == "completed"
    assert len(json_rows(tmp_path / "out")) == 10
    mirror = state.ops["sinks"]["mirror"]
    # Its failure after the last batch, when it was to catch up, is counted too.
    assert (mirror["events"], mirror["failures"], mirror["missed_batches"]) == (0, 2, 1)
    assert "nosuch" in mirror["last_error"]
    assert state.ops["sinks"]["lake"]["events"] == 10


@pytest.mark.slow
def test_a_required_sink_that_fails_holds_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    blocked = {"id": "blocked", "type": "file", "path": str(tmp_path / "file" / "x"), "format": "json"}
    lake = {"id": "lake", "type": "file", "path": str(out), "format": "json"}
    restart = {"max_attempts": 2, "backoff_ms": 1}
    (tmp_path / "file").write_text("in the way")
    state = run(spark, pipeline(sinks=[lake, blocked], restart=restart), tmp_path / "ck")
    assert state.outcome == "failed"
    assert [a["attempt"] for a in state.attempts] == [1, 2]
    assert state.ops["batches"] == 0
    (tmp_path / "file").unlink()
    state = run(spark, pipeline(sinks=[lake, blocked], restart=restart), tmp_path / "ck")
    assert state.outcome == "completed", state.error
    # The sink that had acknowledged was not given the batch again (invariant 4).
    assert [row["seq"] for row in json_rows(out)] == list(range(10))
    assert len(json_rows(tmp_path / "file" / "x")) == 10


@pytest.mark.slow
def test_a_drain_finishes_the_batch_in_hand_and_begins_no_other(spark: SparkSession, tmp_path: Path) -> None:
    source = {"type": "generate", "rate": 2000}
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    kept = keeper(spark, pipeline(source=source, sinks=sinks), tmp_path / "ck")
    kept.start()
    deadline = time.monotonic() + 60
    while not kept.state.ops.get("batches") and time.monotonic() < deadline:
        time.sleep(0.05)
    kept.drain()
    kept.join(60)
    assert (kept.state.phase, kept.state.outcome, kept.state.error) == ("idle", None, None)
    ops = kept.state.ops
    # What was delivered was committed: nothing is repeated even into a sink that could not tell.
    assert ops["sinks"]["file"]["events"] == ops["input_events"] == len(json_rows(tmp_path / "out"))
