"""The log of a stream: what appends, reads, cursors and settings do when nothing goes wrong."""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.specs.positions import EARLIEST, LATEST, Position
from penstock.streams import clock
from penstock.streams.committer import Closed, Pending
from penstock.streams.decode.values import TEXTS, rows_of
from penstock.streams.events import Event, payload_schema
from penstock.streams.files import Files
from penstock.streams.local import segments
from penstock.streams.log import Chunk
from penstock.streams.storage import Appended, Cursor, Fenced, Producer
from tests.streams.kit import change, events, make_stream, opened, raw, values


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_stream(tmp_path / "streams" / "s")


def test_events_are_read_as_they_were_appended(directory: Path) -> None:
    with opened(directory) as log:
        assert log.append(events(3)) == Appended(0, 3)
        assert log.append(events(2, first=3)) == Appended(3, 5)
        assert values(log) == [b"e0", b"e1", b"e2", b"e3", b"e4"]
        assert values(log, 2, 4) == [b"e2", b"e3"]
    with opened(directory) as log:
        assert values(log, 4) == [b"e4"]


def test_an_empty_append_changes_nothing(directory: Path) -> None:
    with opened(directory) as log:
        assert log.append(events(0)) == Appended(0, 0)
        log.append(events(2))
        before = log.storage.usage().bytes
        assert log.append(events(0)) == Appended(2, 2)
        assert log.append_bodies([]) == Appended(2, 2)
        assert log.storage.usage().bytes == before
        assert values(log) == [b"e0", b"e1"]


def test_an_empty_batch_of_a_producer_is_remembered(directory: Path) -> None:
    with opened(directory) as log:
        log.append(events(1), producer=Producer("p", 1))
        assert log.append(events(0), producer=Producer("p", 2)) == Appended(1, 1)
        assert log.append(events(1), producer=Producer("p", 2)).duplicate
    with opened(directory) as log:
        assert log.append(events(1), producer=Producer("p", 2)).duplicate
        assert values(log) == [b"e0"]


def test_reading_between_offsets(directory: Path) -> None:
    with opened(directory) as log:
        log.append(events(10))
        assert list(log.read(3, 3)) == []
        assert list(log.read(5, 3)) == []
        assert list(log.read(0, 0)) == []
        assert list(log.read(10)) == []
        assert list(log.read(99)) == []
        assert values(log, 9, 99) == [b"e9"]


def test_positions(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000_000_000
    monkeypatch.setattr(clock, "now_us", lambda: now)
    with opened(directory) as log:
        log.append(events(2))
        now += 10_000_000
        log.append(events(2))
        assert log.resolve(EARLIEST) == 0
        assert log.resolve(LATEST) == 4
        assert log.resolve(Position("offset", offset=3)) == 3
        for at_us, offset in ((0, 0), (now - 10_000_000, 0), (now - 1, 2), (now, 2), (now + 1, 4)):
            moment = datetime.fromtimestamp(at_us / 1e6, UTC)
            assert log.resolve(Position("time", time=moment)) == offset


def test_a_repeated_batch_appends_nothing(directory: Path) -> None:
    with opened(directory) as log:
        first = log.append(events(2), producer=Producer("p", 7))
        again = log.append(events(2), producer=Producer("p", 7))
        assert (again.first, again.next, again.duplicate) == (first.first, first.next, True)
        assert log.storage.counts()["duplicates"] == 2
        assert log.append(events(1, first=2), producer=Producer("p", 8)) == Appended(2, 3)
    with opened(directory) as log:
        assert log.append(events(1), producer=Producer("p", 8)).duplicate
        assert values(log) == [b"e0", b"e1", b"e2"]


def test_a_later_epoch_fences_the_earlier_ones(directory: Path) -> None:
    with opened(directory) as old, opened(directory) as new:
        old.append(events(1), producer=Producer("p", 1, epoch=1))
        new.append(events(1), producer=Producer("p", 2, epoch=2))
        with pytest.raises(Fenced):
            old.append(events(1), producer=Producer("p", 3, epoch=1))


def test_a_later_epoch_fences_with_a_repetition_too(directory: Path) -> None:
    """Who takes over repeats the last batch; from then on its predecessor may not append any more."""
    with opened(directory) as old, opened(directory) as new:
        old.append(events(1), producer=Producer("p", 1, epoch=1))
        assert new.append(events(1), producer=Producer("p", 1, epoch=2)).duplicate
        with pytest.raises(Fenced):
            old.append(events(1), producer=Producer("p", 2, epoch=1))
        assert new.append(events(1, first=1), producer=Producer("p", 2, epoch=2)) == Appended(1, 2)
    (directory / "tail").unlink()
    with opened(directory) as log:
        with pytest.raises(Fenced):
            log.append(events(1), producer=Producer("p", 3, epoch=1))
        assert values(log) == [b"e0", b"e1"]


def test_transactions_keep_their_boundaries(directory: Path) -> None:
    with opened(directory) as log:
        log.append(events(3), tx=[(0, 2, "a", True), (2, 3, "b", False)])
        log.append(events(2, first=3), tx=[(0, 1, "b", True)])
        marks = [(0, 2, "a", True), (2, 3, "b", False), (3, 4, "b", True)]
        assert [tuple(mark) for mark in log.storage.transactions(0, 5)] == marks


def test_a_large_append_is_one_append_in_several_frames(directory: Path) -> None:
    change(directory, wal={"batch": {"max_events": 10}})
    with opened(directory) as log:
        assert log.append(events(95)) == Appended(0, 95)
        chunks = list(log.read(0))
        assert len(chunks) == 10
        assert values(log) == events(95).column(0).to_pylist()


def test_an_evicted_offset_answers_with_the_gap(directory: Path) -> None:
    change(directory, wal={"segment_bytes": 1, "max_segments": 3})
    with opened(directory) as log:
        for number in range(10):
            log.append(events(1, first=number))
        first = log.bounds().first
        assert first == 7
        gap = next(log.read(2))
        assert gap == Chunk(2, first, 0, None, lost="evicted")
        assert next(log.read(2, 4)) == Chunk(2, 4, 0, None, lost="evicted")
        assert list(log.read(0, 0)) == []
        assert values(log) == [b"e7", b"e8", b"e9"]
        assert log.storage.counts()["evicted_max_segments"] == 7


def test_what_is_evicted_while_it_is_read_is_told(directory: Path) -> None:
    """Between a look at the first offset and the read of it, retention may be faster."""
    change(directory, wal={"segment_bytes": 1, "max_segments": 3})
    with opened(directory) as log, opened(directory) as other:
        for number in range(3):
            log.append(events(1, first=number))
        reading = other.storage.spans(0)
        for number in range(3, 6):
            log.append(events(1, first=number))
        reached = 0
        for span in reading:
            assert span.base == reached
            reached = span.next
        assert reached == 6


def test_cursors_are_kept_and_fenced(directory: Path) -> None:
    with opened(directory) as log:
        log.append(events(5))
        log.move_cursor(Cursor("r:1/ä", 3, epoch=2))
        with pytest.raises(Fenced):
            log.move_cursor(Cursor("r:1/ä", 4, epoch=1))
    with opened(directory) as log:
        [cursor] = log.storage.cursors()
        assert (cursor.reader, cursor.next, cursor.epoch) == ("r:1/ä", 3, 2)
        log.storage.forget_cursor("r:1/ä")
        assert log.storage.cursors() == []


def test_appends_of_many_threads_share_writes(directory: Path) -> None:
    class Counting(Files):
        syncs = 0

        def sync(self, fd: int) -> None:
            self.syncs += 1
            super().sync(fd)

    files = Counting()
    change(directory, wal={"sync": True})
    with opened(directory, files) as log:
        log.append(events(1))
        before = files.syncs
        threads = [
            threading.Thread(target=lambda: [log.append(events(1), flush=False) for _ in range(20)])
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert log.bounds().next == 401
        assert files.syncs - before < 200


def test_a_cancelled_append_does_not_fail_its_neighbours(directory: Path) -> None:
    change(directory, wal={"batch": {"max_ms": 10_000}})
    with opened(directory) as log:
        first = log.submit(events(1))
        second = log.submit(events(1, first=1))
        assert first.future.cancel()
        third = log.submit(events(1, first=2), flush=True)
        assert (second.future.result(10), third.future.result(10)) == (Appended(1, 2), Appended(2, 3))


def test_single_events_and_batches_of_a_group_share_a_frame(directory: Path) -> None:
    def single(text: bytes) -> Pending:
        return Pending(1, len(text), event=Event(TEXTS, text, len(text)))

    change(directory, wal={"batch": {"max_ms": 10_000}})
    with opened(directory) as log:
        group = [single(b"1"), single(b"2"), Pending(2, 8, batch=events(2)), single(b"3")]
        for entry in group:
            log.put(entry, None)
        last = log.submit(events(1, first=2), flush=True)
        assert last.future.result(10) == Appended(5, 6)
        assert [entry.future.result(10).first for entry in group] == [0, 1, 2, 4]
        assert values(log) == [b"1", b"2", b"e0", b"e1", b"3", b"e2"]
        assert len(list(log.read(0))) == 1


def test_single_events_of_another_schema_have_a_frame_of_their_own(directory: Path) -> None:
    change(directory, wal={"batch": {"max_ms": 10_000}})
    forms = [rows_of(payload_schema(ddl)) for ddl in ("id BIGINT", "id BIGINT, name STRING")]
    with opened(directory) as log:
        for form in (forms[0], forms[0], forms[1]):
            log.put(Pending(1, 9, event=Event(form, form.load(b'{"id": 7, "name": "x"}'), 9)), None)
        form = forms[1]
        log.put(Pending(1, 9, event=Event(form, form.load(b'{"id": 8}'), 9), flush=True), None)
        assert log.wait(3, 10)
        rows = [chunk.batch.to_pylist() for chunk in log.read(0) if chunk.batch is not None]
    assert rows == [[{"id": 7}, {"id": 7}], [{"id": 7, "name": "x"}, {"id": 8, "name": None}]]


def test_events_with_and_without_keys_follow_each_other(directory: Path) -> None:
    keyed = raw([b"x"]).append_column("_key", pa.array([b"k"], pa.binary()))
    with opened(directory) as log:
        pending = [log.submit(batch) for batch in (events(1), keyed, events(1, first=1))]
        assert [one.future.result(10) for one in pending] == [Appended(i, i + 1) for i in range(3)]
        assert values(log) == [b"e0", b"x", b"e1"]


def test_a_closed_log_takes_nothing(directory: Path) -> None:
    with opened(directory) as log:
        log.append(events(1))
    with pytest.raises(Closed):
        log.append(events(1))


class Clock:
    """A clock that is set by hand."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.us = 1_700_000_000_000_000
        patch.setattr(clock, "now_us", lambda: self.us)

    def step(self, *, days: float) -> None:
        self.us += int(days * 86_400_000_000)


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_a_clock_that_went_back_for_a_while_evicts_nothing_early(
    directory: Path, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    """What is stamped long ago was appended after what is stamped rightly, so it may go no earlier."""
    change(directory, storage=storage, wal={"segment_bytes": 1, "retention_ms": 7 * 86_400_000})
    now = Clock(monkeypatch)
    with opened(directory) as log:
        log.append(events(1))
        now.step(days=-30)
        log.append(events(1, first=1))
        now.step(days=30)
        log.append(events(2, first=2))
        now.step(days=6.9)
        log.append(events(1, first=4))
        log.storage.maintain()
        assert values(log) == [b"e0", b"e1", b"e2", b"e3", b"e4"]
        now.step(days=0.2)
        log.storage.maintain()
        assert values(log) == [b"e4"]


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_what_a_clock_stamped_in_the_future_is_not_kept_for_ever(
    directory: Path, monkeypatch: pytest.MonkeyPatch, storage: str
) -> None:
    change(directory, storage=storage, wal={"segment_bytes": 1, "retention_ms": 7 * 86_400_000})
    now = Clock(monkeypatch)
    with opened(directory) as log:
        now.step(days=5_000)
        log.append(events(1))
        now.step(days=-5_000)
        log.append(events(1, first=1))
        log.append(events(1, first=2))
        now.step(days=6.9)
        log.append(events(1, first=3))
        log.storage.maintain()
        assert values(log) == [b"e0", b"e1", b"e2", b"e3"]
        now.step(days=0.2)
        log.storage.maintain()
        assert values(log) == [b"e3"]


def test_a_small_step_back_is_waited_for(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Clock(monkeypatch)
    with opened(directory) as log:
        log.append(events(1))
        now.us -= 5_000_000
        log.append(events(1))
        times = [chunk.time_us for chunk in log.read(0)]
        assert times == [now.us + 5_000_000] * 2


@pytest.mark.parametrize("closed", [False, True])
def test_times_are_found_whatever_the_clock_did(
    directory: Path, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    monkeypatch.setattr(segments, "INDEX_INTERVAL", 1)
    change(directory, wal={"segment_ms": 10**12})
    now = Clock(monkeypatch)
    start, times = now.us, [0, 10, 3, 3, 20, 1, 15, 30, 2]
    with opened(directory) as log:
        for number, days in enumerate(times):
            now.us = start + days * 86_400_000_000
            log.append(events(1, first=number))
        if closed:
            change(directory, wal={"segment_bytes": 1})
            log.append(events(1, first=len(times)))
            log.storage.maintain()
        for days in (0, 1, 2, 3, 4, 10, 11, 20, 25, 30):
            moment = datetime.fromtimestamp(start / 1e6, UTC) + timedelta(days=days)
            expected = next(i for i, at in enumerate(times) if at >= days)
            assert log.resolve(Position("time", time=moment)) == expected


def test_a_closed_log_keeps_no_segment_open(directory: Path) -> None:
    change(directory, wal={"segment_bytes": 1})
    with opened(directory) as log:
        for number in range(4):
            log.append(events(1, first=number))
        assert values(log) == [b"e0", b"e1", b"e2", b"e3"]
        assert _open_below(directory), "the reader keeps segments open while the log is in use"
    assert not _open_below(directory)


def _open_below(directory: Path) -> list[str]:
    """The files of a directory that this process has open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            found.append(str(entry.readlink()))
    return [path for path in found if path.startswith(str(directory))]
