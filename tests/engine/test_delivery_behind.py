"""Sinks that fall behind and catch up, while the others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.control.fleet.lifecycle import Keeper
from penstock.specs.policies import CommitPolicy
from tests.engine.faults import SCHEMA, Faulty, from_stream, numbers, wait_for
from tests.flows import Streams, running

pytestmark = pytest.mark.slow

BEST_EFFORT = {"required": False, "retries": 0, "backoff_ms": 50}


def sink_states(kept: Keeper) -> dict[str, str]:
    return {sink: counts["state"] for sink, counts in kept.state.ops.get("sinks", {}).items()}


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


def test_a_sink_that_fails_is_caught_up_from_the_stream(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": {**BEST_EFFORT, "backoff_ms": 600_000}})
    kept = flow.keeper(spark, mirror=["ok", "fail"])
    log.append(numbers(0, 10))
    with running(kept):
        wait_for("first batch", lambda: flow.batches("mirror") == [0])
        log.append(numbers(10, 40))
        wait_for("the others", lambda: len(flow.ids("lake")) == 50)
        wait_for("gaps", lambda: sum(gap.batches for gap in flow.standing("mirror").gaps) == 4)
        behind = flow.standing("mirror")
        wait_for("a report", lambda: sink_states(kept) == {"lake": "in_sync", "mirror": "behind"})
        assert kept.catch_up("mirror")
        wait_for("catching up", lambda: len(flow.ids("mirror")) == 50)
        wait_for("rest", lambda: flow.standing("mirror").state == "in_sync")
        log.append(numbers(50, 10))
        wait_for("the next batch", lambda: len(flow.ids("mirror")) == 60)
    assert not kept.catch_up("mirror"), "nothing runs any more"
    assert (behind.state, behind.cursor) == ("behind", 10)
    assert behind.last_error == "spec.sinks[1]: sink 'mirror': attempt 1 fails"
    assert [(gap.first, gap.next, gap.batches, gap.kept) for gap in behind.gaps] == [(10, 50, 4, "stream")]
    assert flow.ids("mirror") == flow.ids("lake") == list(range(60)), "in order, and each once"
    assert flow.batches("mirror") == flow.batches("lake") == list(range(6))
    assert (flow.standing("mirror").cursor, flow.standing("mirror").gaps) == (60, ())
    mirror = kept.state.ops["sinks"]["mirror"]
    assert (mirror["state"], mirror["events"], mirror["failures"]) == ("in_sync", 60, 1)
    assert mirror["missed_batches"] >= 4  # on a busy machine also one for which it was merely slow


def test_a_write_that_still_runs_when_the_batch_goes_on_is_not_disturbed(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    log.append(numbers(0, 10))
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": BEST_EFFORT})
    with running(flow.keeper(spark, mirror=["ok", "hang:6"])):
        wait_for("first batch", lambda: flow.batches("mirror") == [0])
        log.append(numbers(10, 30))
        wait_for("the others", lambda: len(flow.ids("lake")) == 40)
        assert flow.ids("mirror") == list(range(10)), "it hangs, and nobody waits for it"
        wait_for("catching up", lambda: len(flow.ids("mirror")) == 40)
    assert flow.ids("mirror") == list(range(40))
    assert flow.attempts("mirror") == len(flow.batches("mirror")), "what was under way has counted"


def test_what_was_missed_survives_a_restart(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    log = streams.make("in", schema=SCHEMA)
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": BEST_EFFORT})
    log.append(numbers(0, 30))
    with running(flow.keeper(spark, mirror=["fail"] * 100_000)):
        wait_for("the others", lambda: len(flow.ids("lake")) == 30)
        wait_for("a gap", lambda: sum(gap.batches for gap in flow.standing("mirror").gaps) == 3)
    assert flow.standing("mirror").state == "behind"
    with running(kept := flow.keeper(spark)):
        wait_for("catching up", lambda: len(flow.ids("mirror")) == 30)
    assert sink_states(kept) == {"lake": "in_sync", "mirror": "in_sync"}
    assert flow.ids("mirror") == list(range(30))
    assert flow.attempts("lake") == 3


def test_without_a_stream_the_batch_itself_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    flow = Faulty(tmp_path, {"lake": {}, "mirror": BEST_EFFORT})
    kept = flow.keeper(spark, mirror=["fail", "fail", "fail"])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    standing = flow.standing("mirror")
    assert [(gap.kept, gap.batches, gap.events) for gap in standing.gaps] == [("file", 1, 10)]
    assert len(list((tmp_path / "state" / "behind").glob("*/*.arrow"))) == 1
    again = flow.keeper(spark)
    again.start()
    again.join(180)
    assert again.state.outcome == "completed"
    assert sorted(flow.ids("mirror")) == list(range(10))
    assert flow.standing("mirror").gaps == ()
    assert not list((tmp_path / "state" / "behind").glob("*/*"))


def test_what_finds_no_room_is_lost_and_said_to_be(spark: SparkSession, tmp_path: Path) -> None:
    flow = Faulty(tmp_path, {"lake": {}, "mirror": BEST_EFFORT})
    flow.site = replace(flow.site, behind_bytes=10)
    kept = flow.keeper(spark, mirror=["fail"])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    (gap,) = flow.standing("mirror").gaps
    assert (gap.kept, gap.batches, gap.events) == ("lost", 1, 10)
    assert "storage for missed batches is full" in (gap.why or "")


def test_what_the_stream_has_lost_meanwhile_is_said(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA, wal={"max_segments": 2, "segment_bytes": 2000})
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": BEST_EFFORT})
    log.append(numbers(0, 10))
    with running(flow.keeper(spark, mirror=["ok", *["fail"] * 100_000])):
        wait_for("first batch", lambda: flow.batches("lake") == [0])
        log.append(numbers(10, 10))
        wait_for("the others", lambda: len(flow.ids("lake")) == 20)
        wait_for("a gap", lambda: flow.standing("mirror").gaps)
    for i in range(100):
        log.append(numbers(1000 + i, 1))
    assert log.bounds().first >= 20
    with running(flow.keeper(spark)):
        wait_for("the rest", lambda: flow.ids("mirror")[-1] == 1099)
    (gap,) = flow.standing("mirror").gaps
    assert (gap.first, gap.next, gap.kept, gap.events) == (10, 20, "lost", 10)


def test_a_quorum_does_not_wait_for_the_slowest(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    sinks = {name: {"retries": 0, "backoff_ms": 1} for name in ("a", "b", "c")}
    flow = from_stream(tmp_path, streams, sinks, commit_policy={"mode": "quorum", "quorum": 2})
    log.append(numbers(0, 40))
    with running(flow.keeper(spark, a=["fail"], c=["ok", "fail", "fail"])) as kept:
        for name in sinks:
            wait_for(name, lambda name=name: len(flow.ids(name)) == 40)  # type: ignore[misc]
        assert kept.state.attempts == []
    for name in sinks:
        assert flow.ids(name) == list(range(40))


def test_a_batch_waits_for_a_sink_that_has_to_catch_up_first(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": {**BEST_EFFORT, "backoff_ms": 500}})
    log.append(numbers(0, 20))
    with running(flow.keeper(spark, mirror=["fail"] * 100_000)):
        wait_for("a gap", lambda: sum(gap.batches for gap in flow.standing("mirror").gaps) == 2)
    log.append(numbers(20, 10))
    flow.spec = {**(flow.spec or {}), "commit_policy": CommitPolicy(mode="all").model_dump()}
    with running(flow.keeper(spark, mirror=["fail"] * (flow.attempts("mirror") + 1))) as kept:
        wait_for("all", lambda: len(flow.ids("mirror")) == 30)
        wait_for("the lake", lambda: len(flow.ids("lake")) == 30)
        assert kept.state.attempts == []
    assert flow.ids("mirror") == list(range(30))


def test_a_retry_goes_only_to_sinks_that_have_not_acknowledged(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    log.append(numbers(0, 10))
    spec = {"restart": {"backoff_ms": 1}}
    flow = from_stream(tmp_path, streams, {"lake": {}, "other": {"retries": 0}}, **spec)
    with running(flow.keeper(spark, other=["fail", "fail"])) as kept:
        wait_for("the other", lambda: flow.ids("other"))
    assert [a["message"] for a in kept.state.attempts] == [
        "sink 'other': attempt 0 fails",
        "sink 'other': attempt 1 fails",
    ]
    assert {a["path"] for a in kept.state.attempts} == {"spec.sinks[1]"}
    assert flow.attempts("lake") == 1  # invariant 4, even though this sink could not tell a repetition


def test_events_that_a_sink_refuses_go_to_the_dead_letters(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    dead = streams.make("test.dead")
    log.append(numbers(0, 20))
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": BEST_EFFORT})
    with running(flow.keeper(spark, lake=["reject"], mirror=["fail", "reject"])) as kept:
        wait_for("the lake", lambda: len(flow.ids("lake")) == 19)
        wait_for("the mirror", lambda: len(flow.ids("mirror")) == 19)
        wait_for("letters", lambda: dead.bounds().next == 2)
    assert flow.ids("lake") == flow.ids("mirror") == list(range(1, 20))
    assert kept.state.ops["sinks"]["lake"]["rejected"] == 1
