"""Every fault is named with its file and its offsets, and nothing is changed by looking."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from penstock.streams.frames import HEADER_SIZE, Body, encode_body
from penstock.streams.local.segments import Found, list_segments, walk
from penstock.streams.local.storage import LocalStorage
from penstock.streams.pool import open_storage
from penstock.streams.repair.verify import verify
from penstock.streams.storage import Append, Cursor
from tests.streams.kit import events, make_stream

Faults = list[tuple[str, str, int, int]]


def fill(directory: Path, *, storage: str = "local", frames: int = 12, segment_bytes: int = 1500) -> Path:
    """A stream of frames of 5 events, some to a segment."""
    make_stream(directory, storage=storage, wal={"segment_bytes": segment_bytes, "compression": "none"})
    log = open_storage(directory)
    appends = [Append([encode_body(events(5, number * 5), "none")]) for number in range(frames)]
    for group in [appends] if storage == "sqlite" else [[append] for append in appends]:
        log.write(group)
    log.move_cursor(Cursor("r", 3))
    log.close()
    return directory


def segment(directory: Path, number: int) -> Path:
    return list(list_segments([directory]).values())[number]


def frames(path: Path) -> list[Found]:
    fd = os.open(path, os.O_RDONLY)
    found = [f for f in walk(fd, 0, path.stat().st_size, int(path.stem), 2**62) if isinstance(f, Found)]
    os.close(fd)
    return found


def flip(path: Path, at: int) -> None:
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def faults(directory: Path) -> Faults:
    return [(fault.kind, fault.place, fault.first, fault.next) for fault in verify(directory).faults]


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_a_sound_stream_has_no_faults(tmp_path: Path, storage: str) -> None:
    directory = fill(tmp_path / "s", storage=storage)
    content = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    seen: list[tuple[int, int]] = []
    report = verify(directory, lambda done, total: seen.append((done, total)))
    assert report.faults == []
    assert report.sound
    assert report.events == 60
    assert report.bytes > 0
    assert report.segments == (len(list_segments([directory])) if storage == "local" else 1)
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 0
    assert {path: path.read_bytes() for path in content} == content


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_a_stream_nobody_has_written_to_is_sound(tmp_path: Path, storage: str) -> None:
    assert verify(make_stream(tmp_path / "s", storage=storage)).faults == []


def test_a_damaged_body_is_named_with_its_offsets(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    path = segment(directory, 1)
    found = frames(path)[2]
    flip(path, found.position + HEADER_SIZE + 40)
    assert faults(directory) == [("damaged", path.name, found.header.base, found.header.next)]
    assert verify(directory).events == 55
    assert not verify(directory).sound


def test_a_damaged_header_is_named_with_its_offsets(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    for number in (0, -1):
        path = segment(directory, number)
        found = frames(path)[1]
        flip(path, found.position + 20)
        assert ("damaged", path.name, found.header.base, found.header.next) in faults(directory)


def test_what_is_cut_off_or_missing_is_named(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    first, second, third = (segment(directory, number) for number in range(3))
    last = frames(first)[-1]
    os.truncate(first, last.position + 30)
    assert faults(directory) == [("damaged", first.name, last.header.base, last.header.next)]
    second.unlink()
    assert (
        sum(fault.next - fault.first for fault in verify(directory).faults if fault.kind != "index")
        == int(third.stem) - last.header.base
    )


def test_the_first_segment_may_be_missing(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    segment(directory, 0).unlink()
    path = segment(directory, 0)
    assert faults(directory)[0] == ("missing", path.name, 0, int(path.stem))


def test_indexes_are_compared_with_their_segments(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s", frames=20)
    indexes = [segment(directory, number).with_suffix(".index") for number in range(4)]
    indexes[0].unlink()
    flip(indexes[1], 40)
    indexes[2].write_bytes(indexes[3].read_bytes())
    report = verify(directory)
    assert [fault.kind for fault in report.faults] == ["index"] * 3
    assert [fault.place for fault in report.faults] == [index.name for index in indexes[:3]]
    assert report.sound


def test_cursor_tail_and_settings(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    [cursor] = (directory / "cursors").glob("*.cursor")
    flip(cursor, 3)
    flip(directory / "tail", 30)
    assert faults(directory) == [("cursor", f"cursors/{cursor.name}", 0, 0), ("tail", "tail", 0, 0)]
    (directory / "stream.json").write_text(json.dumps({"id": "s"}))
    report = verify(directory)
    assert report.faults[0].kind == "settings"
    assert report.events == 60


def test_a_torn_tail_is_harmless(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    path = segment(directory, -1)
    path.write_bytes(path.read_bytes() + b"half an append")
    assert faults(directory) == [("torn_tail", path.name, 60, 60)]
    report = verify(directory)
    assert report.sound
    assert "never acknowledged" in report.faults[0].message


def test_a_frame_whose_body_is_something_else(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s")
    storage = LocalStorage(directory)
    sound = encode_body(events(5), "none")
    storage.write([Append([sound]), Append([Body(b"no arrow", 3, 3)]), Append([Body(sound.data, 4, 9)])])
    storage.close()
    path = segment(directory, 0)
    assert faults(directory) == [("body", path.name, 5, 8), ("body", path.name, 8, 12)]
    assert "5 events instead of 4" in verify(directory).faults[1].message


def test_offsets_out_of_order(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s")
    path = segment(directory, 0)
    one, two = frames(path)[1:3]
    data = path.read_bytes()
    second = data[two.position : two.position + two.header.size]
    path.write_bytes(data[: one.position] + second + data[two.position :])
    assert faults(directory)[0] == ("order", path.name, one.header.base, one.header.next)


def test_damage_in_a_database(tmp_path: Path) -> None:
    directory = fill(tmp_path / "s", storage="sqlite")
    with sqlite3.connect(directory / "log.db") as db:
        db.execute("UPDATE frames SET body = zeroblob(300) WHERE base = 10")
        db.execute("DELETE FROM frames WHERE base IN (20, 25)")
        db.execute("UPDATE frames SET count = 7 WHERE base = 40")
    db.close()
    assert faults(directory) == [
        ("damaged", "log.db", 10, 15),
        ("missing", "log.db", 20, 30),
        ("damaged", "log.db", 40, 45),
    ]
    (directory / "log.db").write_bytes(b"x" * 5000)
    assert [kind for kind, *_ in faults(directory)] == ["database"]


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_a_stream_in_use_is_read_without_disturbing_anybody(tmp_path: Path, storage: str) -> None:
    directory = make_stream(
        tmp_path / "s",
        storage=storage,
        wal={"segment_bytes": 3000, "retention_bytes": 300_000, "max_segments": 9},
    )
    log = open_storage(directory)
    done = threading.Event()

    def append() -> None:
        body = encode_body(events(20, size=200), "none")
        while not done.is_set():
            log.write([Append([body])])

    writer = threading.Thread(target=append)
    writer.start()
    try:
        reports = [verify(directory) for _ in range(20)]
        while log.bounds().first == 0:
            reports.append(verify(directory))
    finally:
        done.set()
        writer.join()
    assert [fault for report in reports for fault in report.faults if fault.kind != "torn_tail"] == []
    assert reports[-1].events > 0
    assert log.bounds().first > 0
    log.close()
