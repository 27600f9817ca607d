"""Faults in the log of a stream, and a report of all faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.streams.frames import decode_body

Progress = Callable[[int, int], None]
"""Called with the number of bytes that are done, and the total."""

HARMLESS = ("tail", "torn_tail", "index")
"""Kinds of faults that lose no events: the log repairs them itself when it is next used."""


@dataclass(frozen=True)
class Fault:
    """A fault: its file, its offsets (`next` is exclusive), and a description.

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
        """Whether no reader misses an event because of the fault."""
        return self.kind in HARMLESS


@dataclass
class Report:
    """The contents of a log in numbers, and all its faults."""

    events: int = 0
    bytes: int = 0
    segments: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether there is nothing to repair."""
        return all(fault.harmless or fault.kind == "lost" for fault in self.faults)

    def add(self, kind: str, place: str, first: int, end: int, message: str) -> None:
        """Add a fault; adjacent faults of one kind are merged."""
        last = self.faults[-1] if self.faults else None
        same = last is not None and (last.kind, last.place, last.message) == (kind, place, message)
        if last is not None and same and last.next == first:
            self.faults.pop()
            first = last.first
        self.faults.append(Fault(kind, place, first, end, message))


def body_fault(data: bytes | memoryview, count: int) -> str | None:
    """The fault of a body with a correct checksum; None if the body is valid."""
    try:
        batch = decode_body(data)
        batch.validate()
    except (pa.ArrowException, OSError, StopIteration) as error:
        return f"is not valid Arrow: {str(error).splitlines()[0]}" if str(error) else "is not valid Arrow"
    return None if batch.num_rows == count else f"has {batch.num_rows} events instead of {count}"
