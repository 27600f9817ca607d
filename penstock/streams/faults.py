"""What can be wrong with the log of a stream, and how it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.streams.frames import decode_body

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are done."""

HARMLESS = ("tail", "torn_tail", "index")
"""Kinds of faults that take nothing away from readers: the log mends them itself when it is next used."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: in which file, with which offsets (`next` is exclusive), and in words.

    Kinds: `damaged`, `body` (intact, but no Arrow), `order` (offsets that do not follow), `missing`,
    `lost` (left out by a repair), `index`, `tail`, `torn_tail`, `cursor`, `database` and `settings`.
    """

    kind: str
    place: str
    first: int
    next: int
    message: str

    @property
    def harmless(self) -> bool:
        """Whether no reader misses anything because of it."""
        return self.kind in HARMLESS


@dataclass
class Report:
    """What a log holds, and everything that is wrong with it."""

    events: int = 0
    bytes: int = 0
    segments: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether a repair has nothing to do."""
        return all(fault.harmless or fault.kind == "lost" for fault in self.faults)

    def add(self, kind: str, place: str, first: int, next: int, message: str) -> None:
        """Note a fault; neighbours of one kind become one."""
        last = self.faults[-1] if self.faults else None
        same = last is not None and (last.kind, last.place, last.message) == (kind, place, message)
        if last is not None and same and last.next == first:
            self.faults.pop()
            first = last.first
        self.faults.append(Fault(kind, place, first, next, message))


def body_fault(data: bytes | memoryview, count: int) -> str | None:
    """What is wrong with a body whose checksum was right."""
    try:
        batch = decode_body(data)
        batch.validate()
    except (pa.ArrowException, OSError, StopIteration) as error:
        return f"is no Arrow: {str(error).splitlines()[0]}" if str(error) else "is no Arrow"
    return None if batch.num_rows == count else f"has {batch.num_rows} events instead of {count}"
