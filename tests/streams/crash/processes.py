"""The processes of a crash test: writers that die, and the one that looks at what is left."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

from penstock.streams.files import Files
from penstock.streams.local.segments import list_segments
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.storage import Cursor, Producer
from tests.streams.crash.obligations import Obligations, Pipe, checksums, payload
from tests.streams.kit import change, raw

CHECKER = "checker"


class Deadly(Files):
    """Ends its own process at the n-th time that a step is reached."""

    def __init__(self, pipe: Pipe, step: str, nth: int) -> None:
        self._pipe, self._step, self._left = pipe, step, nth

    def step(self, name: str) -> None:
        if name == self._step:
            self._left -= 1
            if not self._left:
                self._pipe.tell("died", name)
                os.kill(os.getpid(), signal.SIGKILL)


def write_for_ever(
    directory: Path, writer: str, start: int, pipe: Pipe, files: Files, *, idempotent: bool
) -> None:
    """Append batch after batch, and do now and then what else is done to a stream.

    An idempotent writer has several batches under way, which come in any order.
    """
    log = Log(LocalStorage(directory, files))
    rng = random.Random(os.urandom(8))
    while True:
        burst = rng.choice((1, 1, 4))
        order = rng.sample(range(burst), burst) if idempotent else range(burst)
        waiting = []
        for batch in (start + i for i in order):
            values = payload(writer, batch)
            pipe.tell("submit", writer, batch)
            producer = Producer(writer, batch, digest=f"{batch}") if idempotent else None
            flush = len(waiting) == burst - 1
            waiting.append((batch, values, log.submit(raw(values), producer=producer, flush=flush)))
        for batch, values, pending in waiting:
            told = pending.future.result()
            pipe.acknowledged(writer, batch, told.first, told.next, values)
        start += burst
        if rng.random() < 0.2:
            rng.choice((_maintain, _move_cursor, _change))(log, directory, writer, pipe, rng)


def _maintain(log: Log, directory: Path, writer: str, pipe: Pipe, rng: random.Random) -> None:
    log.storage.maintain()


def _move_cursor(log: Log, directory: Path, writer: str, pipe: Pipe, rng: random.Random) -> None:
    next = log.bounds().next
    pipe.tell("move", writer, next)
    log.move_cursor(Cursor(writer, next))
    pipe.tell("moved", writer, next)


def _change(log: Log, directory: Path, writer: str, pipe: Pipe, rng: random.Random) -> None:
    change(directory, wal={"compression": rng.choice(("none", "lz4", "zstd"))})


def check(directory: Path, told: Obligations, pipe: Pipe, *, in_order: bool) -> None:
    """Everything that was promised is there, nothing else is, and the stream goes on."""
    log = Log(LocalStorage(directory))
    bounds = log.bounds()
    found = _read(log)
    _nothing_lost(found, told, bounds.first)
    _nothing_invented(found, told, in_order)
    cursors = {cursor.reader: cursor.next for cursor in log.storage.cursors()}
    for reader, allowed in told.cursors.items():
        # Before its first move is acknowledged, there may be none.
        assert cursors.get(reader, allowed[0]) in allowed, (reader, cursors, allowed)
    assert log.storage.counts()["evicted_max_segments"] >= bounds.first  # invariant 5
    log.storage.maintain()
    assert not [path for path in directory.iterdir() if ".index." in path.name], "something was left behind"
    usage = log.storage.usage()
    assert usage.segments == len(list_segments(log.storage.directories()))  # type: ignore[attr-defined]

    batch = told.submitted.get(CHECKER, 0) + 1
    values = payload(CHECKER, batch)
    pipe.tell("submit", CHECKER, batch)
    done = log.append(raw(values), wait_s=5)
    assert (done.first, done.next) == (bounds.next, bounds.next + len(values))
    pipe.acknowledged(CHECKER, batch, done.first, done.next, values)
    log.close()


def _read(log: Log) -> dict[int, bytes]:
    """All events by offset, which are dense."""
    found: dict[int, bytes] = {}
    expected = log.bounds().first
    for chunk in log.read(expected):
        assert chunk.lost is None, chunk
        assert chunk.batch is not None
        assert chunk.base == expected
        assert chunk.next == chunk.base + chunk.batch.num_rows
        found.update(enumerate(chunk.batch.column(0).to_pylist(), chunk.base))
        expected = chunk.next
    assert expected == log.bounds().next
    return found


def _nothing_lost(found: dict[int, bytes], told: Obligations, first: int) -> None:
    """What was acknowledged is where it was said to be (invariants 1 and 2), unless retention took it."""
    for (writer, batch), known in told.acknowledged.items():
        if known.first >= first:
            values = [found.get(offset, b"") for offset in range(known.first, known.next)]
            assert checksums(values) == known.checksums, (writer, batch, known)
        else:
            assert known.next <= first, "an append was evicted in part"


def _nothing_invented(found: dict[int, bytes], told: Obligations, in_order: bool) -> None:
    """Each event was submitted, is there once, with its whole batch; those sent in order are in order."""
    seen: dict[str, list[int]] = {}
    offsets = iter(sorted(found))
    for offset in offsets:
        name, number, _ = found[offset].split(b"/", 2)
        writer, batch = name.decode(), int(number)
        assert batch <= told.submitted[writer], (writer, batch)
        assert batch not in seen.setdefault(writer, []), (writer, batch)
        assert not in_order or batch > max(seen[writer], default=0), (writer, batch)
        seen[writer].append(batch)
        values = payload(writer, batch)
        assert [found.get(offset + i) for i in range(len(values))] == values, (writer, batch)
        for _ in values[1:]:
            next(offsets)
