"""Attempts, deadlines and backoff of one sink."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.delivery.attempts import Attempts, backoff_s
from penstock.errors import Backpressure, Retryable
from penstock.frames.faults import Fault
from penstock.specs.policies import Effort
from tests.engine.faults import SCHEMA, Faulty, from_stream, numbers, wait_for
from tests.flows import NO_STREAMS, Streams, running

QUICK = {"backoff_ms": 1}


def tried(effort: Effort, outcomes: list[Exception | None]) -> tuple[int, list[float]]:
    """How many attempts were made of these, and the waits in between."""
    waits: list[float] = []
    left = list(outcomes)

    def once() -> None:
        if (error := left.pop(0)) is not None:
            raise error

    def pause(seconds: float) -> bool:
        waits.append(seconds)
        return False

    with contextlib.suppress(Exception):
        Attempts(effort, pause).run(once)
    return len(outcomes) - len(left), waits


def test_attempts_end_with_success_or_with_the_last_retry() -> None:
    fail = Retryable("no")
    assert tried(Effort(retries=3), [fail, fail, None, None])[0] == 3
    assert tried(Effort(retries=1), [fail, fail, None])[0] == 2
    assert tried(Effort(retries=0), [fail, None])[0] == 1


def test_what_is_hopeless_is_not_tried_again() -> None:
    assert tried(Effort(), [Fault("bad", "no"), None])[0] == 1


def test_waits_double_with_some_chance() -> None:
    fail = Retryable("no")
    _, waits = tried(Effort(retries=3, backoff_ms=100), [fail, fail, fail, None])
    for wait, expected in zip(waits, (0.1, 0.2, 0.4), strict=True):
        assert 0.75 * expected <= wait <= 1.25 * expected
    assert backoff_s(Effort(), 1000) <= 75


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    fail = Retryable("no")
    assert tried(Effort(deadline_ms=50, backoff_ms=100), [fail, None]) == (1, [])


def test_a_sink_that_asks_to_wait_is_given_its_time() -> None:
    busy = Backpressure("later", 0.7)
    assert tried(Effort(retries=0, deadline_ms=1), [busy, busy, None]) == (3, [0.7, 0.7])


def test_a_sink_is_tried_again_within_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    flow = Faulty(tmp_path, {"lake": QUICK})
    kept = flow.keeper(spark, lake=["fail", "busy:0.1", "lose", "ok"])
    kept.start()
    kept.join(180)
    assert (kept.state.outcome, kept.state.attempts) == ("completed", [])
    assert flow.batches("lake") == [0, 0], "the lost answer made it come twice"
    sink = kept.state.ops["sinks"]["lake"]
    assert (sink["events"], sink["batches"], sink["failures"]) == (10, 1, 2)
    assert flow.standing("lake").failures == 2
    assert flow.standing("lake").last_error == "spec.sinks[0]: sink 'lake': the answer to attempt 2 is lost"
    assert flow.standing("lake").state == "in_sync", "it has taken the batch since"


def test_a_sink_that_gives_up_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    flow = Faulty(tmp_path, {"lake": {"retries": 1, **QUICK}}, spec={"restart": {"backoff_ms": 1}})
    kept = flow.keeper(spark, lake=["fail", "fail", "fatal"])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "failed"
    assert [(a["path"], a["message"]) for a in kept.state.attempts] == [
        ("spec.sinks[0]", "sink 'lake': attempt 1 fails"),
        ("spec.sinks[0]", "sink 'lake': attempt 2 is hopeless"),
    ]
    assert (flow.standing("lake").state, flow.standing("lake").failures) == ("failing", 3)


@pytest.mark.parametrize("word", ["slow:600", "hang:8"])
def test_a_deadline_ends_what_takes_too_long(spark: SparkSession, tmp_path: Path, word: str) -> None:
    flow = Faulty(tmp_path, {"lake": {"deadline_ms": 300}}, spec={"restart": {"backoff_ms": 1}})
    kept = flow.keeper(spark, lake=[word])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    messages = {a["message"] for a in kept.state.attempts}  # more than one on a busy machine
    assert messages == {"sink 'lake': no acknowledgement within 300 ms"}
    assert flow.standing("lake").state == "in_sync"
    assert flow.ids("lake") == list(range(10))


SLOW = "import time\ndef process(table):\n    time.sleep(2)\n    return table\n"


@pytest.mark.slow
def test_a_slow_step_does_not_count_against_the_deadline(spark: SparkSession, tmp_path: Path) -> None:
    """One task takes longer than the deadline, on each attempt; tasks that wait for the outside are ended."""
    site = replace(NO_STREAMS, allow_python=True)
    effort = {"deadline_ms": 1000, "retries": 0}
    flow = Faulty(
        tmp_path,
        {"lake": effort},
        site,
        {"processors": [{"type": "python", "inline": SLOW}], "restart": {"backoff_ms": 1}},
    )
    kept = flow.keeper(spark, lake=["stall:600"])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    messages = [a["message"] for a in kept.state.attempts]
    assert messages == ["sink 'lake': no acknowledgement within 1000 ms"]
    assert flow.ids("lake") == list(range(10))
    assert kept.state.ops["sinks"]["lake"]["failures"] == 1


@pytest.mark.slow
def test_what_was_missed_may_take_long_to_compute(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log = streams.make("in", schema=SCHEMA)
    effort = {"deadline_ms": 1000, "retries": 0, "backoff_ms": 1}
    steps = [{"type": "python", "inline": SLOW}]
    sinks = {"lake": effort, "mirror": {**effort, "required": False}}
    flow = from_stream(tmp_path, streams, sinks, processors=steps)
    flow.site = replace(flow.site, allow_python=True)
    log.append(numbers(0, 20))
    with running(flow.keeper(spark, mirror=["fail"] * 4)) as kept:
        wait_for("the lake", lambda: len(flow.ids("lake")) == 20)
        wait_for("the mirror", lambda: len(flow.ids("mirror")) == 20)
        wait_for("rest", lambda: flow.standing("mirror").state == "in_sync")
    assert flow.ids("lake") == flow.ids("mirror") == list(range(20))
    assert kept.state.attempts == []


@pytest.mark.slow
def test_a_deadline_of_one_sink_does_not_end_the_jobs_of_another(spark: SparkSession, tmp_path: Path) -> None:
    flow = Faulty(tmp_path, {"lake": {}, "mirror": {"required": False, "deadline_ms": 1000, "retries": 0}})
    kept = flow.keeper(spark, lake=["stall:6"], mirror=["stall:600"])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    sinks = kept.state.ops["sinks"]
    assert (sinks["lake"]["failures"], sinks["mirror"]["failures"]) == (0, 1)
    assert flow.attempts("lake") == 1
    assert flow.ids("lake") == flow.ids("mirror") == list(range(10))
