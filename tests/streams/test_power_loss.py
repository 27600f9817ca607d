"""What a power loss may take, and what it may not."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.specs.stream import StreamSpec
from penstock.streams.config import StreamConfig, write_config
from penstock.streams.frames import encode_body
from penstock.streams.local import tail
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.storage import Append, Appended, Cursor, Full, Producer
from tests.streams.disk import Disk, PowerLoss
from tests.streams.kit import raw

RUNS = int(os.environ.get("PENSTOCK_TEST_KILLS", "50")) * 2
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Machine:
    """A stream on a disk that forgets, and what is known of its events."""

    def __init__(self, root: Path, chance: random.Random, spec: dict[str, object]) -> None:
        self.chance = chance
        memory = root.parent / "memory"
        self.disk = Disk(root, memory, chance, chance.choice((32, 64, 512)))
        self.spec = dict(spec)
        self.config = StreamConfig("s", StreamSpec.model_validate({"wal": spec}), memory)
        self.directory = root / "streams" / "s"
        self.storage: LocalStorage | None = None
        self.made = 0
        self.history: dict[int, set[bytes]] = {}
        """What was ever submitted to become the event at an offset."""
        self.acked: dict[int, bytes] = {}
        self.safe = 0
        """Everything acknowledged below this offset must survive."""
        self.volatile: set[int] = set()
        """Except these: they were appended while the stream was transient."""
        self.given = 0
        """No offset below this one may be given to another event."""
        self.first = 0
        """Everything below this offset was evicted, though a power loss may bring it back."""
        self.batch = 0
        self.told: Producer | None = None
        """The last append of the producer that was acknowledged, if it must survive."""
        self.cursor = 0
        """How far a reader has come, as far as the disk knows."""

    @property
    def sync(self) -> bool:
        return bool(self.spec["sync"])

    @property
    def durable(self) -> bool:
        return bool(self.spec["enabled"])

    @contextmanager
    def power(self, changes: int | None) -> Iterator[None]:
        """The power, for so many changes."""
        self.disk.left = changes
        try:
            yield
            self.disk.left = None
        except PowerLoss:
            if self.storage is not None:  # what was evicted just before is gone
                self.first = max(self.first, self.storage.writer.known.first)

    def boot(self) -> bool:
        """Start after the power has come back; false if it is lost again meanwhile."""
        if self.storage is not None:
            self.disk.dead = True
            self.storage.close()
            self.storage = None
        self.disk.lose_power()
        with self.power(self.chance.choice((None, self.chance.randrange(12)))):
            write_config(self.directory, self.config, self.disk)
            self.storage = LocalStorage(self.directory, self.disk)
            self.storage.bounds()
        if self.disk.dead:
            return False
        self.check()
        return True

    def check(self) -> None:
        """Nothing is there that was not appended, and nothing is gone that must be there."""
        assert self.storage is not None
        log = Log(self.storage)
        bounds = log.bounds()
        readable: dict[int, bytes] = {}
        lost: list[range] = []
        reached = bounds.first
        for chunk in log.read(bounds.first):
            assert chunk.base == reached
            reached = chunk.next
            if chunk.batch is None:
                lost.append(range(chunk.base, chunk.next))
            else:
                readable.update(enumerate(chunk.batch.column(0).to_pylist(), chunk.base))
        assert reached == bounds.next
        for offset, value in readable.items():
            assert value in self.history[offset], f"offset {offset} was never given to {value!r}"
            if offset in self.acked:
                assert value == self.acked[offset], f"offset {offset} has changed"
        assert len(set(readable.values())) == len(readable)
        for offset in self.acked:
            if offset >= self.first and offset not in readable:
                assert offset >= self.safe or offset in self.volatile, f"offset {offset} of {bounds} is gone"
                told = offset >= bounds.next or any(offset in gap for gap in lost)
                assert told or offset in self.volatile
        cursors = {cursor.reader: cursor.next for cursor in self.storage.cursors()}
        if self.cursor:
            assert cursors["r"] >= self.cursor
        assert bounds.next >= max(cursors.values(), default=0)
        assert bounds.next >= max(self.safe, self.given)
        self.cursor = cursors.get("r", 0)
        self.acked = {offset: value for offset, value in readable.items() if offset >= self.first}
        self.safe = bounds.next
        if self.told is not None:
            [repeated] = self.storage.write([Append([self.body(1)], self.told)])
            assert isinstance(repeated, Appended)
            assert repeated.duplicate

    def body(self, count: int, size: int = 0) -> object:
        values = [b"v%d" % (self.made + i) + b"." * size for i in range(count)]
        self.made += count
        self.values = values
        return encode_body(raw(values), self.chance.choice(("none", "lz4", "zstd")))

    def append(self, counts: list[int], with_producer: bool) -> None:
        assert self.storage is not None
        values: list[bytes] = []
        bodies = []
        for count in counts:
            bodies.append(self.body(count, self.chance.choice((0, 100))))
            values += self.values
        next = self.storage.bounds().next
        for offset, value in enumerate(values, next):
            self.history.setdefault(offset, set()).add(value)
        producer = None
        if with_producer:
            self.batch += 1
            producer = Producer("p", self.batch)
        try:
            [result] = self.storage.write([Append(bodies, producer)])
        except Full:
            return
        assert isinstance(result, Appended)
        assert (result.first, result.next) == (next, next + len(values))
        self.acked.update(enumerate(values, result.first))
        if not self.durable:
            self.volatile.update(range(result.first, result.next))
            self.given = result.next
        if producer is not None:
            self.told = producer if self.sync and self.durable else None
        self.after()

    def after(self) -> None:
        """What is on the disk for sure."""
        assert self.storage is not None
        known = self.storage.tail()
        self.first = max(self.first, known.first)
        if self.durable:
            self.safe = known.next if self.sync else max(self.safe, known.base)

    def flush(self) -> None:
        assert self.storage is not None
        self.storage.flush()
        if self.durable:
            self.safe = self.storage.bounds().next

    def maintain(self) -> None:
        assert self.storage is not None
        self.storage.maintain()
        if self.durable:
            self.volatile = set()
        self.after()

    def move_cursor(self) -> None:
        assert self.storage is not None
        to = self.storage.bounds().next
        if not self.durable:  # its cursors are not either
            self.cursor = 0
        self.storage.move_cursor(Cursor("r", to))
        if self.sync and self.durable:
            self.cursor = to

    def toggle(self, name: str) -> None:
        """Change a setting."""
        changed = {**self.spec, name: not self.spec[name]}
        config = replace(self.config, spec=StreamSpec.model_validate({"wal": changed}))
        write_config(self.directory, config, self.disk)
        self.spec, self.config = changed, config

    def reopen(self) -> None:
        assert self.storage is not None
        self.storage.close()
        self.storage = LocalStorage(self.directory, self.disk)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.booleans()),
        st.sampled_from(
            [
                ("flush",),
                ("maintain",),
                ("reopen",),
                ("move_cursor",),
                ("move_cursor",),
                ("toggle", "sync"),
                ("toggle", "enabled"),
                ("lose",),
                ("lose",),
                ("lose",),
            ]
        ),
    ),
    min_size=3,
    max_size=25,
)

SPECS = st.fixed_dictionaries(
    {
        "enabled": st.sampled_from([True, True, True, False]),
        "sync": st.booleans(),
        "segment_bytes": st.sampled_from([1, 700, 2000, 1 << 20]),
        "max_segments": st.sampled_from([2, 4, 64]),
        "on_full": st.sampled_from(["drop_oldest", "drop_oldest", "block"]),
    }
)


@settings(
    max_examples=RUNS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # an example tells enough, and a smaller one takes long to find
)
@given(seed=st.integers(0, 2**32), spec=SPECS, actions=ACTIONS)
def test_power_losses(seed: int, spec: dict[str, object], actions: list[tuple[object, ...]]) -> None:
    """With `sync` no acknowledged event is lost; without it only what came after the last sync is."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=MEMORY) as home, pytest.MonkeyPatch.context() as patch:
        machine = Machine(Path(home) / "disk", chance, spec)
        patch.setattr(tail, "boot_id", lambda: machine.disk.boot_id)
        while not machine.boot():
            pass
        for name, *arguments in [*actions, ("lose",)]:
            changes = chance.choice((None, None, chance.randrange(30)))
            if name != "lose":
                with machine.power(changes):
                    getattr(machine, str(name))(*arguments)
            if name == "lose" or machine.disk.dead:
                while not machine.boot():
                    pass
        assert machine.storage is not None
        before = machine.storage.bounds().next
        machine.append([2], False)
        if spec["on_full"] != "block":
            assert machine.storage.bounds().next == before + 2
        machine.check()
        machine.storage.close()
