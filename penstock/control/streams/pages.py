"""Pages of a stream's events, and its statistics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.control.streams.doors import Door
from penstock.specs.positions import Position
from penstock.streams.events import to_json
from penstock.streams.log import Chunk
from penstock.streams.storage import Bounds, Cursor

PAGE_BYTES = 4 * 1024 * 1024
"""The approximate maximum size of a page in bytes."""

TRANSIENT = "Events are held in memory only and are lost when Penstock restarts."


@dataclass(frozen=True)
class Gap:
    """Offsets whose events are no longer available, and the reason."""

    first: int
    next: int
    reason: str


@dataclass
class EventPage:
    """A page of events, after a gap if there was one. `next` is the start of the following page."""

    next: int
    events: list[dict[str, Any]] = field(default_factory=list)
    gap: Gap | None = None


@dataclass(frozen=True)
class Reader:
    """The progress of a reader."""

    reader: str
    cursor: int
    lag_events: int
    lag_ms: int | None
    """The age of the reader's next event in milliseconds; None if there is none, or it is unknown."""
    skipped: int
    updated: datetime | None


@dataclass(frozen=True)
class Stats:
    """The statistics of a stream."""

    stream: str
    events: int
    bytes: int
    memory_bytes: int
    segments: int
    first: int
    next: int
    oldest: datetime | None
    newest: datetime | None
    oldest_age_ms: int | None
    newest_age_ms: int | None
    buffer: Mapping[str, Any]
    counters: Mapping[str, int]
    readers: list[Reader]
    guarantee: str
    transient: bool
    note: str | None


def start_of(door: Door, position: Position | None, last: int | None) -> int:
    """The offset at which to start: of a position, or of the last `last` events."""
    if last is not None:
        bounds = door.log.bounds()
        return max(bounds.first, bounds.next - last)
    assert position is not None
    return door.log.resolve(position)


def range_of(door: Door, position: Position, to: Position | None) -> tuple[int, int]:
    """The offsets of a range: its first offset, and its exclusive end."""
    end = door.log.bounds().next
    return door.log.resolve(position), end if to is None else min(end, door.log.resolve(to))


def read_page(door: Door, start: int, limit: int) -> EventPage:
    """Up to `limit` events from an offset on."""
    return page_of(door, start, door.log.read(start), limit, PAGE_BYTES)


def page_of(door: Door, start: int, chunks: Iterable[Chunk], limit: int, most_bytes: int) -> EventPage:
    """The events of the chunks after an offset: up to `limit`, and about `most_bytes`, but at least one.

    A gap can only be at the start of a page: a later gap ends the page before it.
    """
    page, size = EventPage(start), 0
    for chunk in chunks:
        if chunk.batch is None:
            if page.events or page.gap:
                break
            page.gap = Gap(chunk.base, chunk.next, chunk.lost or "unknown")
            page.next = chunk.next
            continue
        part, count = _fitting(chunk, limit - len(page.events), most_bytes - size)
        size += part.nbytes
        page.events += to_json(part, chunk.base, chunk.time_us, door.payload)
        page.next = chunk.base + count
        if count < chunk.next - chunk.base or len(page.events) >= limit or size >= most_bytes:
            break
    return page


def _fitting(chunk: Chunk, most: int, room: int) -> tuple[Any, int]:
    """The events of a chunk that fit into a page: at least one."""
    assert chunk.batch is not None
    rows = chunk.batch.num_rows
    each = max(1, chunk.batch.nbytes // max(1, rows))
    count = max(1, min(rows, most, room // each))
    return chunk.batch.slice(0, count), count


def stats_of(door: Door) -> Stats:
    """The current statistics of a stream."""
    log, now = door.log, time.time()
    bounds, usage, buffer = log.bounds(), log.storage.usage(), door.spec.buffer
    fill = log.fill
    transient = not door.spec.wal.enabled
    return Stats(
        door.id,
        bounds.next - bounds.first,
        usage.bytes,
        usage.memory_bytes,
        usage.segments,
        bounds.first,
        bounds.next,
        _moment(usage.oldest_us),
        _moment(usage.newest_us),
        _age_ms(usage.oldest_us, now),
        _age_ms(usage.newest_us, now),
        {
            "events": fill["events"],
            "bytes": fill["bytes"],
            "max_events": buffer.max_events,
            "max_bytes": buffer.max_bytes,
            "mode": buffer.mode,
            "full": fill["full"],
        },
        dict(log.storage.counts()),
        [_reader(door, cursor, bounds, now) for cursor in log.storage.cursors()],
        door.guarantee,
        transient,
        TRANSIENT if transient else None,
    )


def _reader(door: Door, cursor: Cursor, bounds: Bounds, now: float) -> Reader:
    # The reader resumes at the first available event: evicted events do not count as lag.
    lag = max(0, bounds.next - max(cursor.next, bounds.first))
    waiting = next(iter(door.log.storage.spans(cursor.next)), None) if lag else None
    at = waiting.time_us if waiting is not None and not waiting.lost else None
    updated = datetime.fromtimestamp(cursor.at, UTC) if cursor.at else None
    return Reader(cursor.reader, cursor.next, lag, _age_ms(at, now), cursor.skipped, updated)


def _moment(us: int | None) -> datetime | None:
    return datetime.fromtimestamp(us / 1e6, UTC) if us else None


def _age_ms(us: int | None, now: float) -> int | None:
    return max(0, int(now * 1000 - us / 1000)) if us else None
