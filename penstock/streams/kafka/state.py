"""The state of a stream in Kafka, built from the entries of its journal.

The journal is the first partition of the topic, and its order is authoritative: an entry holds operations,
and every process that reads it arrives at the same state. So writers need no lock, and all of them agree on
the offsets: a writer learns its offsets by reading its own entry. An operation is one of

    ["write", time, frames, producer, tx]      an append; a frame is [place, events, raw bytes, bytes, shape]
    ["shape", id, schema]                      the stored columns of frames, as an Arrow message in base64
    ["trim", offset, reason]                   events before the offset are removed
    ["cursor", reader, next, epoch, at, skipped]
    ["forget", reader]
    ["count", {name: count}]

The place of a frame is its offset in the second partition, where it was written before its entry.
"""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.streams import clock
from penstock.streams.producers import Batch, Producers, Window
from penstock.streams.storage import Appended, Cursor, Fenced, Producer, Refusal

COLUMNS = ("bases", "times", "raw", "sizes", "places", "shapes")

Mark = tuple[int, int, str, bool]
Outcome = Appended | Refusal | None


class Void:
    """The outcome of an entry with frames that retention may have removed: the entry is ignored."""


class State:
    """Offsets, frames, producers, cursors and counters of a stream."""

    def __init__(self) -> None:
        self.first = self.next = self.last_us = 0
        self.floor = self.top = self.bytes = 0
        """Frames before `floor` may be removed: new entries can't name them. `top` follows the last frame."""
        self.bases, self.times = array("q"), array("q")
        self.raw, self.sizes = array("q"), array("q")
        self.places, self.shapes = array("q"), array("q")
        self.known_shapes: dict[str, str] = {}
        self.marks: list[Mark] = []
        self.producers = Producers()
        self.cursors: dict[str, Cursor] = {}
        self.counts: Counter[str] = Counter()

    def apply(self, operations: Sequence[Sequence[Any]]) -> list[Outcome] | Void:
        """Apply an entry atomically; returns the outcome of each operation."""
        frames = (frame for kind, *rest in operations if kind == "write" for frame in rest[1])
        if any(frame[0] < self.floor for frame in frames):
            return Void()
        first = self.first
        outcome = [getattr(self, f"_{kind}")(*rest) for kind, *rest in operations]
        if self.first > first:  # after all operations: frames of this entry must not be removed
            self.floor = int(np.min(column(self.places))) if self.places else self.top
        return outcome

    def _write(
        self, time_us: int, frames: Sequence[Any], told: Sequence[Any] | None, tx: Sequence[Any]
    ) -> Outcome:
        self.top = max([self.top, *(frame[0] + 1 for frame in frames)])
        producer = Producer(*told) if told else None
        if producer is not None and (verdict := self.producers.judge(producer)) is not None:
            if isinstance(verdict, Appended) and self.producers.outranks(producer):
                self.producers.note_epoch(producer)  # from now on the earlier epoch is fenced
            return verdict
        first, stamp = self.next, clock.stamp_us(self.last_us, time_us)
        for place, events, raw, size, shape in frames:
            self.bases.append(self.next)
            self.times.append(stamp)
            self.raw.append(raw)
            self.sizes.append(size)
            self.places.append(place)
            self.shapes.append(list(self.known_shapes).index(shape))
            self.next, self.last_us, self.bytes = self.next + events, stamp, self.bytes + size
        self.marks += [(first + begin, first + end, name, closed) for begin, end, name, closed in tx]
        if producer is not None:
            batch = Batch(producer.batch, first, self.next, producer.digest)
            self.producers.note(producer.id, producer.epoch, batch, producer.position)
        return Appended(first, self.next)

    def _shape(self, name: str, schema: str) -> None:
        self.known_shapes.setdefault(name, schema)

    def _trim(self, upto: int, reason: str) -> None:
        upto = min(upto, self.next)
        if upto <= self.first:
            return
        self.counts[reason] += upto - self.first  # invariant 5
        unread = upto - max(self.slowest(otherwise=upto), self.first)
        if unread > 0:
            self.counts["evicted_unread"] += unread
        gone = bisect_right(self.bases, upto - 1)
        self.bytes -= sum(self.sizes[:gone])
        for name in COLUMNS:
            del getattr(self, name)[:gone]
        self.marks = [mark for mark in self.marks if mark[1] > upto or mark[0] >= upto]
        self.first = upto

    def _cursor(self, *fields: Any) -> Outcome:
        cursor = Cursor(*fields)
        known = self.cursors.get(cursor.reader)
        if known is not None and known.epoch > cursor.epoch:  # invariant 6
            return Fenced(f"reader '{cursor.reader}' is at epoch {known.epoch}, not {cursor.epoch}")
        self.cursors[cursor.reader] = cursor
        return None

    def _forget(self, reader: str) -> None:
        self.cursors.pop(reader, None)

    def _count(self, counts: dict[str, int]) -> None:
        self.counts.update(counts)

    def slowest(self, otherwise: int) -> int:
        """The offset up to which every reader has read."""
        return min((cursor.next for cursor in self.cursors.values()), default=otherwise)

    def end_of(self, number: int) -> int:
        """The offset after the last event of a frame."""
        return self.bases[number + 1] if number + 1 < len(self.bases) else self.next

    def frames_for(self, excess: int) -> int:
        """The offset before which whole frames have at least `excess` bytes."""
        for number, total in enumerate(itertools.accumulate(self.sizes)):
            if total >= excess:
                return self.end_of(number)
        return self.next

    # Snapshots

    def snapshot(self) -> bytes:
        """The whole state, so that the journal before it can be removed."""
        columns = {name: base64.b64encode(getattr(self, name).tobytes()).decode() for name in COLUMNS}
        numbers = [self.first, self.next, self.last_us, self.floor, self.top, self.bytes]
        cursors = [[c.reader, c.next, c.epoch, c.at, c.skipped] for c in self.cursors.values()]
        kept = {
            "numbers": numbers,
            "columns": columns,
            "shapes": self.known_shapes,
            "marks": self.marks,
            "cursors": cursors,
            "counts": dict(self.counts),
            **self.producers.state(),
        }
        return zlib.compress(json.dumps(kept).encode(), 1)

    @classmethod
    def restored(cls, data: bytes) -> State:
        """The state in a snapshot."""
        kept, state = json.loads(zlib.decompress(data)), cls()
        state.first, state.next, state.last_us, state.floor, state.top, state.bytes = kept["numbers"]
        for name in COLUMNS:
            getattr(state, name).frombytes(base64.b64decode(kept["columns"][name]))
        state.known_shapes = kept["shapes"]
        state.marks = [(first, end, name, closed) for first, end, name, closed in kept["marks"]]
        state.cursors = {fields[0]: Cursor(*fields) for fields in kept["cursors"]}
        state.counts = Counter(kept["counts"])
        windows = {producer: Window.parse(*fields) for producer, fields in kept["windows"].items()}
        state.producers = Producers(windows)
        return state


def column(values: array[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A copy of a column as a NumPy array."""
    return np.array(values, dtype=np.int64)
