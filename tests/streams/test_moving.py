"""Moving a stream into Kafka: the same stream before and after, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import Conflict, Invalid, Unavailable
from penstock.streams.config import read_config
from penstock.streams.kafka import moving
from penstock.streams.kafka.cluster import Cluster
from penstock.streams.kafka.moving import Cancelled, Move, begin, undo
from penstock.streams.kafka.storage import KafkaStorage
from penstock.streams.local.segments import list_segments
from penstock.streams.log import Log
from penstock.streams.moves import LEFT, is_moving
from penstock.streams.moves import moving as only_mover
from penstock.streams.pool import open_storage
from penstock.streams.storage import Cursor, Fenced, Producer, Refusal
from tests.cli.commands import wait_for
from tests.kafka_server import Kafka
from tests.streams.kit import NIGHTLY, change, cluster_of, events, fast_directory, make_stream, opened

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(broker: Kafka) -> Cluster:
    return cluster_of(broker.address)


def move(directory: Path, cluster: Cluster) -> None:
    """Move a stream, as a server does."""
    Move(directory, begin(directory, cluster), lambda done, total: None, lambda: False).run()


def everything(log: Log, producers: list[str]) -> dict[str, Any]:
    """All that a user of a stream can see."""
    storage, bounds = log.storage, log.bounds()
    chunks = list(log.read(bounds.first))
    return {
        "bounds": bounds,
        "events": [
            (chunk.base, chunk.next, chunk.time_us, chunk.lost, chunk.batch and chunk.batch.to_pylist())
            for chunk in chunks
        ],
        "transactions": storage.transactions(bounds.first, bounds.next),
        "cursors": storage.cursors(),
        "counts": dict(storage.counts()),
        "producers": {name: storage.progress(name) for name in producers},
        "times": [log.storage.offset_at(chunk.time_us) for chunk in chunks],
    }


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 40)),
        st.tuples(st.just("batch"), st.sampled_from("ab"), st.integers(0, 50), st.integers(0, 3)),
        st.tuples(st.just("transaction"), st.integers(1, 5)),
        st.tuples(st.just("cursor"), st.sampled_from("rs"), st.integers(0, 60), st.integers(0, 3)),
        st.tuples(st.just("maintain")),
    ),
    max_size=25,
)


def apply(log: Log, operation: tuple[Any, ...]) -> None:
    """An operation of a user; one that is refused changes nothing."""
    try:
        match operation:
            case ["append", count]:
                log.append(events(count, size=30))
            case ["batch", name, number, epoch]:
                log.append(
                    events(2, number), producer=Producer(name, number, epoch, f"d{number}", f"at {number}")
                )
            case ["transaction", count]:
                log.append(events(count), tx=[(0, count, f"tx{count}", True)])
            case ["cursor", name, offset, epoch]:
                log.move_cursor(Cursor(name, offset, epoch, at=1.0, skipped=offset % 3))
            case _:
                log.maintain()
    except Refusal:
        pass


@settings(
    max_examples=100 if NIGHTLY else 6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(before=OPERATIONS, after=OPERATIONS, evicts=st.booleans())
def test_a_moved_stream_is_the_same_stream(
    broker: Kafka, before: list[Any], after: list[Any], evicts: bool
) -> None:
    """And goes on as the local one would: the same operations have the same results."""
    wal = {"retention_ms": None, **({"segment_bytes": 600, "max_segments": 3} if evicts else {})}
    with fast_directory() as home:
        twin, directory = (make_stream(home / name, wal=wal) for name in ("twin", "s"))
        with opened(directory) as log, opened(twin) as other:
            for operation in before:
                apply(log, operation)
                apply(other, operation)
            was = everything(log, ["a", "b"])
            cluster = cluster_of(broker.address)
            move(directory, cluster)
            assert everything(log, ["a", "b"]) == was
            assert isinstance(log.storage, KafkaStorage)
            with opened(directory) as anew:
                assert everything(anew, ["a", "b"]) == was
            first = was["bounds"].next
            if not evicts:  # a local stream removes whole segments, Kafka frames
                for operation in after:
                    apply(log, operation)
                    apply(other, operation)
                here, there = everything(log, ["a", "b"]), everything(other, ["a", "b"])
                for part in ("bounds", "transactions", "counts", "producers", "cursors"):
                    assert here[part] == there[part], part
                new = [chunk[4] for chunk in here["events"] if chunk[0] >= first]
                assert new == [chunk[4] for chunk in there["events"] if chunk[0] >= first]


def test_a_high_first_offset_and_an_empty_stream_stay(cluster: Cluster, tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s", wal={"retention_ms": 1, "segment_ms": 1})
    with opened(directory) as log:
        log.append(events(1000))
        time.sleep(0.01)
        log.maintain()
        log.maintain()
        assert (log.bounds().first, log.bounds().next) == (1000, 1000)
        change(directory, wal={"retention_ms": None})
        move(directory, cluster)
        assert (log.bounds().first, log.bounds().next) == (1000, 1000)
        assert log.append(events(1)).first == 1000


def test_damage_stays_at_its_offsets(cluster: Cluster, tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "s", wal={"compression": "none"})
    with opened(directory) as log:
        for number in range(5):
            log.append(events(10, 10 * number, size=50))
        spans = list(log.storage.spans(0))
        (segment,) = list_segments([directory]).values()
    data = bytearray(segment.read_bytes())
    body, header = (spans[number].token.found.position for number in (1, 3))  # type: ignore[attr-defined]
    data[body + 200] ^= 1
    data[header + 20] ^= 1
    segment.write_bytes(data)
    with opened(directory) as log:
        before = [(chunk.base, chunk.next, chunk.lost is None) for chunk in log.read(0)]
        assert [sound for *_, sound in before] == [True, False, True, False, True]
        move(directory, cluster)
        assert [(chunk.base, chunk.next, chunk.lost is None) for chunk in log.read(0)] == before


def test_writers_and_readers_go_on_while_the_stream_is_moved(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three writers, one of them in another process; each event is there once, in its writer's order."""
    monkeypatch.setattr(moving, "ROUNDS", 3)
    directory = make_stream(tmp_path / "s", wal={"segment_bytes": 20_000})
    stop = threading.Event()
    done: dict[str, list[int]] = {"x": [], "y": []}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.streams.moving_writer", str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with opened(directory) as log:

        def write(name: str) -> None:
            number = 0
            while not stop.is_set():
                appended = log.append(events(3, number), producer=Producer(name, number))
                assert not appended.duplicate
                done[name].append(appended.first)
                log.move_cursor(Cursor(name, appended.next, 1))
                log.count(dead_letters=1)
                number += 1

        threads = [threading.Thread(target=write, args=(name,)) for name in done]
        for thread in threads:
            thread.start()
        first = int(child.stdout.readline())  # of the other process, which has begun now
        time.sleep(0.3)
        move(directory, cluster)
        at = log.bounds().next
        later = {name: log.progress(name).following + 5 for name in ("x", "y", "z")}
        wait_for("all writers", lambda: all(log.progress(name).following > n for name, n in later.items()))
        stop.set()
        for thread in threads:
            thread.join()
        told = child.communicate("stop\n", timeout=60)[0]
        done["z"] = [first, *map(int, told.split())]
        offsets = sorted(offset for firsts in done.values() for offset in firsts)
        assert offsets == list(range(0, log.bounds().next, 3)), "no append is lost, none is there twice"
        assert all(firsts == sorted(firsts) for firsts in done.values())
        assert log.storage.counts()["dead_letters"] == len(done["x"]) + len(done["y"])
        assert {c.reader: c.next for c in log.storage.cursors()} == {
            name: done[name][-1] + 3 for name in ("x", "y")
        }
        assert first < at < done["z"][-1]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    directory = make_stream(tmp_path / "s", wal={"segment_bytes": 50_000, "compression": "none"})
    with opened(directory) as log:
        for number in range(40):
            log.append(events(50, 50 * number, size=100), producer=Producer("p", number))
    return directory


STEPS = ("copied", "kept", "switching", "left", "switched")


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_mover_leaves_the_stream_whole(cluster: Cluster, filled: Path, step: str) -> None:
    """Kill -9 of the process that moves: the stream is in one place, and another attempt ends the move."""
    with opened(filled) as log:
        was = everything(log, ["p"])
        environment = {**os.environ, "PENSTOCK_TEST_KILL_AT": step}
        command = [sys.executable, "-m", "tests.streams.moving_child", str(filled)]
        child = subprocess.run(
            [*command, cluster.brokers, cluster.prefix], env=environment, check=False, capture_output=True
        )
        assert child.returncode == -signal.SIGKILL, child.stderr
        assert is_moving(filled)
        assert read_config(filled).spec.storage == ("kafka" if step == "switched" else "local")
        assert everything(log, ["p"]) == was
        log.append(events(7), producer=Producer("p", 40))
        was = everything(log, ["p"])
        move(filled, cluster)
        assert everything(log, ["p"]) == was
        assert log.storage.kind == "kafka"
        assert log.append(events(7), producer=Producer("p", 40)).duplicate


def test_a_move_can_be_undone_until_it_is_done(broker: Kafka, cluster: Cluster, filled: Path) -> None:
    note = begin(filled, cluster)
    told: list[tuple[int, int]] = []
    mover = Move(filled, note, lambda done, total: told.append((done, total)), lambda: bool(told))
    moving_before, moving.UNDER_WAY = moving.UNDER_WAY, 10_000
    try:
        with pytest.raises(Cancelled):
            mover.run()
    finally:
        moving.UNDER_WAY = moving_before
    assert 0 < told[-1][0] < told[-1][1]
    assert note.topic in broker.topics()
    assert undo(filled)
    assert note.topic not in broker.topics()
    assert not undo(filled)
    with opened(filled) as log:
        assert (log.bounds().next, log.storage.kind) == (2000, "local")
    move(filled, cluster)
    with pytest.raises(Conflict, match="cannot be undone"):
        undo(filled)


def test_a_dead_broker_stops_the_move_and_not_the_stream(
    broker: Kafka, cluster: Cluster, filled: Path
) -> None:
    note = begin(filled, cluster)
    with opened(filled) as log:
        broker.kill()
        try:
            with pytest.raises(Unavailable):
                Move(filled, note, lambda done, total: None, lambda: False).run()
            assert log.append(events(1)).first == 2000
        finally:
            broker.start()
        move(filled, cluster)
        assert (log.bounds().next, log.storage.kind) == (2001, "kafka")


def test_why_a_stream_cannot_be_moved(
    broker: Kafka, cluster: Cluster, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(directory: Path, to: Cluster = cluster) -> str:
        with pytest.raises((Conflict, Invalid, Unavailable)) as error:
            begin(directory, to)
        return error.value.problems[0].code

    assert refused(make_stream(tmp_path / "q", storage="sqlite")) == "cannot_move"
    assert refused(make_stream(tmp_path / "t", wal={"enabled": False})) == "cannot_move"
    with monkeypatch.context() as quick:
        quick.setattr(moving, "ANSWER_S", 1.0)
        assert refused(filled, Cluster("127.0.0.1:1")) == "kafka_unreachable"
    broker.topic(name=f"{cluster.prefix}s.s")
    assert refused(filled) == "topic_exists"
    assert not is_moving(filled)
    note = begin(filled, cluster_of(broker.address))
    with only_mover(filled), pytest.raises(Conflict) as running:
        Move(filled, note, lambda done, total: None, lambda: False).run()
    assert running.value.problems[0].code == "move_running"
    Move(filled, note, lambda done, total: None, lambda: False).run()
    moving.remove_note(filled)
    assert refused(filled) == "already_moved"


def test_local_files_are_removed_when_no_reader_needs_them(cluster: Cluster, filled: Path) -> None:
    with opened(filled) as log:
        log.move_cursor(Cursor("r", 1500, 1))
        stale = open_storage(filled)  # a process that slept during the move
        move(filled, cluster)
        moving.remove_note(filled)
        os.utime(filled / LEFT, (0, 0))
        log.maintain()
        assert list_segments([filled]), "a batch of the reader may name them"
        log.move_cursor(Cursor("r", 2000, 1))
        log.maintain()
        assert sorted(path.name for path in filled.iterdir()) == ["stream.json"]
        with pytest.raises(Fenced):
            log.move_cursor(Cursor("r", 2000, 0))
        assert Log(stale).append(events(1)).first == 2000
