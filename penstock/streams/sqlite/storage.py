"""`storage: sqlite`: a log in one database file with a size limit, appended to by many processes.

stream.json    settings (see config.py)
log.db         events, cursors, producers and counters (see rows.py); SQLite's journal is next to it
lock           held by the process that writes, for the write only
users          held, shared, by every process that has the database open
floor          no offset below it is assigned again if the database is lost

A frame is a row, so retention removes frame by frame: `segment_bytes`, `segment_ms` and `max_segments` have
no effect. Every write is an SQLite transaction: synced with `sync: true`, else within a second.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import structlog

from penstock.specs.stream import DEFAULT_LIMIT
from penstock.streams import clock
from penstock.streams.config import StreamConfig, config_version, read_config
from penstock.streams.counters import NAMES
from penstock.streams.files import Files
from penstock.streams.frames import decode_body, parse_meta
from penstock.streams.local.floor import Floor
from penstock.streams.open_files import OPEN_FILES
from penstock.streams.producers import MOST, Batch, Producers, Window
from penstock.streams.sqlite.database import Database
from penstock.streams.sqlite.eviction import Eviction, State, add_counts, read_state
from penstock.streams.sqlite.rows import INSERT, SELECT, Row
from penstock.streams.storage import (
    FLUSH_S,
    Append,
    Appended,
    Bounds,
    Cursor,
    Damaged,
    Fenced,
    Full,
    Progress,
    Refusal,
    Span,
    Storage,
    Usage,
    WriteFailed,
)

log = structlog.get_logger()

SMALLEST_LIMIT = 128 * 1024
"""The minimum size limit in bytes: below it, the tables themselves would leave no room for events."""

LARGEST_JOURNAL = 4 * 1024 * 1024
SHRINK_PAGES = 8192
"""The number of free pages to release at once, so that other processes do not wait long for the lock."""

ROW_BYTES = 128
"""The approximate overhead of a row in bytes."""

PAGE_ROWS = 512
"""The number of rows per read: a long read would prevent SQLite from reusing its journal."""

FILES = 7
"""The descriptors of an open database: two locks, and two connections with file, journal and index."""

_forked: list[Database] = []
"""Databases of a parent process: a child can't even close them safely."""


class SqliteStorage(Storage):
    """The log in a database file."""

    kind = "sqlite"
    rests = True
    used = False

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.directory, self.files = directory, files or Files()
        self.config: StreamConfig = read_config(directory)
        self.spec = self.config.spec
        self._config_version = config_version(directory)
        self._counting, self._uncounted = threading.Lock(), Counter[str]()
        self._dirty_since: float | None = None
        self._floor = Floor(directory, self.files)
        self._open()

    def _open(self) -> None:
        self._database = Database(self.directory, self.files, self._floor.read, self.opened)
        self._pid = os.getpid()
        self.opened()
        self._database.keep_journal_below(self._journal)

    @property
    def _db(self) -> Database:
        if self._pid != os.getpid():
            _forked.append(self._database)
            self._open()
        self.used = True
        return self._database

    @property
    def limit(self) -> int:
        """The size limit of the database in bytes. One append, and the journal, may exceed it."""
        return max(self.spec.wal.retention_bytes or DEFAULT_LIMIT, SMALLEST_LIMIT)

    @property
    def _journal(self) -> int:
        return min(LARGEST_JOURNAL, self.limit // 4)

    # Reading

    def bounds(self) -> Bounds:
        return Bounds(*self._db.read("SELECT first, next FROM state")[0])

    def spans(self, start: int) -> Iterator[Span]:
        bounds = self.bounds()
        reached = start
        if start < bounds.first:
            yield Span(start, bounds.first, 0, 0, lost="evicted")
            reached = bounds.first
        while reached < bounds.next:
            for span in self._spans(reached, bounds.next):
                yield span
                reached = span.next

    def _spans(self, start: int, end: int) -> Iterator[Span]:
        """The spans found by one read. Missing rows were evicted since, or are lost."""
        rows = self._db.read(
            "SELECT base, count, time_us, raw_bytes, body IS NULL FROM frames WHERE base < ? AND base >="
            " (SELECT coalesce(max(base), 0) FROM frames WHERE base <= ?) ORDER BY base LIMIT ?",
            (end, start, PAGE_ROWS),
        )
        first, reached = self.bounds().first, start
        if len(rows) < PAGE_ROWS:
            rows.append((end, 0, 0, 0, True))
        for (base, count, time_us, raw_bytes, lost), after in itertools.pairwise([*rows, (end,)]):
            if base > reached:
                yield Span(reached, base, 0, 0, lost="evicted" if reached < first else "missing")
            # A damaged event count must not hide the events of the next row.
            stop = min(base + count, after[0])
            if stop > max(reached, start):
                reason = "left out by a repair" if lost else None
                yield Span(base, stop, time_us, raw_bytes, lost=reason, token=None if lost else base)
            reached = max(base, stop)

    def fetch(self, span: Span) -> pa.RecordBatch:
        if span.token is None:
            raise Damaged(span.base, span.next, span.lost or "unknown")
        row = self._row(span.base)
        if row is None:
            raise Damaged(span.base, span.next, "evicted")
        if not row.sound or row.body is None:
            raise Damaged(span.base, span.next, "wrong checksum")
        return decode_body(row.body)

    def _row(self, base: int) -> Row | None:
        """A row, or None; an invalid row if SQLite cannot read it."""
        try:
            found = self._db.read(SELECT, (base,))
        except sqlite3.DatabaseError:
            return Row(base, 0, 0, 0, -1, b"", None)
        return Row(*found[0]) if found else None

    def transactions(self, first: int, end: int) -> list[tuple[int, int, str, bool]]:
        rows = self._db.read(
            "SELECT meta FROM frames WHERE base < ? AND base + count > ? AND length(meta) > 0 AND base >="
            " (SELECT coalesce(max(base), 0) FROM frames WHERE base <= ?) ORDER BY base",
            (end, first, first),
        )
        marks: list[tuple[int, int, str, bool]] = []
        for (meta,) in rows:
            with contextlib.suppress(ValueError):  # damaged, like its events
                marks += [
                    (first, end, transaction, closed)
                    for first, end, transaction, closed in parse_meta(meta)["tx"]
                ]
        return marks

    def offset_at(self, time_us: int) -> int:
        [(base, end)] = self._db.read(
            "SELECT (SELECT min(base) FROM frames WHERE time_us >= ?), (SELECT next FROM state)", (time_us,)
        )
        return int(end if base is None else base)

    def usage(self) -> Usage:
        [(pages, free, size)] = self._db.read(
            "SELECT (SELECT * FROM pragma_page_count), (SELECT * FROM pragma_freelist_count),"
            " (SELECT * FROM pragma_page_size)"
        )
        [(base, oldest, newest)] = self._db.read(
            "SELECT (SELECT first FROM state), (SELECT time_us FROM frames ORDER BY base LIMIT 1),"
            " (SELECT time_us FROM frames ORDER BY base DESC LIMIT 1)"
        )
        used = (pages - free) * size
        return Usage(used, 1, oldest, newest, 0, [{"base": base, "bytes": used, "memory": False}])

    # Cursors and counters

    def cursors(self) -> list[Cursor]:
        rows = self._db.read("SELECT reader, next, epoch, at, skipped FROM cursors ORDER BY reader")
        return [Cursor(*row) for row in rows]

    def move_cursor(self, cursor: Cursor) -> None:
        with self._db.transaction(durable=self.spec.wal.sync) as db:
            known = db.execute("SELECT epoch FROM cursors WHERE reader = ?", (cursor.reader,)).fetchone()
            if known is not None and known[0] > cursor.epoch:  # invariant 6
                raise Fenced(f"reader '{cursor.reader}' is at epoch {known[0]}, not {cursor.epoch}")
            values = (cursor.reader, cursor.next, cursor.epoch, cursor.at or time.time(), cursor.skipped)
            db.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?, ?)", values)

    def forget_cursor(self, reader: str) -> None:
        with self._db.transaction(durable=self.spec.wal.sync) as db:
            db.execute("DELETE FROM cursors WHERE reader = ?", (reader,))

    def count(self, **counts: int) -> None:
        with self._counting:
            self._uncounted.update(counts)
            try:
                with self._db.transaction(durable=False) as db:
                    add_counts(db, self._uncounted)
                self._uncounted.clear()
            except (Full, WriteFailed) as error:  # added with the next counts
                log.warning("a stream's counters are not written", stream=self.config.id, error=str(error))

    def counts(self) -> Mapping[str, int]:
        found = dict(self._db.read("SELECT name, count FROM counters"))
        return {name: found.get(name, 0) + self._uncounted[name] for name in NAMES}

    # Writing

    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        self._reconfigure()
        size = sum(len(body.data) + ROW_BYTES for append in appends for body in append.bodies)
        self._require_space(size)
        since = self._dirty_since or time.monotonic()
        durable = self.spec.wal.sync or time.monotonic() - since >= FLUSH_S
        self._db.keep_journal_below(self._journal)
        with self._db.transaction(durable=durable) as db:
            state = read_state(db)
            producers = self._known(db, appends)
            rows, results = self._rows(appends, state, producers)
            known = [
                (producer, window.next, json.dumps(window.fields()))
                for producer, window in producers.known.items()
            ]
            db.executemany("INSERT OR REPLACE INTO windows VALUES (?, ?, ?)", known)
            if rows:
                end = rows[-1].base + rows[-1].events
                self._floor.reserve(end)
                eviction = self._eviction(db)
                eviction.require_read(end - state.next, self.spec.buffer.max_unread)
                eviction.make_room(size)
                db.executemany(INSERT, rows)
                db.execute("UPDATE state SET next = ?, last_us = ?", (end, rows[-1].time_us))
        self._dirty_since = None if durable else since
        return results

    def progress(self, producer: str) -> Progress:
        found = self._db.read("SELECT fields FROM windows WHERE producer = ?", (producer,))
        known = {producer: Window.parse(*json.loads(found[0][0]))} if found else {}
        return Producers(known).progress(producer)

    def _known(self, db: sqlite3.Connection, appends: Sequence[Append]) -> Producers:
        """The windows of the producers of appends."""
        known = {}
        for producer in {append.producer.id for append in appends if append.producer}:
            found = db.execute("SELECT fields FROM windows WHERE producer = ?", (producer,)).fetchone()
            if found is not None:
                known[producer] = Window.parse(*json.loads(found[0]))
        return Producers(known)

    def _rows(
        self, appends: Sequence[Append], state: State, producers: Producers
    ) -> tuple[list[Row], list[Appended | Refusal]]:
        """The rows to write, and the result of each append once they are written."""
        offset, now = state.next, clock.stamp_us(state.last_us)
        rows: list[Row] = []
        results: list[Appended | Refusal] = []
        for append in appends:
            verdict = producers.judge(append.producer) if append.producer else None
            if verdict is not None:
                results.append(verdict)
                repeats = append.producer if isinstance(verdict, Appended) else None
                if repeats is not None and producers.outranks(repeats):
                    producers.note_epoch(repeats)  # from now on the earlier epoch is fenced
                continue
            first = offset
            for i, body in enumerate(append.bodies):
                meta = b""
                if i == 0 and append.tx:  # a reader learns of a transaction before it reads its events
                    tx = [
                        [first + begin, first + end, transaction, closed]
                        for begin, end, transaction, closed in append.tx
                    ]
                    meta = json.dumps({"tx": tx}, separators=(",", ":")).encode()
                rows.append(Row.of(offset, body.count, now, body.raw_bytes, meta, body.data))
                offset += body.count
            if (p := append.producer) is not None:
                producers.note(p.id, p.epoch, Batch(p.batch, first, offset, p.digest), p.position)
            results.append(Appended(first, offset))
        return rows, results

    def flush(self) -> None:
        if self._dirty_since is not None:
            self._dirty_since = None
            self._db.sync()

    def maintain(self) -> None:
        self._reconfigure()
        with self._db.transaction(durable=False) as db:
            self._eviction(db).expire()
            latest = "SELECT producer FROM windows ORDER BY next DESC LIMIT ?"
            db.execute(f"DELETE FROM windows WHERE producer NOT IN ({latest})", (MOST,))
        self._db.shrink(SHRINK_PAGES)

    def close(self) -> None:
        self.flush()
        self._db.close()
        OPEN_FILES.closed(self)

    # Descriptors

    def opened(self) -> None:
        """Register the opened files; other logs close theirs if the process has too many."""
        OPEN_FILES.opened(self)

    @property
    def open_files(self) -> int:
        return 0 if self._database.resting else FILES

    def rest(self) -> bool:
        self.flush()
        return self._pid == os.getpid() and self._database.rest()

    # Retention

    def _eviction(self, db: sqlite3.Connection) -> Eviction:
        return Eviction(db, self.spec.wal, self.limit, self.files)

    def _require_space(self, size: int) -> None:
        """Reject appends before the volume is full: reading, deleting and moving cursors need space too."""
        least = self.config.free_bytes + size
        if self.files.free_bytes(self.directory) < least:
            self.maintain()
            if self.files.free_bytes(self.directory) < least:
                raise Full("disk_full")

    def refresh(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # a write would report it
            self._reconfigure()

    def _reconfigure(self) -> None:
        version = config_version(self.directory)
        if version != self._config_version:
            self.config, self._config_version = read_config(self.directory), version
            self.spec = self.config.spec
