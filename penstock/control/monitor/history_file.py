"""The history on disk, so that charts survive a restart of the server.

Rows are written every few seconds: after a kill, the last rows may be missing. If the file can't be read or
written, charts lose their history, and nothing else is affected.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

log = structlog.get_logger()

FILE = "history.sqlite"

BUSY_S = 5.0

TABLES = """
CREATE TABLE IF NOT EXISTS moments (step INTEGER NOT NULL, slot INTEGER NOT NULL,
    PRIMARY KEY (step, slot)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (step INTEGER NOT NULL, key TEXT NOT NULL, slot INTEGER NOT NULL,
    numbers TEXT NOT NULL, PRIMARY KEY (step, key, slot)) WITHOUT ROWID;
"""

Values = Mapping[str, float | None]


@dataclass
class Unsaved:
    """Changes since the last write: sample times and changed rows of each resolution."""

    moments: list[tuple[int, int]] = field(default_factory=list)
    rows: list[tuple[int, str, int, Values]] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)

    def add(self, step_ms: int, slot: int, changed: Mapping[str, Values]) -> None:
        """Add a sample time with its changed rows."""
        self.moments.append((step_ms, slot))
        self.rows += [(step_ms, key, slot, values) for key, values in changed.items()]

    def forget(self, key: str) -> None:
        """Clear a key, on disk too."""
        self.forgotten.add(key)
        self.rows = [row for row in self.rows if row[1] != key]


class HistoryFile:
    """The history file in the home of a server."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._failed = False

    def load(self, step_ms: int) -> tuple[list[int], list[tuple[str, int, Values]]]:
        """The sample times of a resolution and the rows of all keys, ordered by time."""
        try:
            with self._open() as db:
                moments = db.execute("SELECT slot FROM moments WHERE step = ? ORDER BY slot", (step_ms,))
                rows = db.execute(
                    "SELECT key, slot, numbers FROM rows WHERE step = ? ORDER BY slot", (step_ms,)
                )
                return [slot for (slot,) in moments], [(key, at, json.loads(text)) for key, at, text in rows]
        except (sqlite3.Error, OSError, ValueError) as error:
            self._warn(error)
            return [], []

    def save(self, unsaved: Unsaved, first: Mapping[int, int]) -> None:
        """Write new rows, and remove rows older than the first sample time of their resolution."""
        rows = [(step, key, at, json.dumps(dict(values))) for step, key, at, values in unsaved.rows]
        try:
            with self._open() as db, db:
                _forget(db, unsaved.forgotten)
                db.executemany("INSERT OR REPLACE INTO moments VALUES (?, ?)", unsaved.moments)
                db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", rows)
                for step, slot in first.items():
                    _prune(db, step, slot)
            self._failed = False
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self._path, timeout=BUSY_S)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(TABLES)
            yield db

    def _warn(self, error: Exception) -> None:
        if not self._failed:
            log.warning("the history of metrics can't be stored", file=str(self._path), error=str(error))
        self._failed = True


def _forget(db: sqlite3.Connection, keys: Collection[str]) -> None:
    db.executemany("DELETE FROM rows WHERE key = ?", [(key,) for key in keys])


def _prune(db: sqlite3.Connection, step: int, first: int) -> None:
    """Remove rows before a slot, except the row of each key that is current at that slot."""
    db.execute("DELETE FROM moments WHERE step = ? AND slot < ?", (step, first))
    later = (
        "SELECT 1 FROM rows AS b WHERE b.step = a.step AND b.key = a.key AND b.slot > a.slot AND b.slot <= ?"
    )
    db.execute(
        f"DELETE FROM rows AS a WHERE a.step = ? AND a.slot < ? AND EXISTS ({later})", (step, first, first)
    )
