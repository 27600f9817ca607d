"""Retention of a log in a database: its age and size limits, and its behavior when it is full."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from penstock.specs.positions import LAST_OFFSET
from penstock.specs.stream import Wal
from penstock.streams import clock
from penstock.streams.files import Files
from penstock.streams.sqlite.rows import used_bytes
from penstock.streams.storage import Full


class State(NamedTuple):
    """The bounds and the clock of the log."""

    first: int
    next: int
    last_us: int


class Eviction:
    """Applies the limits of a stream within a transaction."""

    def __init__(self, db: sqlite3.Connection, wal: Wal, limit: int, files: Files) -> None:
        self._db, self._wal, self._limit, self._files = db, wal, limit, files

    def make_room(self, size: int) -> None:
        """Remove the oldest frames until an append fits; raises `Full` if these are unread."""
        while used_bytes(self._db) + size > self._limit:
            following = self._db.execute("SELECT base FROM frames ORDER BY base LIMIT 2").fetchall()
            if not following:
                return  # a single append may exceed the limit: otherwise it could never be stored
            upto = following[1][0] if len(following) > 1 else read_state(self._db).next
            if self._wal.on_full == "block" and self._slowest(otherwise=0) < upto:
                raise Full("retention_bytes")
            self._evict(upto, "evicted_retention_bytes")

    def require_read(self, events: int, most: int | None) -> None:
        """Reject events beyond the unread limit. A single append may exceed it if all events were read."""
        if most is not None:
            state = read_state(self._db)
            unread = state.next - max(self._slowest(otherwise=state.first), state.first)
            if unread and unread + events > most:
                raise Full("max_unread")

    def expire(self) -> None:
        """Remove frames beyond the age limit, and beyond the size limit unless a reader still needs them."""
        keep_ms = self._wal.retention_ms
        if keep_ms is not None:
            # If the clock went back, no append counts as older than earlier ones; times from a clock that
            # was ahead are ignored.
            now_us = clock.now_us()
            oldest_us = now_us - keep_ms * 1000
            last = self._db.execute(
                "SELECT max(base) FROM frames WHERE time_us < ? AND base < coalesce("
                "(SELECT min(base) FROM frames WHERE time_us BETWEEN ? AND ?), ?)",
                (oldest_us, oldest_us, now_us, LAST_OFFSET),
            ).fetchone()[0]
            if last is not None:
                after = self._db.execute("SELECT min(base) FROM frames WHERE base > ?", (last,)).fetchone()[0]
                self._evict(read_state(self._db).next if after is None else after, "evicted_retention_ms")
        try:
            self.make_room(0)
        except Full:
            return  # retained until it is read

    def _evict(self, upto: int, reason: str) -> None:
        self._files.step("retention delete")
        first = read_state(self._db).first
        counts = {reason: upto - first}
        if (unread := upto - max(self._slowest(otherwise=upto), first)) > 0:
            counts["evicted_unread"] = unread
        self._db.execute("DELETE FROM frames WHERE base < ?", (upto,))
        self._db.execute("UPDATE state SET first = ?", (upto,))
        add_counts(self._db, counts)  # invariant 5

    def _slowest(self, otherwise: int) -> int:
        """The offset up to which every reader has read."""
        found = self._db.execute("SELECT min(next) FROM cursors").fetchone()[0]
        return otherwise if found is None else int(found)


def read_state(db: sqlite3.Connection) -> State:
    """The state of the log in a transaction."""
    return State(*db.execute("SELECT first, next, last_us FROM state").fetchone())


def add_counts(db: sqlite3.Connection, counts: Mapping[str, int]) -> None:
    """Add to the counters of a stream."""
    add = "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
    db.executemany(add, list(counts.items()))
