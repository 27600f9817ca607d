"""A stream that is read under a latency goal: limits change, the batches of a planned range do not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.frames.streams.batches import Limits
from penstock.frames.streams.pace import Choice, Pace
from penstock.frames.streams.paced_batches import PacedBatches
from penstock.frames.streams.reader import StreamPlanner, batches_of, pace_of, reading
from penstock.streams.log import Log
from tests.flows import Streams

LIMITS = Limits(1_000, 2**24, 200, True, 100, latency_ms=200)


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


@pytest.fixture
def log(streams: Streams) -> Log:
    return streams.make("in", schema="id BIGINT")


def planner(streams: Streams, **changes: Any) -> StreamPlanner:
    directory, until = streams.place("in").directory, changes.get("until")
    return StreamPlanner(reading(directory, "paced", 1, "earliest", until, "skip", LIMITS, tasks=8))


def append(log: Log, count: int) -> None:
    log.append(pa.record_batch({"id": list(range(count))}))


def choosing(monkeypatch: pytest.MonkeyPatch, choice: Choice, tasks: int = 1) -> None:
    def choose(pace: Pace, waited_s: float) -> Choice:
        return choice

    monkeypatch.setattr(Pace, "choose", choose)
    monkeypatch.setattr(Pace, "tasks", lambda pace, events: tasks)


def test_events_linger_as_long_as_the_pace_says(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = PacedBatches(log, LIMITS, "skip", cores=1)
    choosing(monkeypatch, Choice(3600.0, 5_000))
    append(log, 2_000)
    assert batches.await_end(0, 0.02) == 0, "also when a batch of the document's size is there"
    choosing(monkeypatch, Choice(0.0, 5_000))
    assert batches.await_end(0, 60.0) == 2_000


def test_a_full_micro_batch_does_not_linger(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = PacedBatches(log, LIMITS, "skip", cores=1)
    choosing(monkeypatch, Choice(3600.0, 1_500))
    append(log, 4_000)
    assert batches.await_end(0, 60.0) == 1_500
    assert batches.await_end(1_500, 60.0) == 3_000
    choosing(monkeypatch, Choice(0.0, None))
    assert batches.await_end(3_000, 60.0) == 4_000


def test_a_transaction_is_not_split_by_the_pace(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = PacedBatches(log, LIMITS, "skip", cores=1)
    choosing(monkeypatch, Choice(0.0, 10))
    log.append(pa.record_batch({"id": list(range(25))}), tx=[(5, 15, "t", True)])
    assert batches.await_end(0, 60.0) == 15


def test_the_batches_of_a_range_do_not_depend_on_the_pace(
    log: Log, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    choosing(monkeypatch, Choice(0.0, 2_500))
    append(log, 6_000)
    reader = planner(streams)
    begin = reader.initial()
    end = reader.latest(begin)
    assert end == {"offset": 2_500, "first": 0}
    reader.partitions(begin, end)
    assert batches_of("paced", 0, 2_500) == [0, 1_000, 2_000]
    choosing(monkeypatch, Choice(0.0, 700))
    restarted = planner(streams)
    restarted.partitions(restarted.initial(), end)
    assert batches_of("paced", 0, 2_500) == [0, 1_000, 2_000]


def test_batches_that_share_the_work_are_the_same_after_a_restart(
    log: Log, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    choosing(monkeypatch, Choice(0.0, 2_500), tasks=4)
    append(log, 600)
    reader = planner(streams)
    begin = reader.initial()
    end = reader.latest(begin)
    assert end == {"offset": 600, "first": 0, "size": 150}
    assert len(reader.partitions(begin, end)) == 4
    assert batches_of("paced", 0, 600) == [0, 150, 300, 450]
    choosing(monkeypatch, Choice(0.0, None), tasks=1)
    restarted = planner(streams)
    assert len(restarted.partitions(restarted.initial(), end)) == 4
    assert batches_of("paced", 0, 600) == [0, 150, 300, 450]


def test_a_micro_batch_ends_when_the_planner_is_asked_again(log: Log, streams: Streams) -> None:
    append(log, 100)
    reader = planner(streams)
    pace = pace_of("paced")
    assert pace is not None
    end = reader.latest(reader.initial())
    assert end is not None
    under_way = pace.under_way
    assert under_way is not None
    assert (under_way.events, under_way.planned_at >= under_way.oldest_at) == (100, True)
    append(log, 100)
    end = reader.latest(end)
    assert end is not None
    assert pace.costs.count == 0, "the first one is too slow to count"
    time.sleep(0.05)
    reader.latest(end)
    assert (pace.under_way, pace.costs.count) == (None, 1)
    assert pace.costs.fixed >= 0.05


def test_a_reader_with_an_end_has_no_pace(log: Log, streams: Streams) -> None:
    append(log, 5_000)
    reader = planner(streams, until="latest")
    end = reader.latest(reader.initial())
    assert end is not None
    assert (end["offset"], reader.pace) == (5_000, None)
