"""The storage interface of a log.

`local` stores events in segment files, `sqlite` in one database file. Every event is assigned an offset when
it is written, dense and in order (invariant 2); events for which `write` has returned are retained until
retention removes them (invariant 1).
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from penstock.errors import Retryable
from penstock.specs.stream import StreamSpec
from penstock.streams.frames import Body

FLUSH_S = 1.0
"""Seconds after which events acknowledged without a sync are synced: the most that a power loss loses."""

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.05
"""Seconds between two polls of a reader that waits for events: shortly after an event, and much later."""

EXPECTED = -1
"""The epoch of a reader that has not run yet: lower than any other."""


@dataclass(frozen=True)
class Producer:
    """A producer and the number of its batch, so that a repeated batch is recognized (see producers.py).

    A later `epoch` of the same producer fences the earlier ones (invariant 6). `digest` identifies the
    content of the batch. Batches of a flow have no digest: Spark may compute a batch again with different
    content, such as another order, and only the number identifies it. `position` is the position in another
    system at which the events end. It is stored with the events, so that the producer can resume from it.
    """

    id: str
    batch: int
    epoch: int = 0
    digest: str | None = None
    position: str | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a producer: the number of its next batch, and its last position."""

    following: int = 0
    position: str | None = None


@dataclass(frozen=True)
class Append:
    """Events that are written atomically."""

    bodies: Sequence[Body]
    producer: Producer | None = None
    tx: tuple[tuple[int, int, str, bool], ...] = ()
    """Transactions of the source: first and next event by number, id, whether the transaction ends there."""

    @property
    def events(self) -> int:
        """The number of events."""
        return sum(body.count for body in self.bodies)

    @property
    def bytes(self) -> int:
        """The size of the events in memory, in bytes."""
        return sum(body.raw_bytes for body in self.bodies)


@dataclass(frozen=True)
class Appended:
    """The offsets at which events were written: `first` to `next`, the latter exclusive.

    `duplicate` means that the producer had appended this batch before: these are its earlier offsets, and
    nothing was written now.
    """

    first: int
    next: int
    duplicate: bool = False


@dataclass(frozen=True)
class Span:
    """Consecutive events: the metadata that is known without reading them.

    `lost` is the reason why the events can no longer be read.
    """

    base: int
    next: int
    time_us: int
    raw_bytes: int
    lost: str | None = None
    token: object = None
    """The place of the events in the storage."""


@dataclass(frozen=True)
class Place:
    """The place of a span's frame: a file, and the bytes from `at` to `end`."""

    path: str
    at: int
    end: int
    shape: bytes
    """The schema of the stored events, as an Arrow message."""
    record: Record | None = None
    """The record with the frame, if the frame is in Kafka and not in a file."""


@dataclass(frozen=True)
class Record:
    """A record in Kafka that holds the frame of a span."""

    topic: str
    partition: int
    position: int
    client: Mapping[str, str]
    """The settings of Kafka's Java client."""


@dataclass(frozen=True)
class Bounds:
    """The offsets that can be read: `first` to `next`, the latter exclusive."""

    first: int
    next: int


@dataclass(frozen=True)
class Cursor:
    """A reader's durable progress: the next offset to read.

    A cursor created by `expect` has the epoch `EXPECTED`: its reader has not run yet.
    """

    reader: str
    next: int
    epoch: int = 0
    at: float = 0.0
    skipped: int = 0
    """Events that the reader missed, because they were evicted or damaged."""

    @property
    def has_run(self) -> bool:
        """Whether the reader has begun."""
        return self.epoch != EXPECTED


@dataclass(frozen=True)
class Usage:
    """The size of a log."""

    bytes: int
    segments: int
    oldest_us: int | None
    newest_us: int | None
    memory_bytes: int = 0
    details: list[dict[str, object]] = field(default_factory=list)
    """One entry per segment, oldest first."""


class Refusal(Exception):
    """An append was rejected because of its producer, and not written. `code` is the reason."""

    code: ClassVar[str]
    hint: str


class Fenced(Refusal):
    """A newer epoch of the same producer or reader is active: the older one must stop."""

    code = "fenced"
    hint = "a later epoch has taken over: stop"


class BatchConflict(Refusal):
    """The producer has appended another batch under this number."""

    code = "batch_conflict"

    def __init__(self, producer: Producer, following: int) -> None:
        super().__init__(
            f"batch {producer.batch} of producer '{producer.id}' was stored with a different body"
        )
        self.hint = (
            f"repeat a batch with the same body, and use a new number for a new batch, such as {following}; "
            "a producer that restarts its numbering needs another name"
        )


class BatchTooOld(Refusal):
    """The number of the batch is lower than all remembered numbers of the producer."""

    code = "batch_too_old"

    def __init__(self, producer: Producer, lowest: int, following: int) -> None:
        super().__init__(
            f"batch {producer.batch} of producer '{producer.id}' is too old: only batches from {lowest} on "
            "are remembered, so it is unknown whether it was stored before"
        )
        self.hint = (
            f"if its events are not in the stream, send them as a new batch, such as {following}; "
            "a producer that restarts its numbering needs another name"
        )


class Full(Exception):
    """The log is full; `reason` names the limit. Room may become free: wait, or give up."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason.replace("_", " "))
        self.reason = reason


class Moved(Retryable):
    """The stream has been moved to another storage: open it again. Nothing was changed."""


class WriteFailed(Exception):
    """A write to disk failed. No reader will see any event of the append."""


class Storage(ABC):
    """Stores the events of one stream. Used by one thread at a time, except for reads."""

    kind: ClassVar[str]
    """The value of `storage` in the settings of a stream."""

    rests: ClassVar[bool] = False
    """Whether the storage closes idle files and opens them again on use (see `open_files.py`)."""

    directory: Path
    spec: StreamSpec
    _grown_at = 0.0
    """The last time a waiting reader found events, on the monotonic clock."""

    @property
    def moved(self) -> bool:
        """Whether the settings of the stream now name another storage."""
        self.refresh()
        return self.spec.storage != self.kind

    def refresh(self) -> None:
        """Apply changed settings, without waiting. Every write does so too."""
        return None

    @abstractmethod
    def bounds(self) -> Bounds:
        """The offsets that can be read now."""

    def last_bounds(self) -> Bounds:
        """The readable offsets when the last writer ended, even if events have been lost since."""
        return self.bounds()

    def wait(self, offset: int, seconds: float) -> bool:
        """Wait until there is an event at an offset; false if none has arrived after `seconds`."""
        deadline = time.monotonic() + seconds
        while self.bounds().next <= offset:
            now = time.monotonic()
            if now >= deadline or self.moved:
                return False
            # Another event is likely soon after the last one; many readers of idle streams must cost little.
            pause = min(max((now - self._grown_at) / 50, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)
            time.sleep(min(pause, deadline - now))
        self._grown_at = time.monotonic()
        return True

    @abstractmethod
    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        """Write in order, and return when the guarantee of the stream's settings holds.

        If an append is rejected because of its producer, the others are still written. Raises `Full` or
        `WriteFailed` if nothing was written.
        """

    @abstractmethod
    def progress(self, producer: str) -> Progress:
        """The progress of a producer, by the appends of all processes."""

    @abstractmethod
    def spans(self, start: int) -> Iterator[Span]:
        """The spans from an offset up to the current end. The first span may begin before the offset."""

    @abstractmethod
    def fetch(self, span: Span) -> pa.RecordBatch:
        """The events of a span; raises `Damaged` if their checksum is wrong."""

    def place(self, span: Span) -> Place | None:
        """The place of a span's frame; None if the storage has no frames in files, or the frame is lost."""
        return None

    @abstractmethod
    def transactions(self, first: int, end: int) -> list[tuple[int, int, str, bool]]:
        """The marks of transactions in a range: first offset, next offset, id, whether it ends there."""

    @abstractmethod
    def offset_at(self, time_us: int) -> int:
        """The first offset that was appended at or after a time."""

    @abstractmethod
    def flush(self) -> None:
        """Sync events that were acknowledged without a sync."""

    @abstractmethod
    def maintain(self) -> None:
        """Do periodic work: close an old segment, apply retention, sync."""

    @abstractmethod
    def usage(self) -> Usage:
        """The current size of the log."""

    @abstractmethod
    def cursors(self) -> list[Cursor]:
        """Every reader's progress."""

    @abstractmethod
    def move_cursor(self, cursor: Cursor) -> None:
        """Store a reader's progress; raises `Fenced` if a later epoch has stored its own."""

    def expect(self, readers: Collection[str]) -> None:
        """Retain events for readers that have not run yet: without readers all events count as read."""
        known = {cursor.reader for cursor in self.cursors()}
        for reader in readers:
            if reader not in known:
                with contextlib.suppress(Fenced):  # the reader has started in the meantime
                    self.move_cursor(Cursor(reader, 0, EXPECTED))

    @abstractmethod
    def forget_cursor(self, reader: str) -> None:
        """Remove a reader, so that no events are retained for it."""

    @abstractmethod
    def count(self, **counts: int) -> None:
        """Add to the stream's counters of dropped events, by reason (invariant 5)."""

    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """The counters, over all processes and restarts."""

    @abstractmethod
    def close(self) -> None:
        """Close the storage. Written events may not be synced yet."""


class Damaged(Exception):
    """Events that can no longer be read."""

    def __init__(self, first: int, end: int, reason: str) -> None:
        super().__init__(f"offsets {first} to {end - 1} are damaged: {reason}")
        self.first, self.next, self.reason = first, end, reason
