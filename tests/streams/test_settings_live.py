"""Every setting of a stream is honoured, and can be changed while the stream is open."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import Backpressure
from penstock.specs.stream import StreamBuffer, Wal, WalBatch
from penstock.streams import clock
from penstock.streams.committer import Dropped
from penstock.streams.events import conform, payload_schema
from penstock.streams.files import Files
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.storage import Appended, Cursor
from tests.streams.kit import change, events, make_stream, values

ONE_SEGMENT = {"segment_bytes": 1, "max_segments": 1, "on_full": "block"}
"""A stream that is full after one append, until that is read."""


class Counting(Files):
    """Counts the syncs of files."""

    syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


class Stream:
    """A stream that two processes have open."""

    def __init__(self, directory: Path, memory: Path) -> None:
        self.directory, self.memory, self.files = directory, memory, Counting()
        self.logs: list[Log] = []
        self.number = 0

    def make(self, **spec: Any) -> Stream:
        make_stream(self.directory, memory=self.memory, **spec)
        self.logs = [Log(LocalStorage(self.directory, self.files)) for _ in range(2)]
        return self

    def append(self, times: int = 1, **options: Any) -> None:
        """Append through both, one event each time."""
        for _ in range(times):
            for log in self.logs:
                log.append(events(1, first=self.number), **options)
                self.number += 1

    def change(self, **settings: Any) -> None:
        change(self.directory, **settings)

    @property
    def segments(self) -> int:
        return self.logs[0].storage.usage().segments

    def check(self, first: int = 0) -> None:
        """Everything is there, from an offset on."""
        for log in self.logs:
            assert log.bounds().first == first
            assert values(log) == [b"e%d" % number for number in range(first, self.number)]


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    made = Stream(tmp_path / "s", tmp_path / "memory")
    yield made
    for log in made.logs:
        log.close()


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    now = 1_700_000_000_000_000

    def step(ms: int) -> None:
        nonlocal now
        now += ms * 1000

    monkeypatch.setattr(clock, "now_us", lambda: now)
    return step


def test_no_setting_is_forgotten_here() -> None:
    """Whoever adds a setting adds a test of it to this module."""
    assert set(Wal.model_fields) == {
        "enabled",
        "retention_ms",
        "retention_bytes",
        "max_segments",
        "segment_bytes",
        "segment_ms",
        "compression",
        "sync",
        "on_full",
        "batch",
    }
    assert set(WalBatch.model_fields) == {"max_events", "max_bytes", "max_ms"}
    assert set(StreamBuffer.model_fields) == {
        *("max_events", "max_bytes", "max_unread", "mode", "timeout_ms", "spill")
    }


def test_enabled(stream: Stream) -> None:
    stream.make().append(3)
    assert not list(stream.memory.glob("*.log"))
    stream.change(wal={"enabled": False})
    stream.append(3)
    assert list(stream.memory.glob("*.log"))
    stream.check()
    stream.change(wal={"enabled": True})
    stream.append(3)
    stream.check()


def test_what_was_transient_is_durable_once_the_stream_is(stream: Stream) -> None:
    """A restart forgets the memory; by then everything lies on disk."""
    stream.make(wal={"enabled": False}).append(3)
    stream.change(wal={"enabled": True})
    stream.append(2)
    stream.logs[1].storage.maintain()
    assert not list(stream.memory.glob("*.log"))
    stream.check()
    for log in stream.logs:
        log.close()
    (stream.directory / "tail").unlink()
    stream.logs = [Log(LocalStorage(stream.directory))]
    stream.check()
    assert stream.logs[0].append(events(1)) == Appended(10, 11)  # and no offset was left out


def test_retention_ms(stream: Stream, pass_time: Callable[[int], None]) -> None:
    stream.make(wal={"retention_ms": None, "segment_bytes": 1}).append(3)
    pass_time(10_000)
    stream.append(1)
    stream.logs[0].storage.maintain()
    stream.check()
    stream.change(wal={"retention_ms": 20_000})
    stream.logs[0].storage.maintain()
    stream.check()
    stream.change(wal={"retention_ms": 5_000})
    stream.logs[1].storage.maintain()
    stream.check(first=6)
    assert stream.logs[0].storage.counts()["evicted_retention_ms"] == 6


def test_retention_bytes(stream: Stream) -> None:
    stream.make(wal={"segment_bytes": 1_000}).append(50)
    stream.check()
    stream.change(wal={"retention_bytes": 10_000})
    stream.append(1)
    assert stream.logs[0].storage.usage().bytes <= 10_000
    first = stream.logs[0].bounds().first
    assert first > 0
    assert stream.logs[0].storage.counts()["evicted_retention_bytes"] == first
    stream.check(first)
    stream.change(wal={"retention_bytes": None})
    stream.append(50)
    stream.check(first)


def test_max_segments(stream: Stream) -> None:
    stream.make(wal={"segment_bytes": 1}).append(10)
    assert stream.segments == 20
    stream.change(wal={"max_segments": 6})
    stream.append(1)
    assert stream.segments == 6
    stream.check(first=16)
    assert stream.logs[0].storage.counts()["evicted_max_segments"] == 16
    stream.change(wal={"max_segments": 8})
    stream.append(5)
    assert stream.segments == 8


def test_segment_bytes(stream: Stream) -> None:
    stream.make().append(10)
    assert stream.segments == 1
    stream.change(wal={"segment_bytes": 1})
    stream.append(5)
    assert stream.segments == 11
    stream.change(wal={"segment_bytes": 1 << 20})
    stream.append(5)
    assert stream.segments == 11
    stream.check()


def test_segment_ms(stream: Stream, pass_time: Callable[[int], None]) -> None:
    stream.make().append(2)
    pass_time(60_000)
    stream.append(1)
    stream.logs[0].storage.maintain()
    assert stream.segments == 1
    stream.change(wal={"segment_ms": 30_000})
    stream.logs[1].storage.maintain()
    assert stream.segments == 2
    stream.append(1)
    pass_time(29_999)
    stream.append(1)
    assert stream.segments == 2
    pass_time(1)
    stream.append(1)
    assert stream.segments == 3
    stream.check()


def test_a_clock_that_goes_back_does_not_keep_a_segment_open(
    stream: Stream, pass_time: Callable[[int], None]
) -> None:
    stream.make().append(1)
    pass_time(-86_400_000)
    stream.append(1)
    assert stream.segments == 2
    stream.check()


def test_compression(stream: Stream) -> None:
    stream.make(wal={"compression": "none"})
    sizes = []
    for compression in ("none", "lz4", "zstd", "none"):
        stream.change(wal={"compression": compression})
        before = stream.logs[0].storage.usage().bytes
        for log in stream.logs:
            log.append(events(200, first=stream.number, size=500))
            stream.number += 200
        sizes.append(stream.logs[0].storage.usage().bytes - before)
    assert sizes[0] > 10 * sizes[1]
    assert sizes[1] != sizes[2]
    assert sizes[3] == pytest.approx(sizes[0], rel=0.01)
    for log in stream.logs:
        assert [value.rstrip(b".") for value in values(log)] == [b"e%d" % i for i in range(stream.number)]


def test_sync(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("local.writer", "committer"):  # without it, there is a sync now and then
        monkeypatch.setattr(f"penstock.streams.{module}.FLUSH_S", 1e6)
    stream.make().append(1)
    before = stream.files.syncs
    stream.append(5)
    assert stream.files.syncs == before
    stream.change(wal={"sync": True})
    stream.append(5)
    assert stream.files.syncs == before + 10
    stream.change(wal={"sync": False})
    stream.append(5)
    assert stream.files.syncs == before + 10
    stream.check()


def test_sync_of_cursors_in_a_process_that_only_reads(stream: Stream) -> None:
    class Names(Files):
        synced = 0

        def sync_directory(self, directory: Path) -> None:
            self.synced += directory.name == "cursors"
            super().sync_directory(directory)

    stream.make().append(1)
    files = Names()
    stream.logs.append(Log(LocalStorage(stream.directory, files)))
    stream.logs[-1].move_cursor(Cursor("r", 1))
    assert files.synced == 0
    stream.change(wal={"sync": True})
    stream.logs[-1].move_cursor(Cursor("r", 2))
    assert files.synced == 1


def test_on_full(stream: Stream) -> None:
    stream.make(wal={"segment_bytes": 1, "max_segments": 2}).append(3)
    stream.check(first=4)
    stream.change(wal={"on_full": "block"})
    for log in stream.logs:
        with pytest.raises(Backpressure):
            log.append(events(1), wait_s=0.05)
    stream.check(first=4)
    waiting = stream.logs[0].submit(events(1, first=stream.number))
    with pytest.raises(TimeoutError):
        waiting.future.result(0.1)
    stream.change(wal={"on_full": "drop_oldest"})
    assert waiting.future.result(20).first == stream.number  # it is noticed while it waits
    stream.number += 1
    stream.check(first=5)


def dropped(append: Callable[[pa.RecordBatch], object], batch: pa.RecordBatch) -> bool:
    """Whether an append was dropped."""
    try:
        append(batch)
    except Dropped:
        return True
    return False


def submit_all(log: Log, count: int) -> list[Any]:
    return [log.submit(events(1, first=number)) for number in range(count)]


def test_batch_max_events(stream: Stream) -> None:
    """A group is written when it has so many events: it does not wait for its time."""
    stream.make(wal={"sync": True, "batch": {"max_ms": 60_000, "max_events": 10}})
    log = stream.logs[0]
    log.append(events(1))
    before = stream.files.syncs
    assert [one.future.result(20).first for one in submit_all(log, 10)] == list(range(1, 11))
    assert stream.files.syncs == before + 1
    stream.change(wal={"batch": {"max_ms": 60_000, "max_events": 2}})
    assert len([one.future.result(20) for one in submit_all(log, 10)]) == 10
    assert stream.files.syncs >= before + 1 + 2
    log.append(events(9))
    assert len(list(log.read(21))) == 5  # frames have as many events


def test_batch_max_bytes(stream: Stream) -> None:
    stream.make(wal={"batch": {"max_ms": 60_000, "max_bytes": 10_000}})
    log = stream.logs[0]
    small = log.submit(events(1))
    with pytest.raises(TimeoutError):
        small.future.result(0.05)
    large = log.submit(events(40, size=500))
    assert small.future.result(20) == Appended(0, 1)
    assert large.future.result(20) == Appended(1, 41)
    assert len(list(log.read(0))) == 2  # of about as many bytes each
    stream.change(wal={"batch": {"max_ms": 60_000, "max_bytes": 1}})
    assert log.submit(events(1)).future.result(20) == Appended(41, 42)


def test_batch_max_ms(stream: Stream) -> None:
    stream.make(wal={"batch": {"max_ms": 60_000}})
    log = stream.logs[0]
    pending = submit_all(log, 5)
    time.sleep(0.05)
    assert not any(one.future.done() for one in pending)
    stream.change(wal={"batch": {"max_ms": 1}})
    log.submit(events(1))
    assert [one.future.result(20).first for one in pending] == list(range(5))
    assert len(list(log.read(0))) == 1  # they share a frame
    for one in submit_all(log, 2):
        one.future.result(20)


def test_a_buffer_smaller_than_a_group_does_not_wait(stream: Stream) -> None:
    stream.make(wal={"batch": {"max_ms": 60_000}}, buffer={"max_events": 3})
    began = time.monotonic()
    threads = [threading.Thread(target=lambda: submit_all(stream.logs[0], 4)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("limit", ["max_events", "max_bytes"])
def test_buffer_limits(stream: Stream, limit: str) -> None:
    few, many = (4, 100) if limit == "max_events" else (200, 1 << 20)
    stream.make(wal=ONE_SEGMENT, buffer={limit: few})
    log = stream.logs[0]
    log.move_cursor(Cursor("r", 0))
    log.append(events(1))
    held = 0
    with contextlib.suppress(Backpressure):
        while held < 100:
            log.submit(events(1, first=held + 1, size=50), wait_s=0)
            held += 1
    assert 0 < held <= 4
    stream.change(buffer={limit: many})
    more = [log.submit(events(1, first=held + 1 + i, size=50)) for i in range(20)]
    assert log.fill["events"] == held + 20
    log.storage.forget_cursor("r")
    stream.change(wal={"on_full": "drop_oldest"})
    assert more[-1].future.result(20).next == held + 21


def test_a_producer_that_waits_sees_a_larger_buffer(stream: Stream) -> None:
    stream.make(wal=ONE_SEGMENT, buffer={"max_events": 1})
    log = stream.logs[0]
    log.move_cursor(Cursor("r", 0))
    log.append(events(1))
    log.submit(events(1))
    entered = threading.Event()

    def produce() -> None:
        log.submit(events(1))
        entered.set()

    thread = threading.Thread(target=produce)
    thread.start()
    assert not entered.wait(0.1)
    stream.change(buffer={"max_events": 10})
    assert entered.wait(20)
    thread.join()


def test_mode_and_timeout_ms(stream: Stream) -> None:
    stream.make(wal=ONE_SEGMENT, buffer={"max_events": 1})
    log = stream.logs[0]
    log.move_cursor(Cursor("r", 0))
    log.append(events(1))
    log.submit(events(1))
    with pytest.raises(Backpressure):
        log.submit(events(1), wait_s=0.05)
    refused: list[Dropped] = []

    def produce() -> None:
        try:
            log.append(events(1))
        except Dropped as dropped:
            refused.append(dropped)

    thread = threading.Thread(target=produce)
    thread.start()
    time.sleep(0.05)
    stream.change(buffer={"mode": "drop"})
    thread.join(20)
    assert [one.reason for one in refused] == ["buffer_full"]  # noticed while it waits
    with pytest.raises(Dropped, match="buffer full"):
        log.append(events(1))
    stream.change(buffer={"mode": "timeout", "timeout_ms": 150})
    began = time.monotonic()
    with pytest.raises(Dropped, match="timeout"):
        log.append(events(1))
    assert time.monotonic() - began >= 0.15
    stream.change(buffer={"timeout_ms": 0})
    with pytest.raises(Dropped, match="timeout"):
        log.append(events(1))


def test_max_unread(stream: Stream) -> None:
    stream.make(buffer={"max_unread": 4})
    log = stream.logs[0]
    log.move_cursor(Cursor("r", 0))
    log.append(events(3))
    with pytest.raises(Backpressure):
        log.append(events(2), wait_s=0.05)
    assert log.append(events(1), wait_s=10).next == 4
    waiting = log.submit(events(2))
    stream.change(buffer={"max_unread": 6})
    assert waiting.future.result(20).next == 6
    waiting = log.submit(events(9))
    log.move_cursor(Cursor("r", 6))
    assert waiting.future.result(20).next == 15  # one append may be larger, if all was read
    stream.change(buffer={"max_unread": None})
    assert log.append(events(1), wait_s=10).next == 16


def test_spill(stream: Stream) -> None:
    stream.make(wal={"enabled": False}, buffer={"max_events": 16, "mode": "drop"})
    log = stream.logs[0]
    log.move_cursor(Cursor("r", 0))

    def fill() -> int:
        before = stream.number
        while stream.number < before + 50 and not dropped(log.append, events(1, first=stream.number)):
            stream.number += 1
        return stream.number - before

    assert fill() <= 16
    stream.change(buffer={"spill": True})
    assert fill() == 50
    stream.check()
    stream.change(buffer={"spill": False})
    assert fill() == 0
    log.move_cursor(Cursor("r", stream.number))
    assert fill() > 0
    assert values(log) == [b"e%d" % i for i in range(log.bounds().first, stream.number)]


def test_schema(stream: Stream) -> None:
    """Events that were appended under an older schema are read in the form of the present one."""
    stream.make(schema="id INT, name STRING, flag STRING")
    old = payload_schema("id INT, name STRING, flag STRING")
    log = stream.logs[0]
    log.append(pa.RecordBatch.from_pydict({"id": [1, 2], "name": ["a", "b"], "flag": ["x", "y"]}, schema=old))
    ddl = "name STRING, id BIGINT, extra DOUBLE, flag INT"
    stream.change(schema=ddl)
    new = payload_schema(ddl)
    log.append(
        pa.RecordBatch.from_pydict({"name": ["c"], "id": [3], "extra": [0.5], "flag": [7]}, schema=new)
    )
    assert log.storage.spec.schema_ == ddl
    rows = [
        row
        for chunk in log.read(0)
        if chunk.batch is not None
        for row in conform(chunk.batch, new).to_pylist()
    ]
    assert rows == [
        {"name": "a", "id": 1, "extra": None, "flag": None},
        {"name": "b", "id": 2, "extra": None, "flag": None},
        {"name": "c", "id": 3, "extra": 0.5, "flag": 7},
    ]
