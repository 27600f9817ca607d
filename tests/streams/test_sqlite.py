"""The log in a database: its size, its durability, and what is left of it after damage."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.specs.stream import StreamSpec, Wal
from penstock.streams.files import Files
from penstock.streams.frames import encode_body
from penstock.streams.guarantee import guarantee
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.sqlite.rows import PAGE
from penstock.streams.sqlite.storage import LARGEST_JOURNAL, SqliteStorage
from penstock.streams.storage import Append, Appended, Cursor, Producer, WriteFailed
from tests.forks import fork, status_of
from tests.streams.kit import change, events, make_stream, values

PAYLOAD = random.Random(3).randbytes(10_000)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_stream(tmp_path / "s", storage="sqlite")


@pytest.fixture
def storage(directory: Path) -> Iterator[SqliteStorage]:
    storage = SqliteStorage(directory)
    yield storage
    storage.close()


def fill(storage: SqliteStorage, count: int, **more: Any) -> None:
    """Append large events that no codec makes smaller."""
    for _ in range(count):
        storage.write([Append([encode_body(pa.record_batch({"value": [PAYLOAD]}), "none")], **more)])


def file_size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("log.db*"))


def test_a_stream_is_opened_as_its_settings_say(directory: Path) -> None:
    storage = open_storage(directory)
    assert isinstance(storage, SqliteStorage)
    storage.close()


def test_the_file_never_grows_beyond_its_limit(directory: Path, storage: SqliteStorage) -> None:
    change(directory, wal={"retention_bytes": 1_000_000})
    largest = 0
    for _ in range(40):
        fill(storage, 10)
        largest = max(largest, (directory / "log.db").stat().st_size)
        assert file_size(directory) < 1_000_000 * 1.5 + 100_000  # the journal is a quarter of the limit
    assert 900_000 < largest <= 1_000_000 + 40_000
    assert storage.counts()["evicted_retention_bytes"] == storage.bounds().first > 0


def test_a_lower_limit_makes_the_file_smaller(directory: Path, storage: SqliteStorage) -> None:
    fill(storage, 200)
    storage.maintain()
    assert file_size(directory) > 2_000_000
    change(directory, wal={"retention_bytes": 500_000})
    storage.maintain()
    assert file_size(directory) < 550_000
    assert storage.usage().bytes <= 500_000
    assert len(values(Log(storage))) == 200 - storage.bounds().first > 30


def test_an_append_beyond_the_limit_is_kept_alone(directory: Path, storage: SqliteStorage) -> None:
    change(directory, wal={"retention_bytes": 200_000})
    fill(storage, 5)
    bodies = [encode_body(pa.record_batch({"value": [PAYLOAD]}), "none") for _ in range(40)]
    assert storage.write([Append(bodies)]) == [Appended(5, 45)]
    assert storage.bounds().first == 5
    fill(storage, 1)
    assert storage.bounds().first > 5


def test_old_journals_are_written_into_the_database(directory: Path, storage: SqliteStorage) -> None:
    fill(storage, 1500)
    assert (directory / "log.db-wal").stat().st_size < LARGEST_JOURNAL + 100 * PAGE
    storage.maintain()
    assert (directory / "log.db-wal").stat().st_size == 0


class Syncs(Files):
    """Counts what the storage syncs itself."""

    def __init__(self) -> None:
        self.count = 0

    def sync(self, fd: int) -> None:
        self.count += 1
        super().sync(fd)


def test_what_is_not_synced_is_synced_by_flush(directory: Path) -> None:
    files = Syncs()
    storage = SqliteStorage(directory, files)
    fill(storage, 2)
    before = files.count
    storage.flush()
    storage.flush()
    assert files.count == before + 1
    change(directory, wal={"sync": True})
    fill(storage, 2)  # SQLite syncs these before it returns
    assert storage._database._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    storage.close()
    assert files.count == before + 1


def test_a_disk_that_cannot_sync_is_not_trusted(directory: Path) -> None:
    class Failing(Files):
        def sync(self, fd: int) -> None:
            raise OSError(5, "Input/output error")

    make_stream(directory, storage="sqlite")
    storage = SqliteStorage(directory)
    storage.write([Append([encode_body(events(3), "none")])])
    storage.files = storage._database._files = Failing()
    storage.flush()
    storage.write([Append([encode_body(events(2, 3), "none")])])
    assert values(Log(storage)) == [b"e%d" % i for i in range(5)]
    storage.close()


def test_a_full_disk_refuses_and_recovers(directory: Path, storage: SqliteStorage) -> None:
    fill(storage, 2)
    db = storage._database._writer
    db.execute(f"PRAGMA max_page_count={db.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(Exception, match="disk full"):
        fill(storage, 20)
    storage.count(duplicates=1)
    held = storage.bounds().next
    db.execute(f"PRAGMA max_page_count={2**31}")
    fill(storage, 1)
    assert storage.bounds().next == held + 1 == len(values(Log(storage)))


def test_a_child_process_opens_the_file_anew(directory: Path, storage: SqliteStorage) -> None:
    fill(storage, 1)

    def append() -> None:
        fill(storage, 1)
        assert storage.bounds().next == 2

    assert status_of(fork(append)) == 0
    fill(storage, 1)
    assert storage.bounds().next == 3


# Damage


def test_a_damaged_row_is_a_lost_span(directory: Path, storage: SqliteStorage) -> None:
    for first in range(0, 12, 3):
        storage.write([Append([encode_body(events(3, first), "none")])])
    damage = [
        ("UPDATE frames SET body = x'00' || substr(body, 2) WHERE base = 3", (3, 6, "wrong checksum")),
        ("UPDATE frames SET count = 2 WHERE base = 3", (3, 5, "wrong checksum")),
        ("UPDATE frames SET count = 900 WHERE base = 3", (3, 6, "wrong checksum")),
        ("DELETE FROM frames WHERE base = 3", (3, 6, "missing")),
    ]
    for statement, expected in damage:
        with sqlite3.connect(directory / "log.db") as db:
            db.execute(statement)
        chunks = list(Log(storage).read(0))
        lost = [(chunk.base, chunk.next, chunk.lost) for chunk in chunks if chunk.lost]
        assert expected in lost
        assert [offset for first, next, _ in lost for offset in range(first, next)] == [3, 4, 5]
        read = [value for chunk in chunks if chunk.batch for value in chunk.batch.column(0).to_pylist()]
        assert read == [b"e%d" % i for i in (0, 1, 2, 6, 7, 8, 9, 10, 11)]


def build(directory: Path, count: int = 200) -> None:
    """A closed database with some rows on each page."""
    storage = SqliteStorage(directory)
    bodies = [encode_body(events(1, number), "none") for number in range(count)]
    storage.write([Append([body], producer=Producer("p", number)) for number, body in enumerate(bodies)])
    storage.move_cursor(Cursor("r", 7))
    storage.close()


def read_all(storage: SqliteStorage) -> tuple[dict[int, bytes], set[int]]:
    """What can be read, by offset; and what is told as lost."""
    found: dict[int, bytes] = {}
    lost: set[int] = set()
    for chunk in Log(storage).read(storage.bounds().first):
        if chunk.batch is None:
            lost |= set(range(chunk.base, chunk.next))
        else:
            found |= dict(zip(range(chunk.base, chunk.next), chunk.batch.column(0).to_pylist(), strict=True))
    return found, lost


@pytest.mark.parametrize("page", range(0, 40, 3))
def test_opening_a_damaged_file_ends_in_a_log_that_serves(directory: Path, page: int) -> None:
    build(directory)
    path = directory / "log.db"
    data = bytearray(path.read_bytes())
    data[page * PAGE : page * PAGE + 100] = random.Random(page).randbytes(100)
    path.write_bytes(data)
    storage = SqliteStorage(directory)
    found, lost = read_all(storage)
    assert all(value == b"e%d" % offset for offset, value in found.items())
    assert not found.keys() & lost
    append = Append([encode_body(events(1), "none")])
    try:
        [result] = storage.write([append])
    except WriteFailed:  # the damage is met only now, and mended before the next one
        [result] = storage.write([append])
    assert isinstance(result, Appended)
    assert result.first >= 200
    storage.close()


def test_a_file_that_is_no_database_is_set_aside(directory: Path) -> None:
    build(directory)
    path = directory / "log.db"
    path.write_bytes(b"x" * path.stat().st_size)
    storage = SqliteStorage(directory)
    [result] = storage.write([Append([encode_body(events(1), "none")])])
    assert isinstance(result, Appended)
    assert result.first >= 200  # offsets are never given out twice
    assert (directory / "log.db.damaged").exists()
    storage.close()


def test_a_damaged_head_takes_nothing_with_it(directory: Path) -> None:
    build(directory)
    path = directory / "log.db"
    path.write_bytes(b"x" * PAGE + path.read_bytes()[PAGE:])
    storage = SqliteStorage(directory)
    found, lost = read_all(storage)
    assert found == {offset: b"e%d" % offset for offset in range(200)}
    assert not lost
    assert [cursor.next for cursor in storage.cursors()] == [7]
    again = Append([encode_body(events(1), "none")], Producer("p", 199))
    assert storage.write([again]) == [Appended(199, 200, duplicate=True)]
    assert sorted(path.name for path in directory.glob(".*")) == []
    storage.close()


def damage_root(path: Path) -> None:
    """Take the way to all events away."""
    db = sqlite3.connect(path)
    [(root,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'frames'")
    db.close()
    data = bytearray(path.read_bytes())
    data[(root - 1) * PAGE : root * PAGE] = b"\x55" * PAGE
    path.write_bytes(data)


def test_events_are_found_without_the_tree_that_leads_to_them(directory: Path) -> None:
    build(directory)
    storage = SqliteStorage(directory)
    fill(storage, 5)  # these take several pages each
    storage.move_cursor(Cursor("r", 204))
    storage.write([Append([encode_body(events(2), "zstd")], tx=((0, 2, "t", True),))])
    storage.close()
    damage_root(directory / "log.db")
    storage = SqliteStorage(directory)
    found, lost = read_all(storage)
    assert [found[offset] for offset in range(200)] == [b"e%d" % offset for offset in range(200)]
    assert [found[offset] for offset in range(200, 205)] == [PAYLOAD] * 5
    assert (len(found), lost) == (207, set())
    assert storage.transactions(0, 207) == [(205, 207, "t", True)]
    assert [cursor.next for cursor in storage.cursors()] == [204]
    storage.close()


def test_damage_of_a_file_that_others_have_open_is_mended_by_the_last(directory: Path) -> None:
    build(directory)
    one, two = SqliteStorage(directory), SqliteStorage(directory)
    damage_root(directory / "log.db")
    for storage in (one, two):
        with pytest.raises(WriteFailed, match="malformed"):
            fill(storage, 1)
    with pytest.raises(WriteFailed, match="malformed"):
        fill(one, 1)
    two.close()
    fill(one, 1)
    assert one.bounds().next == 201
    assert len(values(Log(one))) == 201
    assert (directory / "log.db.damaged").exists()
    one.close()


class Dies(Files):
    """A process that dies at a step."""

    def __init__(self, step: str) -> None:
        self.named = step

    def step(self, name: str) -> None:
        if name == self.named:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("step", ["salvaged", "set aside", "take over", "commit", "retention delete"])
def test_a_kill_at_any_step_leaves_a_log_that_serves(directory: Path, step: str) -> None:
    build(directory)
    change(directory, wal={"retention_bytes": 1})
    if step in ("salvaged", "set aside", "take over"):
        path = directory / "log.db"
        path.write_bytes(b"x" * 100 + path.read_bytes()[100:])
    assert status_of(fork(lambda: fill(SqliteStorage(directory, Dies(step)), 20))) == signal.SIGKILL
    storage = SqliteStorage(directory)
    found, _ = read_all(storage)
    assert all(value == b"e%d" % offset for offset, value in found.items() if offset < 200)
    fill(storage, 1)
    assert storage.bounds().next >= 201
    storage.close()


def test_a_read_only_directory_is_read_and_refuses_writes(directory: Path) -> None:
    class ReadOnly(Files):
        def open_shared(self, path: Path, size: int) -> tuple[int, bool]:
            return os.open(path, os.O_RDONLY), False

    build(directory, 3)
    storage = SqliteStorage(directory, ReadOnly())
    with pytest.raises(WriteFailed, match="read-only"):
        fill(storage, 1)
    storage.count(duplicates=1)
    assert values(Log(storage)) == [b"e0", b"e1", b"e2"]
    assert [cursor.next for cursor in storage.cursors()] == [7]
    storage.close()


def test_the_guarantee_tells_the_limit() -> None:
    assert "at most 1 GiB" in guarantee(StreamSpec(storage="sqlite"))
    assert "at most 2 MiB" in guarantee(StreamSpec(storage="sqlite", wal=Wal(retention_bytes=2 << 20)))
