from __future__ import annotations

import multiprocessing
import os
import struct
import time
from pathlib import Path

import pytest

from penstock.processors.support.rates import OwnBucket, SharedBucket
from penstock.processors.throttle import ThrottleProcessor
from tests.processors.arrow_kit import batch_of, opened, run, stage

EVENTS = batch_of("id INT", [{"id": i} for i in range(20)])


def pass_some(file: Path, events: int) -> None:
    for _ in range(events):
        SharedBucket(file, 100, 1).wait(1)


def test_tasks_keep_a_rate_together(tmp_path: Path) -> None:
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    tasks = [context.Process(target=pass_some, args=(tmp_path / "rate", 30)) for _ in range(2)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert [task.exitcode for task in tasks] == [0, 0]
    assert time.monotonic() - began >= 59 / 100  # alone, each would have taken half of it


def test_events_wait(tmp_path: Path) -> None:
    step = opened(ThrottleProcessor(rate=100), EVENTS, stage(state=tmp_path))
    began = time.monotonic()
    assert step(EVENTS).offsets == list(range(20))
    assert time.monotonic() - began >= 0.19


def test_what_is_too_much_is_dropped(tmp_path: Path) -> None:
    work = opened(ThrottleProcessor(rate=0.001, burst=7, mode="drop"), EVENTS, stage(state=tmp_path))
    assert work(EVENTS).offsets == list(range(7))
    assert work(EVENTS).offsets == []
    other = opened(ThrottleProcessor(rate=0.001, burst=7, mode="drop"), EVENTS, stage(state=tmp_path))
    assert other(EVENTS).offsets == []  # another task of the same flow


def test_a_second_passes_at_once_where_drops_are_the_rule() -> None:
    assert len(run(ThrottleProcessor(rate=12.5, mode="drop"), EVENTS).rows) == 13


def test_a_test_run_waits_for_nothing(tmp_path: Path) -> None:
    at = stage(testing=True, state=tmp_path)
    assert len(run(ThrottleProcessor(rate=0.001), EVENTS, at).rows) == 20
    assert not os.listdir(tmp_path)


def test_a_pause_is_worth_no_more_than_the_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    limit = OwnBucket(10, 5)
    assert limit.take(100) == 5
    assert limit.take(100) == 0
    now += 0.25
    assert limit.take(100) == 2
    now += 1000
    assert limit.take(100) == 5


@pytest.mark.parametrize("content", [b"", b"abc", struct.pack("<d", 1e18), struct.pack("<d", float("nan"))])
def test_a_clock_that_was_set_back_and_a_broken_file_stop_nobody(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "rate"
    file.write_bytes(content)
    assert SharedBucket(file, 10, 3).take(100) == 3
