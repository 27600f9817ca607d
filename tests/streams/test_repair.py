"""A repair loses nothing that can be read, may be stopped anywhere, and leaves nothing to repair."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import Invalid
from penstock.streams.files import Files
from penstock.streams.frames import HEADER_SIZE, Body, encode_body
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.repair.repair import Repair, repair
from penstock.streams.repair.verify import verify
from penstock.streams.sqlite.rows import PAGE
from penstock.streams.storage import Append, Appended, Producer, Storage
from tests.forks import fork, status_of
from tests.streams.kit import change, events, make_stream
from tests.streams.test_verify import fill, flip, frames, segment


def content(storage: Storage) -> tuple[dict[int, bytes], set[int]]:
    """What can be read, by offset; and what is told as lost."""
    found: dict[int, bytes] = {}
    lost: set[int] = set()
    for chunk in Log(storage).read(storage.bounds().first):
        if chunk.batch is None:
            lost |= set(range(chunk.base, chunk.next))
        else:
            found |= dict(zip(range(chunk.base, chunk.next), chunk.batch.column(0).to_pylist(), strict=True))
    return found, lost


def offsets(ranges: list[tuple[int, int]]) -> set[int]:
    return {offset for first, next in ranges for offset in range(first, next)}


def check(directory: Path, result: Repair, lost: set[int], end: int = 60) -> None:
    """Nothing but `lost` is gone, everybody is told so, and the log goes on."""
    report = verify(directory)
    assert {fault.kind for fault in report.faults} <= {"lost"}
    assert offsets([(fault.first, fault.next) for fault in report.faults]) == lost
    assert offsets(result.lost) == lost
    assert result.left == []
    assert report.events == end - len(lost)
    storage = open_storage(directory)
    found, told = content(storage)
    assert found == {offset: b"e%d" % offset for offset in range(end) if offset not in lost}
    assert told == lost
    assert storage.write([Append([encode_body(events(1, end), "none")])]) == [Appended(end, end + 1)]
    storage.close()
    again = repair(directory)
    assert (again.repaired, again.kept, offsets(again.lost)) == ([], [], lost)


def damage_body(directory: Path, number: int, frame: int) -> set[int]:
    path = segment(directory, number)
    found = frames(path)[frame]
    flip(path, found.position + HEADER_SIZE + 2)
    return set(range(found.header.base, found.header.next))


def damage_header(directory: Path, number: int, frame: int) -> set[int]:
    path = segment(directory, number)
    found = frames(path)[frame]
    flip(path, found.position + 20)
    return set(range(found.header.base, found.header.next))


def cut(directory: Path, number: int) -> set[int]:
    path = segment(directory, number)
    found = frames(path)[-1]
    os.truncate(path, found.position + 30)
    return set(range(found.header.base, found.header.next))


def remove_segment(directory: Path, number: int) -> set[int]:
    path, after = segment(directory, number), segment(directory, number + 1)
    path.unlink()
    return set(range(int(path.stem), int(after.stem)))


def remove_bytes(directory: Path, number: int) -> set[int]:
    """Take away most of a frame, so that what tells of it needs more room than is left."""
    path = segment(directory, number)
    found = frames(path)[1]
    data = path.read_bytes()
    path.write_bytes(data[: found.position + 10] + data[found.position + found.header.size :])
    return set(range(found.header.base, found.header.next))


DAMAGE: dict[str, Callable[[Path], set[int]]] = {
    "a body": lambda d: damage_body(d, 1, 2),
    "a header": lambda d: damage_header(d, 1, 1),
    "neighbours": lambda d: damage_body(d, 1, 1) | damage_header(d, 1, 2),
    "the state of producers": lambda d: damage_body(d, 1, 0),
    "the head of a segment": lambda d: damage_header(d, 2, 0) | damage_header(d, 2, 1),
    "the active segment": lambda d: damage_body(d, -1, 1),
    "several segments": lambda d: damage_body(d, 0, 1) | damage_header(d, 2, 2) | damage_body(d, -1, 2),
    "the end of a segment": lambda d: cut(d, 1),
    "a whole segment": lambda d: remove_segment(d, 1),
    "missing bytes": lambda d: remove_bytes(d, 1),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_only_what_is_damaged_is_lost(tmp_path: Path, what: str) -> None:
    directory = fill(tmp_path / "s", frames=12)
    lost = DAMAGE[what](directory)
    result = repair(directory)
    assert result.repaired
    assert all(path.exists() for path in result.kept)
    check(directory, result, lost)


def test_nothing_is_kept_if_so_wished(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    lost = damage_body(directory, 1, 2)
    result = repair(directory, discard=True)
    assert result.kept == []
    assert list(directory.glob("*.damaged*")) == []
    check(directory, result, lost)


def test_the_damaged_segment_is_kept_as_it_was(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    damage_body(directory, 1, 2)
    path = segment(directory, 1)
    before = path.read_bytes()
    assert repair(directory).kept == [path.with_name(path.name + ".damaged")]
    assert path.with_name(path.name + ".damaged").read_bytes() == before
    assert len(path.read_bytes()) == len(before)  # so that nothing else has moved


def test_indexes_tails_and_cursors_are_mended(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    segment(directory, 0).with_suffix(".index").unlink()
    flip(segment(directory, 1).with_suffix(".index"), 30)
    flip(directory / "tail", 20)
    [cursor] = (directory / "cursors").glob("*.cursor")
    flip(cursor, 3)
    path = segment(directory, -1)
    path.write_bytes(path.read_bytes() + b"half an append")
    result = repair(directory)
    assert {fault.kind for fault in result.repaired} == {"index", "tail", "torn_tail", "cursor"}
    assert result.kept == [cursor.with_name(cursor.name + ".damaged")]
    check(directory, result, set())


def test_a_missing_first_segment_moves_the_beginning(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    segment(directory, 0).unlink()
    first = int(segment(directory, 0).stem)
    result = repair(directory)
    assert [(fault.kind, fault.next) for fault in result.repaired] == [("missing", first)]
    assert verify(directory).faults == []
    storage = LocalStorage(directory)
    assert storage.bounds().first == first
    assert storage.counts()["damaged"] == first
    storage.close()


def test_producers_are_known_after_their_state_was_damaged(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s", wal={"segment_bytes": 1500, "max_segments": 3})
    storage = LocalStorage(directory)
    body = encode_body(events(5), "none")
    storage.write([Append([body], Producer("quiet", 7))])
    while len(storage.closed()) < 2:
        storage.write([Append([body], Producer("busy", storage.bounds().next))])
    storage.close()
    path = segment(directory, 1)
    flip(path, HEADER_SIZE + 2)
    assert repair(directory).lost == []
    storage = LocalStorage(directory)
    while storage.bounds().first <= int(path.stem):  # nothing before the repaired segment is left
        storage.write([Append([body])])
    assert storage.write([Append([body], Producer("quiet", 7))]) == [Appended(0, 5, duplicate=True)]
    storage.close()


def test_bodies_that_are_no_arrow_are_left_out(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s")
    storage = LocalStorage(directory)
    storage.write([Append([encode_body(events(5), "none")]), Append([Body(b"no arrow", 3, 3)])])
    storage.write([Append([encode_body(events(5, 8), "none")])])
    storage.close()
    check(directory, repair(directory), {5, 6, 7}, end=13)


def test_settings_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    (directory / "stream.json").write_text("{")
    with pytest.raises(Invalid, match="rewrite its settings"):
        repair(directory)


def test_a_repair_while_others_append_and_read(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    change(directory, wal={"max_segments": 100_000})  # none is evicted, however fast the writer is
    storage, reader = LocalStorage(directory), LocalStorage(directory)
    before, _ = content(reader)
    done, written = threading.Event(), []

    def append() -> None:
        number = 60
        while not done.is_set():
            written.append(storage.write([Append([encode_body(events(1, number), "none")])])[0])
            number += 1

    writer = threading.Thread(target=append)
    writer.start()
    try:
        lost = damage_body(directory, 1, 1) | damage_body(directory, 0, 2)
        result = repair(directory)
        assert offsets(result.lost) == lost
        for log in (reader, LocalStorage(directory)):
            found, told = content(log)
            assert told <= lost
            assert {offset: value for offset, value in found.items() if offset < 60}.items() <= before.items()
            assert set(range(60)) == lost | {offset for offset in found if offset < 60}
    finally:
        done.set()
        writer.join()
    assert written == [Appended(60 + i, 61 + i) for i in range(len(written))]
    found, told = content(storage)
    assert len(found) + len(lost) == 60 + len(written)
    assert verify(directory).sound
    storage.close()
    reader.close()


class Dies(Files):
    """A process that dies at the n-th occurrence of a step."""

    def __init__(self, name: str, occurrence: int) -> None:
        self.name, self.left = name, occurrence

    def step(self, name: str) -> None:
        if name == self.name:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("occurrence", [1, 2, 3])
@pytest.mark.parametrize(
    "step", ["repair", "repair swap", "repair index", "roll", "rename", "directory sync"]
)
def test_a_repair_that_was_killed_can_be_done_again(tmp_path: Path, step: str, occurrence: int) -> None:
    directory = fill(tmp_path / "s")
    lost = damage_body(directory, 0, 1) | damage_header(directory, 1, 1) | damage_body(directory, -1, 1)
    assert status_of(fork(lambda: repair(directory, files=Dies(step, occurrence)))) in (0, signal.SIGKILL)
    storage = open_storage(directory)
    found, told = content(storage)
    assert found == {offset: b"e%d" % offset for offset in range(60) if offset not in lost}
    assert told == lost
    storage.close()
    check(directory, repair(directory), lost)


# Databases


def test_damaged_rows_of_a_database_are_left_out(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s", storage="sqlite")
    user = open_storage(directory)  # somebody else has it open
    with sqlite3.connect(directory / "log.db") as db:
        db.execute("UPDATE frames SET body = zeroblob(300) WHERE base = 10")
        db.execute("DELETE FROM frames WHERE base IN (20, 25)")
        db.execute("UPDATE frames SET count = 7 WHERE base = 40")
    db.close()
    result = repair(directory)
    assert [path.read_bytes()[:1] for path in result.kept] == [bytes(1), b"\xff"]
    check(directory, result, {*range(10, 15), *range(20, 30), *range(40, 45)})
    user.close()


@pytest.mark.parametrize("page", range(1, 27, 4))
def test_damaged_pages_of_a_database(tmp_path: Path, page: int) -> None:
    directory = fill(tmp_path / "s", storage="sqlite", frames=200)
    path = directory / "log.db"
    data = bytearray(path.read_bytes())
    assert page * PAGE < len(data)
    data[page * PAGE : page * PAGE + 200] = b"\x55" * 200
    path.write_bytes(data)
    result = repair(directory)
    assert result.left == []
    assert len(offsets(result.lost)) <= 60  # one page of rows
    check(directory, result, offsets(result.lost), end=1000)
