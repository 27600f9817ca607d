"""Producers that are faster than a stream: what waits, what is dropped and counted, what stays bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Backpressure
from penstock.specs.stream import StreamSpec
from penstock.streams.committer import Closed, Dropped
from penstock.streams.home import StreamHome
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.storage import Appended, Cursor
from tests.streams.kit import events, make_stream, opened, values

DURABLE = {"wal": {"segment_bytes": 2_000, "max_segments": 3, "on_full": "block"}}


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Callable[..., Log]]:
    """Opens a stream; transient ones keep their segments in `memory`."""
    logs = []

    def open(**spec: Any) -> Log:
        directory = make_stream(tmp_path / "s", memory=tmp_path / "memory", **spec)
        logs.append(Log(LocalStorage(directory)))
        return logs[-1]

    yield open
    for log in logs:
        log.close()


class Reader:
    """Reads at its own pace and moves its cursor."""

    def __init__(self, log: Log, pause_s: float = 0.002, chunks: int = 3) -> None:
        self.log, self.pause_s, self.chunks = log, pause_s, chunks
        self.seen: list[bytes] = []
        self.at = log.bounds().first
        log.move_cursor(Cursor("r", self.at))
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.done.is_set() or self.at < self.log.bounds().next:
            for chunk, _ in zip(self.log.read(self.at), range(self.chunks), strict=False):
                assert chunk.lost is None
                assert chunk.batch is not None
                self.seen += chunk.batch.column(0).to_pylist()
                self.at = chunk.next
            self.log.move_cursor(Cursor("r", self.at))
            time.sleep(self.pause_s)

    def finish(self) -> list[bytes]:
        self.done.set()
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.seen


def overload(log: Log, producers: int = 4, appends: int = 60, count: int = 5) -> tuple[list[Any], int]:
    """More than the stream can take: what each append came to, and the most that the buffer held."""
    results: list[Any] = []
    most = 0
    running = True

    def produce(number: int) -> None:
        for i in range(appends):
            batch = events(count, first=(number * appends + i) * count, size=20)
            try:
                results.append((batch.column(0).to_pylist(), log.append(batch)))
            except Exception as error:
                results.append((batch.column(0).to_pylist(), error))

    def watch() -> None:
        nonlocal most
        while running:
            most = max(most, log.fill["events"])
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    threads = [threading.Thread(target=produce, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    running = False
    watcher.join()
    return results, most


def fill(log: Log) -> int:
    """Append until there is no room; how many events there was room for."""
    for written in range(1000):
        try:
            log.append(events(1, first=written), wait_s=0.1)
        except Backpressure:
            return written
    raise AssertionError("it was never full")


def taken(results: list[Any]) -> list[bytes]:
    """The events that were acknowledged, in order of their offsets."""
    done = sorted((result.first, batch) for batch, result in results if isinstance(result, Appended))
    return [value for _, batch in done for value in batch]


def refused(results: list[Any]) -> int:
    """The number of events that were dropped."""
    assert all(isinstance(result, Appended | Dropped) for _, result in results)
    return sum(len(batch) for batch, result in results if isinstance(result, Dropped))


TRANSIENT = {"wal": {"enabled": False, "segment_bytes": 2_000}}


@pytest.mark.parametrize("base", [DURABLE, TRANSIENT], ids=["durable", "transient"])
def test_block_loses_nothing(stream: Callable[..., Log], base: dict[str, Any]) -> None:
    log = stream(**base, buffer={"max_events": 40, "mode": "block"})
    reader = Reader(log)
    results, most = overload(log)
    seen = reader.finish()
    assert refused(results) == 0
    assert seen == taken(results)
    assert len(seen) == 4 * 60 * 5
    assert most <= 40
    counts = log.storage.counts()
    assert not any(count for name, count in counts.items() if name.startswith("dropped"))
    assert counts["evicted_unread"] == 0


@pytest.mark.parametrize("mode", ["drop", "timeout"])
@pytest.mark.parametrize("base", [DURABLE, TRANSIENT], ids=["durable", "transient"])
def test_what_is_dropped_is_counted(stream: Callable[..., Log], base: dict[str, Any], mode: str) -> None:
    log = stream(**base, buffer={"max_events": 40, "mode": mode, "timeout_ms": 5})
    reader = Reader(log, pause_s=0.05, chunks=1)
    results, most = overload(log, producers=12, appends=20)
    seen = reader.finish()
    assert seen == taken(results)
    counts = log.storage.counts()
    assert refused(results) > 0
    assert counts["dropped_buffer_full"] + counts["dropped_timeout"] == refused(results)
    assert counts["dropped_timeout" if mode == "drop" else "dropped_buffer_full"] == 0
    assert most <= 40


def test_disk_use_of_a_blocked_stream_is_bounded(stream: Callable[..., Log]) -> None:
    log = stream(**DURABLE, buffer={"max_events": 10})
    log.move_cursor(Cursor("r", 0))
    written = fill(log)
    assert log.storage.usage().segments <= 3
    assert log.fill["full"] == "max_segments"
    assert values(log) == [b"e%d" % i for i in range(written)]
    with pytest.raises(Backpressure):
        log.append(events(1), wait_s=0.05)
    assert log.fill["events"] == 0  # what is refused is not held
    log.move_cursor(Cursor("r", written))
    assert log.append(events(1, first=written), wait_s=30).first == written
    assert log.fill["full"] is None


def test_a_blocked_stream_that_is_read_to_its_end_goes_on(stream: Callable[..., Log]) -> None:
    """Also when the only segment there may be is the one that is full."""
    log = stream(wal={"segment_bytes": 1, "max_segments": 1, "on_full": "block"})
    log.move_cursor(Cursor("r", 0))
    for number in range(5):
        log.append(events(1, first=number), wait_s=10)
        with pytest.raises(Backpressure):
            log.append(events(1, first=99), wait_s=0.05)
        assert values(log) == [b"e%d" % number]
        log.move_cursor(Cursor("r", number + 1))


def test_without_a_reader_a_blocked_stream_waits(stream: Callable[..., Log]) -> None:
    log = stream(**DURABLE)
    fill(log)
    assert log.bounds().first == 0


def test_a_waiting_append_can_be_withdrawn(stream: Callable[..., Log]) -> None:
    log = stream(wal={"segment_bytes": 1, "max_segments": 1, "on_full": "block"})
    log.move_cursor(Cursor("r", 0))
    log.append(events(1))
    waiting = [log.submit(events(1, first=number)) for number in (7, 8)]
    deadline = time.monotonic() + 20
    while not log.withdraw(waiting[0]):
        assert time.monotonic() < deadline
    log.move_cursor(Cursor("r", 1))
    assert waiting[1].future.result(20) == Appended(1, 2)
    assert not log.withdraw(waiting[1])
    assert values(log) == [b"e8"]


def test_timeout_waits_at_least_so_long(stream: Callable[..., Log]) -> None:
    spec = {"segment_bytes": 1, "max_segments": 1, "on_full": "block"}
    log = stream(wal=spec, buffer={"mode": "timeout", "timeout_ms": 200, "max_events": 1})
    log.move_cursor(Cursor("r", 0))
    log.append(events(1))
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(Dropped) as dropped:
            log.append(events(1))
        assert time.monotonic() - began >= 0.2
        assert dropped.value.reason == "timeout"
    assert log.storage.counts()["dropped_timeout"] == 2


def test_a_stuck_stream_does_not_stop_another(tmp_path: Path) -> None:
    stuck = make_stream(tmp_path / "stuck", wal={"segment_bytes": 1, "max_segments": 1, "on_full": "block"})
    free = make_stream(tmp_path / "free")
    with opened(stuck) as one, opened(free) as other:
        one.move_cursor(Cursor("r", 0))
        one.append(events(1))
        waiting = one.submit(events(1))
        for number in range(50):
            other.append(events(1, first=number), wait_s=10)
        assert not waiting.future.done()


def test_closing_a_full_log_ends(stream: Callable[..., Log]) -> None:
    log = stream(wal={"segment_bytes": 1, "max_segments": 1, "on_full": "block"}, buffer={"max_events": 2})
    log.move_cursor(Cursor("r", 0))
    log.append(events(1))
    waiting = [log.submit(events(1)) for _ in range(2)]
    ends: list[BaseException] = []

    def blocked() -> None:
        try:
            log.append(events(1))
        except Closed as closed:
            ends.append(closed)

    thread = threading.Thread(target=blocked)
    thread.start()
    log.close()
    thread.join(20)
    assert len(ends) == 1
    assert all(isinstance(one.future.exception(5), Closed) for one in waiting)


def transient(**buffer: Any) -> dict[str, Any]:
    return {"wal": {"enabled": False, "segment_bytes": 2_000}, "buffer": buffer}


def in_memory(log: Log) -> tuple[int, int]:
    """Bytes and events that a transient stream has in memory."""
    usage = log.storage.usage()
    held = [segment for segment in usage.details if segment["memory"]]
    bases = [int(str(segment["base"])) for segment in usage.details] + [log.bounds().next]
    count = sum(bases[bases.index(int(str(s["base"]))) + 1] - int(str(s["base"])) for s in held)
    return usage.memory_bytes, count


def test_a_transient_stream_without_a_reader_keeps_the_newest(stream: Callable[..., Log]) -> None:
    log = stream(**transient(max_events=80))
    for number in range(500):
        log.append(events(1, first=number), wait_s=10)
        assert in_memory(log)[1] <= 80
    bounds = log.bounds()
    assert values(log) == [b"e%d" % i for i in range(bounds.first, 500)]
    assert bounds.next - bounds.first >= 40
    assert log.storage.counts()["dropped_no_reader"] == bounds.first


def test_a_transient_stream_has_a_cap_of_bytes(stream: Callable[..., Log]) -> None:
    log = stream(**transient(max_bytes=20_000))
    for number in range(200):
        log.append(events(1, first=number, size=500), wait_s=10)
        assert in_memory(log)[0] <= 21_000


def test_a_transient_stream_with_a_stuck_reader(stream: Callable[..., Log]) -> None:
    log = stream(**transient(max_events=40, mode="drop"))
    log.move_cursor(Cursor("r", 0))
    results, _ = overload(log, producers=1, appends=100, count=1)
    dropped = refused(results)
    assert dropped > 0
    assert log.storage.counts()["dropped_buffer_full"] == dropped
    assert values(log) == taken(results)
    assert in_memory(log)[1] <= 40
    log.move_cursor(Cursor("r", log.bounds().next))
    log.append(events(1))


@pytest.mark.parametrize("reading", [True, False])
def test_spilling_comes_before_the_mode(stream: Callable[..., Log], reading: bool) -> None:
    log = stream(**transient(max_events=40, mode="drop", spill=True))
    log.move_cursor(Cursor("r", 0))
    reader = Reader(log, pause_s=0.01) if reading else None
    results, _ = overload(log, producers=3, appends=60)
    assert refused(results) == 0
    assert in_memory(log)[1] <= 40
    seen = reader.finish() if reader else values(log)
    assert seen == taken(results)
    assert log.storage.counts()["dropped_buffer_full"] == 0
    if reader is None:
        assert log.storage.usage().bytes > log.storage.usage().memory_bytes


def test_spilling_has_a_cap_too(stream: Callable[..., Log]) -> None:
    spec = transient(max_events=40, mode="drop", spill=True)
    spec["wal"]["retention_bytes"] = 20_000
    log = stream(**spec)
    log.move_cursor(Cursor("r", 0))
    results, _ = overload(log, producers=1, appends=200, count=1)
    usage = log.storage.usage()
    assert usage.bytes - usage.memory_bytes <= 21_000
    assert refused(results) == log.storage.counts()["dropped_buffer_full"] > 0
    assert values(log) == taken(results)


@pytest.mark.parametrize("spill", [False, True])
def test_a_transient_stream_is_gone_after_a_restart(tmp_path: Path, spill: bool) -> None:
    home = StreamHome(tmp_path / "streams", tmp_path / "memory")
    spec = StreamSpec.model_validate(transient(max_events=16, spill=spill))
    directory = home.ensure("s", "abcdefgh", spec)
    with opened(directory) as log:
        log.move_cursor(Cursor("r", 0))
        for number in range(30 if spill else 10):
            log.append(events(1, first=number), wait_s=10)
        before = log.bounds().next
    home.forget_transient()
    with opened(directory) as log:
        log.storage.maintain()
        assert log.bounds().first == log.bounds().next >= before
        assert values(log) == []
        after = log.append(events(1)).first
        assert after >= before
        log.append(events(1))
    home.forget_transient()
    (directory / "tail").unlink()  # as after a power loss
    with opened(directory) as log:
        assert log.append(events(1)).first > after + 1


def test_a_transient_stream_can_be_looked_at_after_a_restart(tmp_path: Path) -> None:
    """Before anybody has appended again, or looked after it."""
    home = StreamHome(tmp_path / "streams", tmp_path / "memory")
    directory = home.ensure("s", "abcdefgh", StreamSpec.model_validate(transient()))
    with opened(directory) as log:
        log.append(events(3))
    home.forget_transient()
    with opened(directory) as log:
        assert log.storage.usage().bytes == 0
        assert [(chunk.base, chunk.next, chunk.lost) for chunk in log.read(0)] == [(0, 3, "evicted")]
        assert log.storage.transactions(0, 3) == []
        assert log.storage.offset_at(0) == 3
