from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.frames.streams import reader as stream_reader
from penstock.frames.streams.batches import Limits
from penstock.frames.streams.reader import StreamPlanner, reading
from tests.flows import Streams


def reader_of(streams: Streams, limits: Limits) -> StreamPlanner:
    directory = streams.place("in").directory
    return StreamPlanner(reading(directory, "reader", 1, "earliest", None, "skip", limits, tasks=4))


def test_the_first_answer_of_a_reader_does_not_wait_for_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT")
    limits = Limits(10, 2**20, 50, False, 1)
    reader = reader_of(streams, limits)
    monkeypatch.setattr(stream_reader, "PATIENCE_S", 60.0)
    began = time.monotonic()
    begin = reader.initial()
    assert reader.latest(begin) is None
    assert time.monotonic() - began < 30


def test_the_first_batch_is_the_same_when_its_commit_is_lost_and_the_cursor_is_not(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.make("in", schema="id BIGINT").append(pa.record_batch({"id": list(range(8))}))
    reader = reader_of(streams, Limits(10, 2**20, 0, False, 1))
    end = reader.latest(reader.initial())
    assert end is not None
    reader.commit(end)
    restarted = reader_of(streams, Limits(10, 2**20, 0, False, 1))
    begin = restarted.initial()
    assert begin["offset"] == 8
    assert end is not None
    (task,) = restarted.partitions(begin, end)
    assert [(piece["first"], piece["next"]) for piece in task["pieces"]] == [(0, 8)]
    streams.make("in", schema="id BIGINT").append(pa.record_batch({"id": list(range(2))}))
    then = restarted.latest(end)
    assert then is not None
    (task,) = restarted.partitions(end, then)
    assert [(piece["first"], piece["next"]) for piece in task["pieces"]] == [(8, 10)]


def test_a_transaction_without_an_end_is_in_the_offset_and_counted_once(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log = streams.make("in", schema="id BIGINT")
    log.append(pa.record_batch({"id": [1, 2]}), tx=[(0, 1, "a", False), (1, 2, "b", False)])
    limits = Limits(10, 2**20, 0, True, 1, max_tx_ms=0)
    reader = reader_of(streams, limits)
    end = reader.latest(reader.initial())
    assert end == {"offset": 2, "first": 0, "unended": {"count": 2, "id": "a", "first": 0}}
    assert log.storage.counts()["unended_transactions"] == 0, "it is counted once it is processed"
    for each in (reader, reader_of(streams, limits)):
        each.commit(end)
        each.latest(end)
    assert log.storage.counts()["unended_transactions"] == 2
