"""The oracle of the crash tests: what was promised, written down by a process that no kill reaches.

Writers tell of every step through a pipe: what they are about to append, and what was acknowledged with its
offsets and checksums. What was written to a pipe is there even if the writer dies in the next instruction.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c

from tests.forks import fork


def payload(writer: str, batch: int) -> list[bytes]:
    """The events of a writer's batch. Everybody who knows its name and number knows them."""
    rng = random.Random(f"{writer}/{batch}")
    return [
        b"%s/%d/%d/" % (writer.encode(), batch, i) + rng.randbytes(rng.choice((0, 10, 100, 200)))
        for i in range(rng.choice((1, 2, 5, 20)))
    ]


def checksums(values: list[bytes]) -> list[int]:
    """One for each event."""
    return [google_crc32c.value(value) for value in values]


@dataclass(frozen=True)
class Acknowledged:
    """Where a batch was said to be, and what it was."""

    first: int
    next: int
    checksums: list[int]


@dataclass
class Obligations:
    """All that was told so far."""

    submitted: dict[str, int] = field(default_factory=dict)
    """The highest batch that each writer was about to append."""
    acknowledged: dict[tuple[str, int], Acknowledged] = field(default_factory=dict)
    cursors: dict[str, list[int]] = field(default_factory=dict)
    """What each reader's cursor may say: the last one that was acknowledged, and those tried since."""
    died_at: list[str] = field(default_factory=list)
    """The steps at which a process ended itself."""

    @classmethod
    def load(cls, path: Path) -> Obligations:
        """What the recorder has written."""
        found = cls()
        for line in path.read_text().splitlines() if path.exists() else ():
            found._take(line.split("\t"))
        return found

    def _take(self, told: list[str]) -> None:
        match told:
            case ["submit", writer, batch]:
                self.submitted[writer] = max(int(batch), self.submitted.get(writer, 0))
            case ["ack", writer, batch, first, next, sums]:
                what = Acknowledged(int(first), int(next), [int(s, 16) for s in sums.split(",")])
                # A batch that is sent again is said to be where it was.
                assert self.acknowledged.setdefault((writer, int(batch)), what) == what
            case ["move", reader, offset]:
                self.cursors.setdefault(reader, []).append(int(offset))
            case ["moved", reader, offset]:
                self.cursors[reader] = [int(offset)]
            case ["died", step]:
                self.died_at.append(step)
            case _:
                raise AssertionError(f"half a line came through the pipe: {told}")

    def next_batch(self, writer: str, *, again: bool) -> int:
        """What a writer goes on with: with `again`, what it does not know to be there is sent once more."""
        if not again:
            return self.submitted.get(writer, 0) + 1
        return next(batch for batch in itertools.count(1) if (writer, batch) not in self.acknowledged)


class Pipe:
    """A writer's end. Lines are shorter than what a pipe takes at once, so they are never mixed or torn."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def tell(self, *words: object) -> None:
        """Have something written down."""
        os.write(self._fd, "\t".join(str(word) for word in words).encode() + b"\n")

    def acknowledged(self, writer: str, batch: int, first: int, next: int, values: list[bytes]) -> None:
        """A batch was acknowledged."""
        sums = ",".join(f"{checksum:x}" for checksum in checksums(values))
        self.tell("ack", writer, batch, first, next, sums)


@contextmanager
def recorded(path: Path) -> Iterator[Pipe]:
    """A process writes down what comes through the pipe; at the end, when every writer is gone, all of it."""
    read_end, write_end = os.pipe()

    def write_down() -> None:
        os.close(write_end)
        with path.open("ab") as file:
            while data := os.read(read_end, 1 << 16):
                file.write(data)

    pid = fork(write_down)
    os.close(read_end)
    try:
        yield Pipe(write_end)
    finally:
        os.close(write_end)
        os.waitpid(pid, 0)
