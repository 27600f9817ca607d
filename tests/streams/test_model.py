"""The log against a plain list: whatever is done to it in whatever order."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.errors import Backpressure
from penstock.specs.positions import EARLIEST, LATEST, Position
from penstock.streams import clock, producers
from penstock.streams.kafka import journal
from penstock.streams.local import segments
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.storage import BatchConflict, BatchTooOld, Cursor, Fenced, Producer, Refusal
from tests.kafka_server import Kafka
from tests.streams.kit import change, cluster_of, make_stream, raw

RUNS = int(os.environ.get("PENSTOCK_TEST_KILLS", "50")) // 2
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
HOUR_US = 3_600_000_000

WAL = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.sampled_from([True, True, False]),
        "segment_bytes": st.sampled_from([1, 1500, 10_000, 1 << 20]),
        "segment_ms": st.sampled_from([1, 60_000, 3_600_000]),
        "retention_ms": st.sampled_from([None, 1, 60_000, 7_200_000]),
        "retention_bytes": st.sampled_from([None, 1, 3_000, 20_000]),
        "max_segments": st.sampled_from([1, 2, 5, 64]),
        "compression": st.sampled_from(["none", "lz4", "zstd"]),
        "sync": st.booleans(),
        "on_full": st.sampled_from(["drop_oldest", "block"]),
        "batch": st.fixed_dictionaries({"max_events": st.sampled_from([1, 7, 10_000]), "max_ms": st.just(1)}),
    },
)
WHICH = st.integers(0, 1)
WINDOW = 4
"""Batches that are remembered of a producer here, so that they are soon too many."""
CAPS = ("evicted_max_segments", "evicted_retention_bytes")


class Sender:
    """What a stream has to remember of a producer."""

    def __init__(self) -> None:
        self.epoch = 1
        self.batches: dict[int, tuple[int, int, str | None]] = {}

    def verdict(self, told: Producer) -> type[Refusal] | tuple[int, int] | None:
        """Why an append is refused, or the offsets of the batch that it repeats, or None for a new one."""
        if told.epoch < self.epoch:
            return Fenced
        if told.batch in self.batches:
            first, next, digest = self.batches[told.batch]
            differs = digest is not None and told.digest is not None and digest != told.digest
            return BatchConflict if differs else (first, next)
        too_old = len(self.batches) == WINDOW and told.batch < min(self.batches)
        return BatchTooOld if too_old else None

    def took(self, told: Producer, first: int, next: int) -> None:
        """A batch was appended."""
        self.batches[told.batch] = first, next, told.digest
        if len(self.batches) > WINDOW:
            del self.batches[min(self.batches)]


class LogModel(RuleBasedStateMachine):
    """Two logs on one directory, as two processes have them, and the list they must agree with."""

    @initialize(wal=WAL)
    def begin(self, wal: dict[str, Any]) -> None:
        self.home = tempfile.mkdtemp(dir=MEMORY)
        self.patch = pytest.MonkeyPatch()
        self.now = 1_700_000_000_000_000
        self.patch.setattr(clock, "now_us", lambda: self.now)
        self.patch.setattr(producers, "WINDOW", WINDOW)
        self.patch.setattr(segments, "INDEX_INTERVAL", 1_000)  # so that small segments have some entries
        self.wal: dict[str, Any] = self.possible(wal)
        self.directory = self.make(Path(self.home))
        self.open()
        self.values: list[bytes] = []
        self.times: list[int] = []
        self.marks: list[tuple[int, int, str, bool]] = []
        self.producers: dict[str, Sender] = {}
        self.cursors: dict[str, int] = {}
        self.first = self.duplicates = self.made = 0
        self.counts = dict.fromkeys(CAPS, 0)

    def make(self, home: Path) -> Path:
        return make_stream(home / "s", memory=home / "memory", wal=self.wal)

    def possible(self, wal: dict[str, Any]) -> dict[str, Any]:
        """The settings that the storage has."""
        return wal

    def open(self) -> None:
        self.logs = [Log(open_storage(self.directory)) for _ in range(2)]

    def teardown(self) -> None:
        if hasattr(self, "logs"):
            for log in self.logs:
                log.close()
            self.patch.undo()
            shutil.rmtree(self.home)

    @property
    def blocks(self) -> bool:
        return self.wal.get("on_full") == "block" and bool(self.wal.get("enabled", True))

    def new_values(self, count: int, size: int) -> list[bytes]:
        self.made += count
        return [b"%d" % (self.made - i) + b"." * size for i in range(count)]

    def took(self, values: list[bytes], first: int, next: int) -> None:
        """Events were acknowledged."""
        assert (first, next) == (len(self.values), len(self.values) + len(values))
        self.values += values

    @rule(
        which=WHICH,
        count=st.integers(0, 30),
        size=st.sampled_from([0, 0, 200]),
        producer=st.sampled_from([None, None, "p", "q"]),
        step=st.sampled_from([-7, -4, -3, -2, -1, 0, 1, 1, 1, 2, 5]),
        digest=st.sampled_from(["a", "a", "a", "b", None]),
        epoch=st.sampled_from([-1, 0, 0, 0, 1]),
        tx=st.booleans(),
    )
    def append(
        self,
        which: int,
        count: int,
        size: int,
        producer: str | None,
        step: int,
        digest: str | None,
        epoch: int,
        tx: bool,
    ) -> None:
        values = self.new_values(count, size)
        at, told = len(self.values), None
        sender = self.producers.get(producer, Sender()) if producer else Sender()
        if producer:
            number = max(max(sender.batches, default=20) + step, 0)
            told = Producer(producer, number, sender.epoch + epoch, digest)
        expected = sender.verdict(told) if told and sender.batches else None
        marks = [(0, count - 1, f"t{at}", True), (count - 1, count, f"u{at}", False)] if tx and count else []
        if isinstance(expected, type):
            with pytest.raises(expected):
                self.logs[which].append(raw(values), producer=told, tx=marks, wait_s=0)
            return
        try:
            result = self.logs[which].append(raw(values), producer=told, tx=marks, wait_s=0)
        except Backpressure:
            assert self.blocks
            return
        assert expected == ((result.first, result.next) if result.duplicate else None)
        if told is not None:
            sender.epoch = told.epoch
            self.producers[told.id] = sender
        if result.duplicate:
            self.duplicates += count
            return
        self.took(values, result.first, result.next)
        if told is not None:
            sender.took(told, result.first, result.next)
        self.marks += [(at + begin, at + end, id, closed) for begin, end, id, closed in marks]
        self.check_caps(sum(len(value) + 600 for value in values) + 3000)

    @rule(which=WHICH, counts=st.lists(st.integers(0, 9), min_size=2, max_size=6))
    def append_together(self, which: int, counts: list[int]) -> None:
        """Several appends share a write, and each is told its own offsets."""
        if self.blocks:
            return  # they could wait for ever
        groups = [self.new_values(count, 0) for count in counts]
        pending = [self.logs[which].submit(raw(values)) for values in groups]
        for values, one in zip(groups, pending, strict=True):
            result = one.future.result(30)
            self.took(values, result.first, result.next)

    @rule(
        step_us=st.sampled_from([1, 1_000, 90_000_000, HOUR_US, 3 * HOUR_US, -1_000, -90_000_000, -HOUR_US])
    )
    def pass_time(self, step_us: int) -> None:
        self.now += step_us

    @rule(which=WHICH)
    def maintain(self, which: int) -> None:
        self.logs[which].storage.maintain()
        self.check_caps(0)

    @rule(wal=WAL)
    def change_settings(self, wal: dict[str, Any]) -> None:
        change(self.directory, wal=self.possible(wal))
        self.wal = {**self.wal, **self.possible(wal)}

    @rule(reader=st.sampled_from(["r", "s"]), part=st.floats(0, 1), which=WHICH)
    def move_cursor(self, reader: str, part: float, which: int) -> None:
        to = int(self.first + part * (len(self.values) - self.first))
        self.logs[which].move_cursor(Cursor(reader, to))
        self.cursors[reader] = to

    @rule(reader=st.sampled_from(["r", "s"]), which=WHICH)
    def forget_cursor(self, reader: str, which: int) -> None:
        self.logs[which].storage.forget_cursor(reader)
        self.cursors.pop(reader, None)

    @rule(which=WHICH)
    def reopen(self, which: int) -> None:
        self.logs[which].close()
        self.logs[which] = Log(open_storage(self.directory))

    @rule(tail=st.booleans(), indexes=st.booleans())
    def recover(self, tail: bool, indexes: bool) -> None:
        for log in self.logs:
            log.close()
        if tail:
            (self.directory / "tail").unlink(missing_ok=True)
        if indexes:
            for path in self.directory.glob("*.index"):
                path.unlink()
        self.open()

    @rule(which=WHICH, start=st.floats(0, 1.1), length=st.integers(0, 50))
    def read(self, which: int, start: float, length: int) -> None:
        begin = int(start * len(self.values))
        stop = begin + length
        reached = begin
        for chunk in self.logs[which].read(begin, stop):
            assert chunk.base == reached
            reached = chunk.next
            if chunk.batch is None:
                assert chunk.lost == "evicted"
                assert (chunk.base, chunk.next) == (begin, min(self.first, stop))
            else:
                assert chunk.batch.column(0).to_pylist() == self.values[chunk.base : chunk.next]
        assert reached == max(begin, min(stop, len(self.values)))

    @precondition(lambda self: self.times)
    @rule(which=WHICH, near=st.floats(0, 1), off_us=st.sampled_from([-1, 0, 1, 10**12]))
    def find_time(self, which: int, near: float, off_us: int) -> None:
        at_us = self.times[int(near * (len(self.times) - 1))] + off_us
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
        expected = next(
            (offset for offset in range(self.first, len(self.times)) if self.times[offset] >= at_us),
            len(self.times),
        )
        assert self.logs[which].resolve(Position("time", time=moment)) == expected

    def check_caps(self, allowance: int) -> None:
        """After a write nothing is beyond the caps, unless it has to be read first."""
        if self.blocks or not self.wal.get("enabled", True):
            return
        usage = self.logs[0].storage.usage()
        assert usage.segments <= self.wal.get("max_segments", 64)
        cap = self.wal.get("retention_bytes")
        assert cap is None or usage.bytes <= cap + allowance + 4096

    @invariant()
    def both_are_the_list(self) -> None:
        if not hasattr(self, "logs"):
            return
        for log in self.logs:
            bounds = log.bounds()
            assert log.resolve(EARLIEST) == bounds.first
            assert log.resolve(LATEST) == bounds.next == len(self.values)
            assert self.first <= bounds.first
            chunks = list(log.read(bounds.first))
            found = [value for chunk in chunks for value in chunk.batch.column(0).to_pylist()]  # type: ignore[union-attr]
            assert found == self.values[bounds.first :]
            times = [chunk.time_us for chunk in chunks for _ in range(chunk.base, chunk.next)]
            new = len(self.times) - bounds.first
            assert times[: max(0, new)] == self.times[bounds.first :]
            self.times += times[new:] if new >= 0 else [self.now] * -new + times
            marks = [mark for mark in self.marks if mark[0] >= bounds.first]
            seen = [tuple(m) for m in log.storage.transactions(bounds.first, bounds.next)]
            assert [mark for mark in seen if mark[0] >= bounds.first] == marks
            assert {c.reader: c.next for c in log.storage.cursors()} == self.cursors
            counts = log.storage.counts()
            assert sum(counts[name] for name in (*CAPS, "evicted_retention_ms")) == bounds.first
            assert counts["duplicates"] == self.duplicates
            assert counts["damaged"] == 0
            if self.blocks and any(counts[cap] > self.counts[cap] for cap in CAPS):
                assert bounds.first <= min(self.cursors.values(), default=-1)
            self.counts = {cap: counts[cap] for cap in CAPS}
            self.first = bounds.first


PLAN = settings(
    max_examples=RUNS,
    stateful_step_count=40,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_a_log_in_kafka_is_the_list(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in a topic; its snapshots are so frequent that most starts read one."""
    monkeypatch.setattr(journal, "SNAPSHOT_ENTRIES", 5)

    class KafkaModel(LogModel):
        def make(self, home: Path) -> Path:
            return make_stream(home / "s", storage="kafka", wal=self.wal, kafka=cluster_of(broker.address))

        def possible(self, wal: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in wal.items() if name != "enabled"}

    run_state_machine_as_test(KafkaModel, settings=settings(PLAN, max_examples=max(3, RUNS // 5)))


LogModel.TestCase.settings = PLAN
TestLogModel = LogModel.TestCase
