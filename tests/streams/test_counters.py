"""Counters of a stream."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from penstock.streams.counters import NAMES, PLACES, Counters

NONE = dict.fromkeys(NAMES, 0)


def test_they_add_up_over_processes_and_restarts(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    one, other = Counters(path), Counters(path)
    assert one.all() == NONE
    one.add({"damaged": 2, "duplicates": 1})
    other.add({"damaged": 3})
    assert one.all() == other.all() == {**NONE, "damaged": 5, "duplicates": 1}
    one.close()
    other.close()
    assert Counters(path).all()["damaged"] == 5


def test_nobody_sees_a_change_half_done(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    writers = [Counters(path) for _ in range(2)]

    def write(counters: Counters) -> None:
        for _ in range(500):
            counters.add({"damaged": 1, "duplicates": 1})

    threads = [threading.Thread(target=write, args=(counters,)) for counters in writers]
    for thread in threads:
        thread.start()
    reader, last = Counters(path), 0
    while any(thread.is_alive() for thread in threads):
        seen = reader.all()
        assert seen["damaged"] == seen["duplicates"] >= last
        last = seen["damaged"]
    assert reader.all()["damaged"] == 1000


def test_a_torn_copy_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    for number in range(1, 4):
        counters = Counters(path)
        counters.add({"damaged": 1})
        counters.close()
        data = path.read_bytes()
        place = PLACES[number % 2]
        path.write_bytes(data[: place + 20] + b"\xff" + data[place + 21 :])
        assert Counters(path).all()["damaged"] == number - 1
        path.write_bytes(data)


def test_garbage_counts_nothing_and_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    for garbage in (random.Random(1).randbytes(512), b"\xff" * 512, bytes(512), b"", b"x"):
        path.write_bytes(garbage)
        counters = Counters(path)
        assert counters.all() == NONE
        counters.add({"damaged": 1})
        assert counters.all() == {**NONE, "damaged": 1}
        counters.close()
