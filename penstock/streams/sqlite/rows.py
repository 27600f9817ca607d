"""The tables of a `storage: sqlite` log, and the rows that hold its events.

This uses the standard library's sqlite3 instead of SQLAlchemy: for a log, every statement counts. The file is
never opened by other means, since closing it would release SQLite's own locks.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import pyarrow as pa

FILE = "log.db"
PAGE = 4096
BUSY_S = 30.0
"""Seconds to wait for SQLite's lock: only for the checkpoint of a closing process, as writers queue at the
lock file."""

TABLES = """
CREATE TABLE IF NOT EXISTS frames (base INTEGER PRIMARY KEY, count INTEGER NOT NULL, time_us INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, meta BLOB NOT NULL, body BLOB);
CREATE INDEX IF NOT EXISTS frames_time ON frames (time_us);
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 0), first INTEGER NOT NULL,
    next INTEGER NOT NULL, last_us INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS windows (producer TEXT PRIMARY KEY, next INTEGER NOT NULL, fields TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cursors (reader TEXT PRIMARY KEY, next INTEGER NOT NULL, epoch INTEGER NOT NULL,
    at REAL NOT NULL, skipped INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""

_FIELDS = struct.Struct("<qqqqI?")


class Row(NamedTuple):
    """The events of one frame. Without a body, the events are lost, and the row records their offsets."""

    base: int
    events: int
    time_us: int
    raw_bytes: int
    checksum: int
    meta: bytes
    body: bytes | pa.Buffer | None

    @classmethod
    def of(
        cls, base: int, events: int, time_us: int, raw_bytes: int, meta: bytes, body: bytes | pa.Buffer | None
    ) -> Row:
        """A row with its checksum."""
        row = cls(base, events, time_us, raw_bytes, 0, meta, body)
        return row._replace(checksum=row.expected())

    def expected(self) -> int:
        """The expected checksum, which covers every field."""
        fields = (self.base, self.events, self.time_us, self.raw_bytes, len(self.meta), self.body is None)
        value = google_crc32c.extend(google_crc32c.value(_FIELDS.pack(*fields)), self.meta)
        return int(google_crc32c.extend(value, self.body or b""))

    @property
    def sound(self) -> bool:
        """Whether the checksum of the row is correct."""
        try:
            return self.checksum == self.expected()
        except (TypeError, struct.error):  # a field has another type, or is out of range
            return False


INSERT = "INSERT OR REPLACE INTO frames VALUES (?, ?, ?, ?, ?, ?, ?)"
SELECT = "SELECT base, count, time_us, raw_bytes, checksum, meta, body FROM frames WHERE base = ?"


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection without Python's own transactions, for any thread."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    if read_only and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        uri += "&immutable=1"  # there is no journal, and none can be created
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    db.text_factory = lambda data: data.decode(errors="surrogateescape")
    return db


def create(path: Path, floor: int = 0) -> sqlite3.Connection:
    """A connection for writing; the file and its tables are created if they don't exist.

    A new log begins at offset `floor`.
    """
    db = connect(path)
    try:
        db.execute(f"PRAGMA page_size={PAGE}")
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # so that the file can shrink
        db.execute("PRAGMA journal_mode=WAL").fetchall()
        db.executescript(TABLES)
        if not db.execute("SELECT 1 FROM state").fetchall():
            db.execute(
                "INSERT INTO state SELECT 0, coalesce(min(base), ?), max(coalesce(max(base + count), 0), ?),"
                " coalesce(max(time_us), 0) FROM frames",
                (floor, floor),
            )
    except BaseException:
        db.close()
        raise
    return db


def used_bytes(db: sqlite3.Connection) -> int:
    """The size of the file without free pages."""
    pages = db.execute("PRAGMA page_count").fetchone()[0] - db.execute("PRAGMA freelist_count").fetchone()[0]
    return int(pages) * PAGE


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is damaged."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
