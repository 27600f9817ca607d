"""The batches that producers have appended: the state that makes a repeated append harmless.

For each producer, the `WINDOW` batches with the highest numbers are remembered, with their offsets and the
digests of their contents. A batch with a remembered number is a repeat if its content is the same; a number
between them is new. A batch with a number below all of them is rejected: writing it could duplicate events,
and treating it as a repeat could lose them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from penstock.streams.storage import (
    Appended,
    BatchConflict,
    BatchTooOld,
    Fenced,
    Producer,
    Progress,
    Refusal,
)

MOST = 10_000
"""The number of producers to remember; above it, the producer that has been idle longest is forgotten."""

WINDOW = 32
"""The number of batches to remember per producer: more than a sender has in flight. All of them are written
at the head of each segment."""


class Batch(NamedTuple):
    """A batch that was appended."""

    number: int
    first: int
    next: int
    digest: str | None = None


@dataclass(frozen=True)
class Window:
    """The window of a producer: its epoch, and its last batches, the lowest number first.

    `position` is the position of the batch that was appended last.
    """

    epoch: int
    batches: tuple[Batch, ...] = ()
    position: str | None = None

    @classmethod
    def parse(cls, epoch: int, batches: Iterable[Iterable[Any]], position: str | None = None) -> Window:
        """A window from the output of `fields`."""
        return cls(epoch, tuple(Batch(*each) for each in batches), position)

    def fields(self) -> list[Any]:
        """The window as JSON."""
        fields = [self.epoch, [each if each.digest else each[:3] for each in self.batches]]
        return fields if self.position is None else [*fields, self.position]

    def find(self, number: int) -> Batch | None:
        """The batch with a number, or None."""
        at = bisect_left(self.batches, (number,))
        return self.batches[at] if at < len(self.batches) and self.batches[at].number == number else None

    def add(self, epoch: int, batch: Batch, position: str | None = None) -> Window:
        """The window with one more batch, and without the lowest one if there are more than `WINDOW`."""
        kept = [each for each in self.batches if each.number != batch.number]
        kept.insert(bisect_left(kept, (batch.number,)), batch)
        reached = self.position if position is None else position
        return Window(max(epoch, self.epoch), tuple(kept[-WINDOW:]), reached)

    @property
    def lowest(self) -> int:
        """The lowest batch number that the window can classify as new or repeated."""
        return self.batches[0].number if len(self.batches) == WINDOW else 0

    @property
    def following(self) -> int:
        """The next unused number."""
        return self.batches[-1].number + 1 if self.batches else 0

    @property
    def next(self) -> int:
        """The offset that the producer has reached."""
        return max((batch.next for batch in self.batches), default=0)


class Producers:
    """The window of each producer, the one that has been idle longest first."""

    def __init__(self, known: Mapping[str, Window] | None = None) -> None:
        self.known = dict(known or {})

    def copy(self) -> Producers:
        """An independent copy of the state."""
        return Producers(self.known)

    def judge(self, producer: Producer) -> Appended | Refusal | None:
        """The result of an append that must not be written (repeated or rejected); None for a new batch."""
        window = self.known.get(producer.id)
        if window is None:
            return None
        if producer.epoch < window.epoch:
            return Fenced(f"producer '{producer.id}' is at epoch {window.epoch}, not {producer.epoch}")
        if (batch := window.find(producer.batch)) is not None:
            if producer.digest and batch.digest and producer.digest != batch.digest:
                return BatchConflict(producer, window.following)
            return Appended(batch.first, batch.next, duplicate=True)
        if producer.batch < window.lowest:
            return BatchTooOld(producer, window.lowest, window.following)
        return None

    def outranks(self, producer: Producer) -> bool:
        """Whether a known producer has a later epoch."""
        window = self.known.get(producer.id)
        return window is not None and producer.epoch > window.epoch

    def note_epoch(self, producer: Producer) -> Batch:
        """Record the later epoch of a producer that repeats a batch; returns that batch."""
        window = self.known[producer.id] = replace(self.known[producer.id], epoch=producer.epoch)
        batch = window.find(producer.batch)
        assert batch is not None
        return batch

    def progress(self, producer: str) -> Progress:
        """The progress of a producer."""
        window = self.known.get(producer)
        return Progress() if window is None else Progress(window.following, window.position)

    def note(self, producer: str, epoch: int, batch: Batch, position: str | None = None) -> None:
        """Record an appended batch."""
        self.known[producer] = self.known.pop(producer, Window(epoch)).add(epoch, batch, position)
        if len(self.known) > MOST:
            del self.known[next(iter(self.known))]

    def note_meta(self, meta: dict[str, Any]) -> None:
        """Update the state from the meta of a frame."""
        if "windows" in meta:
            self.known = {producer: Window.parse(*fields) for producer, fields in meta["windows"].items()}
        for first, end, producer, epoch, number, *rest in meta.get("producers", ()):
            digest, position = (*rest, None, None)[:2]
            self.note(producer, epoch, Batch(number, first, end, digest), position)

    def state(self) -> dict[str, Any]:
        """The whole state as JSON, for the head of a new segment."""
        return {"windows": {producer: window.fields() for producer, window in self.known.items()}}


def appended_by(producer: str, epoch: int, batch: Batch, position: str | None = None) -> list[Any]:
    """The entry of a batch in the meta of a frame."""
    fields = [batch.first, batch.next, producer, epoch, batch.number]
    if position is not None:
        return [*fields, batch.digest, position]
    return [*fields, batch.digest] if batch.digest else fields


def highest(cursors: Iterable[Any]) -> int:
    """The highest offset among cursors."""
    return max((cursor.next for cursor in cursors), default=0)
