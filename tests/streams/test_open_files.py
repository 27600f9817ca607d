"""Logs that close their files while they are not used."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.specs.stream import StreamSpec
from penstock.streams import open_files
from penstock.streams.config import StreamConfig, write_config
from penstock.streams.log import Log
from penstock.streams.open_files import OpenFiles
from penstock.streams.pool import Pool
from penstock.streams.storage import Cursor, Producer

LIMIT = 30


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> OpenFiles:
    limited = OpenFiles(LIMIT)
    for module in ("local", "sqlite"):
        monkeypatch.setattr(f"penstock.streams.{module}.storage.OPEN_FILES", limited)
    return limited


def made(root: Path, count: int, storage: str) -> list[Path]:
    for number in range(count):
        spec = StreamSpec(storage=storage)  # type: ignore[arg-type]
        write_config(root / str(number), StreamConfig(str(number), spec))
    return [root / str(number) for number in range(count)]


def event(text: str) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([text.encode()], pa.binary())})


def texts(log: Log) -> list[str]:
    batches = [chunk.batch for chunk in log.read(0) if chunk.batch is not None]
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def descriptors_below(root: Path) -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link).startswith(str(root)) for link in links)


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_idle_logs_rest_and_wake(tmp_path: Path, storage: str) -> None:
    pool = Pool()
    places = made(tmp_path, 40, storage)
    logs = [pool.log(place) for place in places]
    for turn in range(3):
        for number, log in enumerate(logs):
            log.append(event(f"{number}-{turn}"))
            log.move_cursor(Cursor("reader", turn + 1, 1))
            log.count(damaged=1)
            assert descriptors_below(tmp_path) <= LIMIT + 8
    for number, log in enumerate(logs):
        assert texts(log) == [f"{number}-{turn}" for turn in range(3)]
        assert [cursor.next for cursor in log.storage.cursors()] == [3]
        assert log.storage.counts()["damaged"] == 3
    pool.close()
    assert descriptors_below(tmp_path) == 0


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_a_rest_forgets_no_producer(tmp_path: Path, storage: str) -> None:
    [place] = made(tmp_path, 1, storage)
    log = Pool().log(place)
    first = log.append(event("one"), producer=Producer("p", 1, 1))
    assert log.storage.rest()  # type: ignore[attr-defined]
    again = log.append(event("one"), producer=Producer("p", 1, 1))
    assert (again.duplicate, again.first) == (True, first.first)
    log.close()


@pytest.mark.parametrize("storage", ["local", "sqlite"])
def test_threads_use_logs_that_rest_at_any_moment(tmp_path: Path, storage: str) -> None:
    pool = Pool()
    places = made(tmp_path, 12, storage)
    failures: list[BaseException] = []

    def use(offset: int) -> None:
        try:
            for turn in range(60):
                log = pool.log(places[(offset + turn) % len(places)])
                log.append(event(f"{offset}-{turn}"))
                assert f"{offset}-{turn}" in texts(log)
                log.count(duplicates=1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(len(texts(pool.log(place))) for place in places) == 240
    assert sum(pool.log(place).storage.counts()["duplicates"] for place in places) == 240
    pool.close()


def test_a_closed_log_stays_closed(tmp_path: Path) -> None:
    [place] = made(tmp_path, 1, "local")
    log = Pool().log(place)
    log.append(event("one"))
    assert log.storage.rest()  # type: ignore[attr-defined]
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.bounds()


def test_the_pool_keeps_one_instance_while_it_is_used(tmp_path: Path) -> None:
    pool = Pool(kept=2)
    places = made(tmp_path, 5, "local")
    held = pool.log(places[0])
    for place in places[1:]:
        pool.log(place).append(event("x"))
    assert pool.log(places[0]) is held
    assert texts(pool.log(places[1])) == ["x"]
    pool.close()


def test_a_third_of_the_descriptors_is_for_logs() -> None:
    assert OpenFiles().limit == min(open_files.MOST, open_files.descriptors() // 3)
