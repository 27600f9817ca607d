"""The log of a flow, written and read."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from penstock.engine.runtime import flow_log as module
from penstock.engine.runtime.flow_log import NO_LOG, FlowLog
from penstock.engine.runtime.flow_log_reader import FILE, OLDER, LogReader


@pytest.fixture
def log(tmp_path: Path) -> FlowLog:
    made = FlowLog("pipeline:orders", tmp_path / "state")
    made.begin()
    return made


def texts(reader: LogReader) -> list[str]:
    return [line.message for line in reader.look()]


def test_what_is_written_is_read_once_and_in_order(log: FlowLog, tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "state")
    assert reader.look() == []
    log.info("started", revision=3, nothing=None)
    log.warning("delivery failed: no route", sink="lake", batch=7)
    log.said("tag", "a line\nof two")
    started, failed, said = reader.look()
    assert (started.level, started.fields, started.step) == ("info", {"revision": 3}, None)
    assert (failed.level, failed.sink, failed.fields) == ("warning", "lake", {"batch": 7})
    assert (said.step, said.message) == ("tag", "a line\nof two")
    assert started.at <= failed.at <= said.at
    log.error("failed: \ud800", code="x" * 5000)
    (last,) = reader.look()
    assert (last.message, len(last.fields["code"])) == ("failed: ?", module.LONGEST)
    assert reader.look() == []
    assert texts(LogReader(tmp_path / "state", "warning")) == ["delivery failed: no route", "failed: ?"]


def test_it_is_bounded_and_nobody_who_follows_misses_a_line(
    log: FlowLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    monkeypatch.setattr(module, "MOST_A_SECOND", 10_000)
    reader, seen = LogReader(tmp_path / "state"), []
    for number in range(200):
        log.info(str(number))
        if number % 7 == 0:
            seen += texts(reader)
    seen += texts(reader)
    assert seen == [str(number) for number in range(200)]
    kept = texts(LogReader(tmp_path / "state"))
    assert kept == seen[-len(kept) :]
    assert 15 < len(kept) < 60
    assert {path.name for path in (tmp_path / "state").iterdir()} <= {FILE, OLDER}


def test_a_flood_is_counted_and_does_not_hide_what_fails(log: FlowLog, tmp_path: Path) -> None:
    floods = [threading.Thread(target=lambda: [log.said("tag", "x") for _ in range(500)]) for _ in range(4)]
    for thread in floods:
        thread.start()
    for thread in floods:
        thread.join()
    log.error("failed: it matters")
    reader, lines = LogReader(tmp_path / "state"), []
    deadline = time.monotonic() + 30
    while not any("left_out" in line.fields for line in lines):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        lines += reader.look()
    assert "failed: it matters" in [line.message for line in lines]
    said = sum(line.message == "x" for line in lines)
    assert said + sum(line.fields.get("left_out", 0) for line in lines) == 2000


def test_a_torn_line_is_passed_over(log: FlowLog, tmp_path: Path) -> None:
    log.info("one")
    path = tmp_path / "state" / FILE
    with path.open("ab") as file:
        file.write(b'{"at": "20')
    reader = LogReader(tmp_path / "state")
    assert texts(reader) == ["one"]
    with path.open("ab") as file:
        file.write(b"\n")
    log.info("two")
    assert texts(reader) == ["two"]


def test_what_comes_after_the_end_brings_nothing_back(log: FlowLog, tmp_path: Path) -> None:
    log.info("one")
    reader = LogReader(tmp_path / "state")
    assert not reader.gone
    assert texts(reader) == ["one"]
    (tmp_path / "state" / FILE).unlink()
    (tmp_path / "state").rmdir()
    log.info("two")
    assert not (tmp_path / "state").exists()
    assert reader.gone
    assert reader.look() == []


def test_a_disk_that_refuses_does_not_matter(log: FlowLog, tmp_path: Path) -> None:
    (tmp_path / "state" / FILE).mkdir()
    log.error("nobody will read this")
    NO_LOG.info("nor this")
