"""Who has appended what: the state that makes a repeated append harmless."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from penstock.streams.storage import Appended, Fenced, Producer

MOST = 10_000
"""Producers that are remembered; beyond it the one that was silent the longest is forgotten."""


@dataclass(frozen=True)
class Last:
    """The last append of a producer."""

    epoch: int
    batch: int
    first: int
    next: int


class Producers:
    """The last append of each producer, the longest silent first."""

    def __init__(self, known: dict[str, Last] | None = None) -> None:
        self._last = dict(known or {})

    def copy(self) -> Producers:
        """The same state, to be changed apart from this one."""
        return Producers(self._last)

    def judge(self, producer: Producer) -> Appended | Fenced | None:
        """What is to be said of an append without writing it; None if it is to be written."""
        last = self._last.get(producer.id)
        if last is None:
            return None
        if producer.epoch < last.epoch:
            return Fenced(f"producer '{producer.id}' is at epoch {last.epoch}, not {producer.epoch}")
        if producer.batch <= last.batch:
            return Appended(last.first, last.next, duplicate=True)
        return None

    def outranks(self, producer: Producer) -> bool:
        """Whether a producer that is known comes with a later epoch."""
        last = self._last.get(producer.id)
        return last is not None and producer.epoch > last.epoch

    def note_epoch(self, producer: Producer) -> Last:
        """A producer came with a later epoch, but with nothing new."""
        last = self._last[producer.id] = replace(self._last[producer.id], epoch=producer.epoch)
        return last

    def note(self, producer: str, epoch: int, batch: int, first: int, next: int) -> None:
        """A producer has appended."""
        self._last.pop(producer, None)
        self._last[producer] = Last(epoch, batch, first, next)
        if len(self._last) > MOST:
            del self._last[min(self._last, key=lambda id: self._last[id].next)]

    def note_meta(self, meta: dict[str, Any]) -> None:
        """Take in what a frame says."""
        if "state" in meta:
            self._last = {id: Last(*fields) for id, fields in meta["state"].items()}
        for first, next, producer, epoch, batch in meta.get("producers", ()):
            self.note(producer, epoch, batch, first, next)

    def state(self) -> dict[str, Any]:
        """All of it, for the head of a new segment."""
        fields = {id: [last.epoch, last.batch, last.first, last.next] for id, last in self._last.items()}
        return {"state": fields}


def highest(cursors: Iterable[Any]) -> int:
    """The highest offset that a reader has dealt with."""
    return max((cursor.next for cursor in cursors), default=0)
