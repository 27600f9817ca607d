"""The states of a flow's sinks, read from its ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FILE = "ledger.db"
BUSY_S = 30.0

State = Literal["in_sync", "failing", "behind", "catching_up"]
"""`failing`: no batch acknowledged since the last failure; `behind`: batches were committed without it."""
Kept = Literal["stream", "file", "lost"]
"""The origin of a missed batch's events: read again from the stream, stored in a file, or lost."""


@dataclass(frozen=True)
class Range:
    """A run of consecutive missed batches."""

    first: int | None
    next: int | None
    batches: int
    events: int | None
    since: float
    kept: Kept
    why: str | None = None


@dataclass(frozen=True)
class Standing:
    """The state and the backlog of one sink."""

    state: State = "in_sync"
    cursor: int | None = None
    """All events of the source below this offset were delivered, or are known to be lost."""
    batch: int | None = None
    last_ack_at: float | None = None
    failures: int = 0
    last_error: str | None = None
    gaps: tuple[Range, ...] = ()


def read_standings(state: Path, sinks: Collection[str]) -> dict[str, Standing]:
    """The states of sinks, from the ledger in a directory; another process may be writing it."""
    path = state / FILE
    if not path.exists():
        return {sink: Standing() for sink in sinks}
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("PRAGMA query_only = ON")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sinks'").fetchone():
            return {sink: Standing() for sink in sinks}  # the ledger is being created
        return {sink: standing_of(db, sink) for sink in sinks}
    finally:
        db.close()


def standing_of(db: sqlite3.Connection, sink: str) -> Standing:
    """The state and the backlog of a sink."""
    query = "SELECT state, cursor, batch, last_ack_at, failures, last_error FROM sinks WHERE sink = ?"
    row = db.execute(query, (sink,)).fetchone()
    if row is None:
        return Standing()
    state, cursor, batch, last_ack_at, failures, last_error = row
    gaps = _gaps(db, sink)
    if gaps:
        cursor = gaps[0].first
    ranges = (*gaps, *_lost(db, sink))
    return Standing(state, cursor, batch, last_ack_at, failures, last_error, ranges)


def _gaps(db: sqlite3.Connection, sink: str) -> tuple[Range, ...]:
    found = db.execute(
        "SELECT min(first), max(next), count(*), sum(events), min(since), kept FROM"
        " (SELECT *, batch - row_number() OVER (PARTITION BY lineage, kept ORDER BY batch) AS island"
        "  FROM gaps WHERE sink = ?) GROUP BY lineage, kept, island ORDER BY min(number)",
        (sink,),
    )
    return tuple(Range(*row) for row in found)


def _lost(db: sqlite3.Connection, sink: str) -> tuple[Range, ...]:
    query = "SELECT first, next, batches, events, since, 'lost', why FROM lost WHERE sink = ? ORDER BY number"
    return tuple(Range(*row) for row in db.execute(query, (sink,)))
