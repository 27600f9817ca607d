"""What every storage of a log must do, whatever it keeps the events in."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.streams.frames import encode_body
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.producers import WINDOW
from penstock.streams.storage import (
    Append,
    Appended,
    BatchConflict,
    BatchTooOld,
    Bounds,
    Cursor,
    Fenced,
    Full,
    Producer,
    Progress,
    Refusal,
    Storage,
)
from tests.forks import fork
from tests.streams.kit import change, cluster_of, events, far_side, make_stream, raw, values

KINDS = ("local", "sqlite", "remote", pytest.param("kafka", marks=pytest.mark.slow))

Opener = Callable[..., Storage]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opener(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens a storage on the test's directory, with settings of `wal` where some are given."""
    opened: list[Storage] = []
    kafka = cluster_of(request.getfixturevalue("broker").address) if kind == "kafka" else None

    def open_(**wal: Any) -> Storage:
        if wal or not (tmp_path / "s").exists():
            make_stream(tmp_path / "s", storage=kept_in(kind), wal=wal, kafka=kafka)
        opened.append(open_storage(far_side(tmp_path / "s") if kind == "remote" else tmp_path / "s"))
        return opened[-1]

    yield open_
    for storage in opened:
        storage.close()


def kept_in(kind: str) -> str:
    """What keeps the events: a remote stream is a local one of the server."""
    return "local" if kind == "remote" else kind


def append(*batches: pa.RecordBatch, producer: Producer | None = None, tx: Any = ()) -> Append:
    """An append of one body for each batch."""
    return Append([encode_body(batch, "lz4") for batch in batches], producer, tx)


def write(storage: Storage, *batches: pa.RecordBatch, **more: Any) -> Appended | Refusal:
    return storage.write([append(*batches, **more)])[0]


def contents(storage: Storage, start: int = 0) -> list[bytes]:
    return values(Log(storage), start)


def names(first: int, next: int) -> list[bytes]:
    return [b"e%d" % number for number in range(first, next)]


def test_offsets_are_dense_and_order_is_kept(opener: Opener) -> None:
    storage = opener()
    assert storage.bounds() == Bounds(0, 0)
    assert storage.write([append(events(3)), append(events(2, 3), events(4, 5))]) == [
        Appended(0, 3),
        Appended(3, 9),
    ]
    assert write(storage, events(1, 9)) == Appended(9, 10)
    assert storage.bounds() == Bounds(0, 10)
    assert contents(storage) == names(0, 10)


def test_an_empty_append_is_harmless(opener: Opener) -> None:
    storage = opener()
    assert storage.write([Append([])]) == [Appended(0, 0)]
    assert storage.bounds() == Bounds(0, 0)
    assert list(storage.spans(0)) == []


def test_spans_begin_at_or_before_an_offset(opener: Opener) -> None:
    storage = opener()
    for first in range(0, 2000, 2):
        write(storage, events(2, first))
    assert [(span.base, span.next) for span in storage.spans(1995)] == [
        (1994, 1996),
        (1996, 1998),
        (1998, 2000),
    ]
    assert list(storage.spans(2000)) == []
    spans = list(storage.spans(0))
    assert [span.base for span in spans] == list(range(0, 2000, 2))
    assert all(span.lost is None and span.time_us > 0 and span.raw_bytes > 0 for span in spans)
    assert contents(storage, 1001) == names(1001, 2000)


def test_what_was_written_is_there_after_reopening(opener: Opener) -> None:
    first = opener()
    write(first, events(5), producer=Producer("p", 1))
    first.move_cursor(Cursor("r", 3))
    first.count(duplicates=2)
    second = opener()
    write(first, events(2, 5))
    assert contents(second) == names(0, 7)
    assert write(second, events(5), producer=Producer("p", 1)) == Appended(0, 5, duplicate=True)
    assert [cursor.next for cursor in second.cursors()] == [3]
    assert second.counts()["duplicates"] == 2
    assert write(second, events(1, 7)) == Appended(7, 8)
    assert contents(first) == names(0, 8)


def test_a_repeated_append_appends_nothing(opener: Opener) -> None:
    storage = opener()
    assert write(storage, events(2), producer=Producer("p", 4)) == Appended(0, 2)
    assert write(storage, events(2), producer=Producer("p", 4)) == Appended(0, 2, duplicate=True)
    twice = append(events(1, 2), producer=Producer("p", 5))
    assert storage.write([twice, twice]) == [Appended(2, 3), Appended(2, 3, duplicate=True)]
    assert write(storage, events(1, 3), producer=Producer("q", 1)) == Appended(3, 4)
    assert contents(storage) == names(0, 4)


def test_a_batch_that_comes_late_is_appended(opener: Opener) -> None:
    storage = opener()
    assert write(storage, events(2), producer=Producer("p", 12)) == Appended(0, 2)
    assert write(storage, events(1, 2), producer=Producer("p", 11)) == Appended(2, 3)
    assert write(storage, events(1, 3), producer=Producer("p", 0)) == Appended(3, 4)
    assert contents(storage) == names(0, 4)
    for _ in range(2):  # also when another process asks
        assert write(storage, events(2), producer=Producer("p", 12)) == Appended(0, 2, duplicate=True)
        assert write(storage, events(1, 2), producer=Producer("p", 11)) == Appended(2, 3, duplicate=True)
        storage = opener()
    assert contents(storage) == names(0, 4)


def test_a_number_with_another_content_is_refused(opener: Opener) -> None:
    storage = opener()
    write(storage, events(1), producer=Producer("p", 7, digest="one"))
    refused = write(storage, events(1, 1), producer=Producer("p", 7, digest="two"))
    assert isinstance(refused, BatchConflict)
    assert "batch 7 of producer 'p' was stored with a different body" in str(refused)
    assert "such as 8" in refused.hint
    repeated = [
        append(events(1), producer=Producer("p", 7, digest=digest)) for digest in ("one", None, "two")
    ]
    again, unknown, other = storage.write(repeated)
    assert again == unknown == Appended(0, 1, duplicate=True)
    assert isinstance(other, BatchConflict)
    assert contents(storage) == names(0, 1)


def test_numbers_below_the_window_are_refused_and_all_others_judged(opener: Opener) -> None:
    """Retention removes the segments of the batches, and whoever opens the stream next still knows them."""
    storage = opener(max_segments=2, segment_bytes=2000, retention_bytes=128 * 1024)
    numbers = [*range(1000, 1100, 2)]
    random.Random(3).shuffle(numbers)
    sent: dict[int, Appended] = {}
    for number in numbers:
        large = raw([random.randbytes(5000)])
        result = write(storage, large, producer=Producer("p", number, digest=f"d{number}"))
        if isinstance(result, Appended):
            sent[number] = result
        else:
            assert isinstance(result, BatchTooOld)
            assert number < sorted(sent)[-WINDOW]
        storage.maintain()
    assert storage.bounds().first > 0
    storage = opener()
    known = sorted(sent)[-WINDOW:]
    for number, done in sent.items():
        repeat = write(storage, events(5), producer=Producer("p", number, digest=f"d{number}"))
        if number in known:
            assert repeat == Appended(done.first, done.next, duplicate=True)
        else:
            assert isinstance(repeat, BatchTooOld)
            assert f"batches from {known[0]} on" in str(repeat)
            assert f"such as {known[-1] + 1}" in repeat.hint
    next = storage.bounds().next
    assert write(storage, events(1), producer=Producer("p", known[-1] - 1)) == Appended(next, next + 1)


def test_a_fenced_producer_is_refused_alone(opener: Opener) -> None:
    storage = opener()
    write(storage, events(1), producer=Producer("p", 1, epoch=2))
    old = append(events(1, 9), producer=Producer("p", 2, epoch=1))
    refused, taken = storage.write([old, append(events(1, 1))])
    assert isinstance(refused, Fenced)
    assert taken == Appended(1, 2)
    assert contents(storage) == names(0, 2)
    # A repetition with a later epoch appends nothing, but it fences, too.
    assert write(storage, events(1), producer=Producer("p", 1, epoch=3)) == Appended(0, 1, duplicate=True)
    assert isinstance(write(storage, events(1, 2), producer=Producer("p", 2, epoch=2)), Fenced)


def test_the_position_of_a_producer_is_kept_with_its_events(opener: Opener) -> None:
    storage = opener(segment_bytes=4096)
    assert storage.progress("cdc") == Progress(0, None)
    for number in range(50):
        position = f"lsn {number}"
        write(
            storage,
            events(number * 10, number * 10 + 10),
            producer=Producer("cdc", number, position=position),
        )
    write(storage, events(0, 1), producer=Producer("other", 7))
    for opened in (storage, opener()):
        assert opened.progress("cdc") == Progress(50, "lsn 49")
        assert opened.progress("other") == Progress(8, None)
    # A later epoch that repeats a batch keeps the position.
    write(storage, events(490, 500), producer=Producer("cdc", 49, epoch=2, position="lsn 49"))
    write(storage, events(500, 501), producer=Producer("cdc", 50, epoch=2))
    assert opener().progress("cdc") == Progress(51, "lsn 49")
    assert isinstance(write(storage, events(0, 1), producer=Producer("cdc", 51, epoch=1)), Fenced)


def test_marks_of_transactions_are_kept(opener: Opener) -> None:
    storage = opener()
    write(storage, events(2))
    write(storage, events(2, 2), events(2, 4), tx=((0, 3, "a", True), (3, 4, "b", False)))
    write(storage, events(1, 6), tx=((0, 1, "b", True),))
    assert storage.transactions(0, 7) == [(2, 5, "a", True), (5, 6, "b", False), (6, 7, "b", True)]
    assert storage.transactions(0, 2) == []
    assert storage.transactions(6, 7) == [(6, 7, "b", True)]


def test_cursors_have_epochs(opener: Opener) -> None:
    storage = opener()
    storage.move_cursor(Cursor("b", 5, epoch=2, skipped=1))
    storage.move_cursor(Cursor("a:1/x", 0))
    with pytest.raises(Fenced):
        storage.move_cursor(Cursor("b", 6, epoch=1))
    storage.move_cursor(Cursor("b", 4, epoch=2))
    found = {cursor.reader: cursor for cursor in storage.cursors()}
    assert (found["b"].next, found["b"].epoch, found["b"].skipped) == (4, 2, 0)
    assert found["a:1/x"].at == pytest.approx(time.time(), abs=60)
    storage.forget_cursor("b")
    storage.forget_cursor("unknown")
    assert [cursor.reader for cursor in storage.cursors()] == ["a:1/x"]


def test_an_offset_is_found_by_time(opener: Opener) -> None:
    storage = opener()
    write(storage, events(3))
    time.sleep(0.002)
    between = time.time_ns() // 1000
    time.sleep(0.002)
    write(storage, events(3, 3))
    assert [storage.offset_at(at) for at in (0, between, between + 60_000_000)] == [0, 3, 6]


def test_counters_add_up_over_threads(opener: Opener) -> None:
    storage = opener()
    assert set(storage.counts().values()) == {0}

    def add() -> None:
        for _ in range(50):
            storage.count(dropped_timeout=2, duplicates=1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = storage.counts()
    assert (counts["dropped_timeout"], counts["duplicates"]) == (400, 200)


def test_retention_by_time_removes_and_counts(opener: Opener, tmp_path: Path) -> None:
    storage = opener(segment_ms=1)
    write(storage, events(3))
    storage.move_cursor(Cursor("r", 1))
    time.sleep(0.01)
    storage.maintain()
    assert contents(storage) == names(0, 3)
    change(tmp_path / "s", wal={"retention_ms": 1})
    storage.maintain()
    assert storage.bounds() == Bounds(3, 3)
    assert storage.counts()["evicted_retention_ms"] == 3
    assert storage.counts()["evicted_unread"] == 2
    assert storage.usage().oldest_us is None
    assert write(storage, events(1, 3)) == Appended(3, 4)
    assert next(Log(storage).read(0)).lost == "evicted"


def test_a_full_log_drops_its_oldest_and_counts_them(opener: Opener) -> None:
    storage = opener(retention_bytes=400_000)
    batch = pa.record_batch({"value": [random.Random(1).randbytes(20_000)]})
    for _ in range(60):
        write(storage, batch)
    bounds = storage.bounds()
    assert 0 < bounds.first < bounds.next == 60
    assert storage.usage().bytes <= 400_000 + 65_000
    assert storage.counts()["evicted_retention_bytes"] == bounds.first
    gone, *kept = storage.spans(0)
    assert (gone.base, gone.next, gone.lost) == (0, bounds.first, "evicted")
    assert [span.base for span in kept] == list(range(bounds.first, 60))


def test_a_full_log_that_blocks_waits_for_its_readers(opener: Opener) -> None:
    storage = opener(retention_bytes=400_000, on_full="block")
    storage.move_cursor(Cursor("r", 0))
    batch = pa.record_batch({"value": [random.Random(1).randbytes(20_000)]})

    def fill() -> None:
        for _ in range(60):
            write(storage, batch)

    with pytest.raises(Full, match="retention bytes"):
        fill()
    bounds = storage.bounds()
    assert (bounds.first, bounds.next > 10) == (0, True)
    storage.move_cursor(Cursor("r", bounds.next))
    assert write(storage, batch) == Appended(bounds.next, bounds.next + 1)
    assert storage.bounds().first > 0
    assert storage.counts()["evicted_unread"] == 0


def test_a_volume_without_room_is_not_filled(opener: Opener, tmp_path: Path, kind: str) -> None:
    if kind == "kafka":
        pytest.skip("the volumes of the brokers are not Penstock's")
    storage = opener()
    write(storage, events(1))
    make_stream(tmp_path / "s", storage=kept_in(kind), free_bytes=1 << 60)
    with pytest.raises(Full, match="disk full"):
        write(storage, events(1, 1))
    storage.move_cursor(Cursor("r", 1))
    assert contents(storage) == names(0, 1)
    make_stream(tmp_path / "s", storage=kept_in(kind))
    assert write(storage, events(1, 1)) == Appended(1, 2)


def test_usage_tells_sizes_and_ages(opener: Opener) -> None:
    storage = opener()
    write(storage, events(1000, size=100))
    usage = storage.usage()
    assert usage.bytes > 1000
    assert usage.segments == len(usage.details) == 1
    assert usage.oldest_us == usage.newest_us is not None
    assert abs(usage.newest_us - time.time() * 1e6) < 60e6


def test_readers_in_threads_see_whole_appends_only(opener: Opener) -> None:
    storage = opener()
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = values(Log(storage))
            if len(found) % 20 or found != names(0, len(found)):
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for first in range(0, 1000, 20):
            write(storage, events(10, first), events(10, first + 10))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert contents(storage) == names(0, 1000)


def test_threads_share_a_log(opener: Opener) -> None:
    log = Log(opener())
    results: list[Appended] = []

    def work(writer: int) -> None:
        for number in range(20):
            results.append(log.append(events(2, 1000 * writer + 2 * number)))

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offset for result in results for offset in range(result.first, result.next)) == list(
        range(160)
    )
    found = values(log)
    for writer in range(4):
        mine = [value for value in found if int(value[1:]) // 1000 == writer]
        assert mine == names(1000 * writer, 1000 * writer + 40)


# Several processes


def append_many(directory: Path, writer: int, count: int, told: int) -> None:
    """Append numbered pairs, and tell each offset after it was acknowledged."""
    storage = open_storage(directory)
    done = [value for value in values(Log(storage)) if value.startswith(b"w%d-" % writer)]
    for number in range(len(done) // 2, count):
        pair = pa.record_batch({"value": [b"w%d-%d-%s" % (writer, number, half) for half in (b"a", b"b")]})
        result = write(storage, pair, producer=Producer(f"w{writer}", number))
        assert isinstance(result, Appended)
        os.write(told, b"%d %d %d\n" % (writer, number, result.first))
    storage.close()


def test_two_processes_append_at_once(opener: Opener, tmp_path: Path) -> None:
    storage = opener(segment_bytes=4000)
    _, told = os.pipe()
    children = [fork(lambda i=i: append_many(tmp_path / "s", i, 100, told)) for i in range(2)]  # type: ignore[misc]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    found = contents(storage)
    assert len(found) == len(set(found)) == storage.bounds().next == 400
    for writer in range(2):
        mine = [value for value in found if value.startswith(b"w%d-" % writer)]
        assert mine == [b"w%d-%d-%s" % (writer, i, half) for i in range(100) for half in (b"a", b"b")]


def test_a_killed_writer_loses_nothing_it_was_acknowledged(opener: Opener, tmp_path: Path) -> None:
    storage = opener(segment_bytes=4000, max_segments=100_000)
    chance = random.Random(7)
    told: list[str] = []
    others_source, others = os.pipe()
    other = fork(lambda: append_many(tmp_path / "s", 0, 300, others))
    os.close(others)
    for _ in range(8):
        source, own = os.pipe()
        child = fork(lambda own=own: append_many(tmp_path / "s", 1, 100_000, own))  # type: ignore[misc]
        os.close(own)
        with os.fdopen(source) as lines:
            told += [next(lines) for _ in range(chance.randint(1, 10))]
            time.sleep(chance.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told += lines
    assert os.waitpid(other, 0)[1] == 0
    with os.fdopen(others_source) as lines:
        told += lines
    found = contents(storage)
    assert len(found) == len(set(found)) == storage.bounds().next
    assert len(told) > 308
    for line in told:
        writer, number, offset = map(int, line.split())
        assert found[offset : offset + 2] == [b"w%d-%d-%s" % (writer, number, half) for half in (b"a", b"b")]
    assert write(storage, events(1)) == Appended(len(found), len(found) + 1)
