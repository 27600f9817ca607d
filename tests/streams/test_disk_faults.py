"""Disks that fail: nothing acknowledged is lost, nothing refused is seen, and the next append works."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.specs.positions import Position
from penstock.streams.files import Files
from penstock.streams.frames import encode_body
from penstock.streams.local import tail
from penstock.streams.local.segments import list_segments
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.storage import Append, Appended, Cursor, Full, WriteFailed
from tests.streams.kit import NIGHTLY, change, events, fast_directory, make_stream, opened, values

SMALL = {"segment_bytes": 1500, "retention_ms": None, "max_segments": 2, "batch": {"max_events": 3}}
APPENDS = 4


class Faulty(Files):
    """A disk that fails from its n-th operation on, a number of times; or only with operations of a kind."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.syncs: list[int] = []
        """Inodes that were synced."""
        self._arm: tuple[int, int, int, tuple[str, ...]] = (0, 0, 0, ())

    def fail(self, code: int, *kinds: str, skip: int = 0, times: int = 1) -> None:
        """Fail with an error, after `skip` operations of these kinds; none given: of any kind."""
        self._arm = code, skip, times, kinds

    def _at(self, kind: str) -> None:
        self.done.append(kind)
        code, skip, times, kinds = self._arm
        if not times or (kinds and kind not in kinds):
            return
        self._arm = (code, skip - 1, times, kinds) if skip else (code, 0, times - 1, kinds)
        if not skip:
            raise OSError(code, os.strerror(code))

    def create(self, path: Path) -> int:
        self._at("create")
        return super().create(path)

    def open(self, path: Path) -> int:
        self._at("open")
        return super().open(path)

    def pwrite(self, fd: int, data: memoryview, position: int) -> int:
        if len(data) > 1:  # it comes in two parts, and the second may not come any more
            data = data[: len(data) // 2]
        self._at("write")
        return super().pwrite(fd, data, position)

    def truncate(self, fd: int, size: int) -> None:
        self._at("truncate")
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._at("sync")
        self.syncs.append(os.fstat(fd).st_ino)
        super().sync(fd)

    def sync_directory(self, directory: Path) -> None:
        self._at("sync directory")
        super().sync_directory(directory)

    def rename(self, source: Path, target: Path) -> None:
        self._at("rename")
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._at("remove")
        super().remove(path)


def append(storage: LocalStorage, *numbers: int) -> Appended:
    """Append events at once: one frame each."""
    bodies = [encode_body(events(1, number, size=60), "none") for number in numbers]
    (done,) = storage.write([Append(bodies)])
    assert isinstance(done, Appended)
    return done


def check(storage: LocalStorage, written: list[int]) -> None:
    """Exactly what was acknowledged is there, except for what retention has removed."""
    log = Log(storage)
    bounds = log.bounds()
    assert bounds.next == len(written)
    expected = [events(1, number, size=60).column(0)[0].as_py() for number in written]
    assert values(log) == expected[bounds.first :]
    assert storage.counts()["damaged"] == 0


def lives_through(directory: Path, files: Faulty, times: int) -> None:
    """Append, being refused now and then, and look from several sides at what is there."""
    storage = LocalStorage(directory, files)
    written: list[int] = []
    number = 0
    for _ in range(APPENDS):
        for _ in range(times + 1):
            numbers = [number, number + 1]
            number += 2
            try:
                done = append(storage, *numbers)
            except (Full, WriteFailed):
                check(storage, written)
                continue
            assert done.first == len(written)
            written += numbers
            break
        else:
            pytest.fail("an append was refused although the disk was well")
        with suppress(WriteFailed):
            storage.move_cursor(Cursor("r", len(written)))
        storage.maintain()
    check(storage, written)
    storage.close()
    for without in ("nothing", "tail"):
        (directory / without).unlink(missing_ok=True)
        storage = LocalStorage(directory)
        check(storage, written)
        append(storage, number, number)
        written += [number, number]
        check(storage, written)
        assert [cursor.reader for cursor in storage.cursors()] in ([], ["r"])
        storage.close()


def operations(directory: Path, *, sync: bool) -> list[str]:
    """What a disk is asked to do when all is well."""
    make_stream(directory, wal={**SMALL, "sync": sync})
    files = Faulty()
    lives_through(directory, files, 0)
    return files.done


@pytest.mark.slow
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "no-sync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("times", [1, 3] if NIGHTLY else [2])
def test_every_operation_fails(code: int, sync: bool, times: int) -> None:
    """One operation after another is the first that fails; with it fails what is done about that."""
    with fast_directory() as root:
        done = operations(root / "well", sync=sync)
        kinds = {"create", "write", "sync", "sync directory", "rename", "remove"}
        assert kinds <= set(done)
        for skip in range(len(done)):
            directory = make_stream(root / str(skip), wal={**SMALL, "sync": sync})
            files = Faulty()
            files.fail(code, skip=skip, times=times)
            lives_through(directory, files, times)


def test_the_kind_of_the_error_is_told(tmp_path: Path) -> None:
    files = Faulty()
    storage = LocalStorage(make_stream(tmp_path / "s"), files)
    append(storage, 0)
    files.fail(errno.ENOSPC, "write", skip=1)
    with pytest.raises(Full, match="disk full"):
        append(storage, 1)
    files.fail(errno.EIO, "write", skip=1)
    with pytest.raises(WriteFailed, match="Input/output error"):
        append(storage, 2)
    check(storage, [0])
    append(storage, 3)
    check(storage, [0, 3])
    storage.close()


def test_a_full_disk_does_not_close_a_segment(tmp_path: Path) -> None:
    """Or each attempt would make one, and the cap on their number would drop events."""
    files = Faulty()
    storage = LocalStorage(make_stream(tmp_path / "s"), files)
    append(storage, 0)
    files.fail(errno.ENOSPC, "write", times=20)
    for _ in range(20):
        with pytest.raises(Full):
            append(storage, 1)
    append(storage, 2)
    check(storage, [0, 2])
    assert storage.usage().segments == 1
    storage.close()


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "no-sync"])
def test_after_a_failed_sync_the_segment_is_not_used_again(tmp_path: Path, sync: bool) -> None:
    """A second sync of the same file would say that all is well (the pages were forgotten by then)."""
    files = Faulty()
    directory = make_stream(tmp_path / "s", wal={"sync": sync})
    storage = LocalStorage(directory, files)
    append(storage, 0)
    files.fail(errno.EIO, "sync")
    if sync:
        with pytest.raises(WriteFailed):
            append(storage, 1)
    else:
        storage.flush()
    assert append(storage, 2).first == 1
    assert list(list_segments([directory])) == [0, 1]
    check(storage, [0, 2])
    storage.close()


def test_what_a_failed_sync_has_lost_is_counted(tmp_path: Path) -> None:
    files = Faulty()
    directory = make_stream(tmp_path / "s")
    storage = LocalStorage(directory, files)
    append(storage, 0, 1)
    (path,) = list_segments([directory]).values()
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # as if the page had not come to the disk
    files.fail(errno.EIO, "sync")
    storage.flush()
    append(storage, 2)
    assert storage.counts()["damaged"] == 1
    assert [(c.base, c.next, c.lost) for c in Log(storage).read(0)] == [
        (0, 1, None),
        (1, 2, "wrong checksum"),
        (2, 3, None),
    ]
    storage.close()


class ReadOnly(Files):
    """A disk that was mounted read-only."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    create = open = write = pwrite = truncate = sync = rename = remove = make_directory = _refuse

    def open_shared(self, path: Path, size: int) -> tuple[int, bool]:
        if not path.exists():
            self._refuse()
        return os.open(path, os.O_RDONLY), False


def fill(directory: Path) -> Path:
    """Make a stream of six events in three segments."""
    make_stream(directory, wal={"segment_bytes": 1})
    with opened(directory) as log:
        for number in range(3):
            log.append(events(2, 2 * number))
        log.move_cursor(Cursor("r", 4))
    return directory


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    return fill(tmp_path / "s")


@pytest.mark.parametrize("state", ["exact tail", "tail of another boot", "no tail", "nothing but segments"])
def test_a_read_only_directory_can_be_read(filled: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"no tail": ["tail"], "nothing but segments": ["tail", "lock", "counters"]}
    for name in gone.get(state, ()):
        (filled / name).unlink(missing_ok=True)
    if state == "tail of another boot":
        monkeypatch.setattr(tail, "boot_id", lambda: bytes(16))
    before = {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()}
    with opened(filled, ReadOnly()) as log:
        assert values(log) == [b"e%d" % number for number in range(6)]
        assert log.resolve(Position(kind="earliest")) == 0
        assert log.storage.usage().segments == 3
        assert [cursor.next for cursor in log.storage.cursors()] == [4]
        with pytest.raises(WriteFailed, match=r"read-only|Read-only"):
            log.append(events(1))
        with pytest.raises(WriteFailed, match="Read-only"):
            log.move_cursor(Cursor("r", 5))
        log.storage.count(damaged=1)
    assert {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()} == before


def test_a_directory_that_is_really_read_only() -> None:
    """With another user's rights, where root would be let in."""
    with tempfile.TemporaryDirectory() as root:  # others may enter it, unlike those of pytest
        filled = fill(Path(root) / "s")
        Path(root).chmod(0o755)
        for path in [filled, *filled.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", AS_NOBODY, str(filled)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        for path in [filled, *filled.rglob("*")]:
            path.chmod(0o755)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-2:] == ["6", "the directory of the stream is read-only"]
        with opened(filled) as log:
            assert log.append(events(1)).first == 6


AS_NOBODY = """
import os, sys
from pathlib import Path
from penstock.streams.storage import WriteFailed
from tests.streams.kit import events, opened, values
events(1)
if os.getuid() == 0:
    os.setuid(65534)
with opened(Path(sys.argv[1])) as log:
    print(len(values(log)))
    try:
        log.append(events(1))
    except WriteFailed as error:
        print(error)
"""


def test_a_directory_that_becomes_writable(filled: Path) -> None:
    files = Switch()
    files.read_only = True
    with opened(filled, files) as log:
        with pytest.raises(WriteFailed):
            log.append(events(1))
        files.read_only = False
        assert log.append(events(1, 6)).first == 6
        assert len(values(log)) == 7


class Switch(Files):
    """A disk that is read-only for a while, and whose room is told."""

    read_only = False
    room = 1 << 30

    def open_shared(self, path: Path, size: int) -> tuple[int, bool]:
        return (os.open(path, os.O_RDONLY), False) if self.read_only else super().open_shared(path, size)

    def free_bytes(self, directory: Path) -> int:
        return self.room


def test_appends_stop_before_the_disk_is_full(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s", free_bytes=10_000, wal={"segment_bytes": 1, "retention_ms": None})
    files = Switch()
    with opened(directory, files) as log:
        for number in range(4):
            log.append(events(1, number))
        files.room = 9_999
        storage = log.storage
        assert isinstance(storage, LocalStorage)
        with pytest.raises(Full, match="disk full"):
            append(storage, 4)
        assert values(log) == [b"e0", b"e1", b"e2", b"e3"]
        log.move_cursor(Cursor("r", 2))
        change(directory, wal={"max_segments": 3})  # one of them is the next one, and empty
        log.storage.maintain()
        assert log.bounds().first == 2
        waits = log.submit(events(1, 4), flush=True)
        with pytest.raises(TimeoutError):
            waits.future.result(0.2)
        assert log.fill["full"] == "disk_full"
        files.room = 1 << 30
        assert waits.future.result(10).first == 4
        assert values(log)[-1] == b"e4"


def test_retention_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s", free_bytes=10_000, wal={"segment_bytes": 1, "retention_ms": None})

    class Frees(Switch):
        room = 0

        def remove(self, path: Path) -> None:
            super().remove(path)
            self.room = 1 << 30

    files = Frees()
    files.room = 1 << 30
    with opened(directory, files) as log:
        for number in range(3):
            log.append(events(1, number))
        change(directory, wal={"max_segments": 1})
        files.room = 0
        assert log.append(events(1, 3)).first == 3
