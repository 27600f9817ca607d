"""What a log stands on: the small interface behind which events are kept.

`local` keeps them in segment files, `sqlite` in one database file. An offset is given to every event when
it is written, dense and in order (invariant 2); what `write` has returned for is kept until retention
removes it (invariant 1).
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from penstock.specs.stream import StreamSpec
from penstock.streams.frames import Body

FLUSH_S = 1.0
"""What was acknowledged without a sync is synced this much later: the most that a power loss takes."""


EXPECTED = -1
"""The epoch of a reader that has not run yet: lower than any other."""


@dataclass(frozen=True)
class Producer:
    """Who appends, and the number of the batch, so that a repeated batch is recognised (see producers.py).

    A later `epoch` of the same producer fences the earlier ones (invariant 6). `digest` identifies the
    content of the batch. A flow has none: Spark may compute the same batch again with other content, such as
    another order, and its number alone makes it the same.
    """

    id: str
    batch: int
    epoch: int = 0
    digest: str | None = None


@dataclass(frozen=True)
class Append:
    """Events to be written whole or not at all."""

    bodies: Sequence[Body]
    producer: Producer | None = None
    tx: tuple[tuple[int, int, str, bool], ...] = ()
    """Transactions of the source in it: first and next event by number, id, whether it ends there."""

    @property
    def events(self) -> int:
        """How many they are."""
        return sum(body.count for body in self.bodies)

    @property
    def bytes(self) -> int:
        """Their size in memory."""
        return sum(body.raw_bytes for body in self.bodies)


@dataclass(frozen=True)
class Appended:
    """Where events were written: offsets `first` to `next`, the latter exclusive.

    `duplicate` tells that the producer had appended this batch before: these are its offsets from then, and
    nothing was written now.
    """

    first: int
    next: int
    duplicate: bool = False


@dataclass(frozen=True)
class Span:
    """Events that lie together: all that can be known without reading them.

    With `lost`, they were there and cannot be read any more, and this is why.
    """

    base: int
    next: int
    time_us: int
    raw_bytes: int
    lost: str | None = None
    token: object = None
    """Where the storage finds them."""


@dataclass(frozen=True)
class Bounds:
    """What can be read: offsets `first` to `next`, the latter exclusive."""

    first: int
    next: int


@dataclass(frozen=True)
class Cursor:
    """A reader's durable progress: the next offset it has not dealt with.

    One that `expect` has made has the epoch `EXPECTED`: its reader has not run yet.
    """

    reader: str
    next: int
    epoch: int = 0
    at: float = 0.0
    skipped: int = 0
    """Events it could not get, because they were evicted or damaged."""

    @property
    def has_run(self) -> bool:
        """Whether the reader has begun."""
        return self.epoch != EXPECTED


@dataclass(frozen=True)
class Usage:
    """How much a log holds."""

    bytes: int
    segments: int
    oldest_us: int | None
    newest_us: int | None
    memory_bytes: int = 0
    details: list[dict[str, object]] = field(default_factory=list)
    """One entry per segment, oldest first."""


class Refusal(Exception):
    """An append was refused because of its producer, and nothing of it was written. `code` says why."""

    code: ClassVar[str]
    hint: str


class Fenced(Refusal):
    """A newer epoch of the same producer or reader is at work: the one that gets this must stop."""

    code = "fenced"
    hint = "a later epoch has taken over: stop"


class BatchConflict(Refusal):
    """The producer has appended another batch under this number."""

    code = "batch_conflict"

    def __init__(self, producer: Producer, following: int) -> None:
        super().__init__(f"batch {producer.batch} of producer '{producer.id}' was kept with another body")
        self.hint = (
            f"repeat a batch with the body it had, and give a new batch a new number, such as {following}; "
            "a producer that counts from the start again needs another name"
        )


class BatchTooOld(Refusal):
    """The number of the batch is lower than every number that is remembered of the producer."""

    code = "batch_too_old"

    def __init__(self, producer: Producer, lowest: int, following: int) -> None:
        super().__init__(
            f"batch {producer.batch} of producer '{producer.id}' is too old: only batches from {lowest} on "
            "are remembered, so whether it was kept before is not known"
        )
        self.hint = (
            f"if its events are not in the stream, send them as a new batch, such as {following}; "
            "a producer that counts from the start again needs another name"
        )


class Full(Exception):
    """There is no room now, and `reason` says which limit was met. Room may come: wait, or give up."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason.replace("_", " "))
        self.reason = reason


class WriteFailed(Exception):
    """The disk refused. Nothing of the append will be seen by a reader."""


class Storage(ABC):
    """Keeps the events of one stream. Used by one thread at a time, except for reads."""

    spec: StreamSpec

    def refresh(self) -> None:
        """Take up settings that were changed, without waiting. Every write does so anyway."""
        return None

    @abstractmethod
    def bounds(self) -> Bounds:
        """What can be read now."""

    def last_bounds(self) -> Bounds:
        """What could be read when the last writer ended, also if it is lost by now."""
        return self.bounds()

    @abstractmethod
    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        """Write in order, and return when the promise of the stream's settings holds.

        An append that is refused because of its producer is refused alone. Raises `Full` or `WriteFailed`,
        and then nothing was written.
        """

    @abstractmethod
    def spans(self, start: int) -> Iterator[Span]:
        """What lies from an offset on, until the end of what can be read now. The first may begin before."""

    @abstractmethod
    def fetch(self, span: Span) -> pa.RecordBatch:
        """The events of a span; raises `Damaged` if their checksum is wrong."""

    @abstractmethod
    def transactions(self, first: int, next: int) -> list[tuple[int, int, str, bool]]:
        """The marks of transactions in a range: first offset, next offset, id, whether it ends there."""

    @abstractmethod
    def offset_at(self, time_us: int) -> int:
        """The first offset that was appended at a time or later."""

    @abstractmethod
    def flush(self) -> None:
        """Have on disk what was acknowledged without waiting for it."""

    @abstractmethod
    def maintain(self) -> None:
        """Do what time asks for: close an old segment, remove what retention says, sync what waits."""

    @abstractmethod
    def usage(self) -> Usage:
        """How much is kept."""

    @abstractmethod
    def cursors(self) -> list[Cursor]:
        """Every reader's progress."""

    @abstractmethod
    def move_cursor(self, cursor: Cursor) -> None:
        """Keep a reader's progress; raises `Fenced` if a later epoch has done so."""

    def expect(self, reader: str) -> None:
        """Keep events for a reader that has not run yet: a log without readers takes all events for read."""
        if all(cursor.reader != reader for cursor in self.cursors()):
            with contextlib.suppress(Fenced):  # it has begun meanwhile
                self.move_cursor(Cursor(reader, 0, EXPECTED))

    @abstractmethod
    def forget_cursor(self, reader: str) -> None:
        """A reader is gone for good, and nothing waits for it any more."""

    @abstractmethod
    def count(self, **counts: int) -> None:
        """Add to the stream's counters: what was dropped, and why (invariant 5)."""

    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """The counters, over all processes and restarts."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything; what was written is on its way to the disk."""


class Damaged(Exception):
    """Events that cannot be read any more."""

    def __init__(self, first: int, next: int, reason: str) -> None:
        super().__init__(f"offsets {first} to {next - 1} are damaged: {reason}")
        self.first, self.next, self.reason = first, next, reason
