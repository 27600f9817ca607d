"""Verification of a stream's database."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from pathlib import Path

from penstock.streams.faults import Progress, Report, body_fault
from penstock.streams.sqlite.rows import FILE, SELECT, Row, connect

STEP = 256
MOST_COMPLAINTS = 20
"""The maximum number of messages: SQLite may report the same damage many times."""


def verify_database(directory: Path, report: Report, progress: Progress) -> None:
    """Verify every row. The database may be in use: each read sees a consistent snapshot."""
    path = directory / FILE
    if not path.exists():
        return  # nothing was appended yet
    try:
        with contextlib.closing(connect(path, read_only=True)) as db:
            complaints = db.execute(f"PRAGMA quick_check({MOST_COMPLAINTS})").fetchall()
            for (message,) in complaints:
                if message != "ok":
                    report.add("database", FILE, 0, 0, message)
            report.segments = 1
            _rows(db, report, progress)
    except sqlite3.DatabaseError as error:
        report.add("database", FILE, 0, 0, f"can't be read: {error}")


def _rows(db: sqlite3.Connection, report: Report, progress: Progress) -> None:
    begin, end = db.execute("SELECT first, next FROM state").fetchone()
    reached, last, more = begin, -1, True
    while more:
        query = "SELECT base FROM frames WHERE base > ? AND base < ? ORDER BY base LIMIT ?"
        bases = [base for (base,) in db.execute(query, (last, end, STEP))]
        # Read afterwards, since retention continues: rows removed in the meantime are not missing.
        first = db.execute("SELECT first FROM state").fetchone()[0]
        more = len(bases) == STEP
        for base, after in itertools.pairwise(bases if more else [*bases, end]):
            reached = max(reached, min(first, base))
            if base > reached:
                report.add("missing", FILE, reached, base, "there is no row")
            reached, last = _row(db, base, after, report), base
        progress(max(reached - begin, 0), end - begin)
    if max(reached, first) < end:
        report.add("missing", FILE, max(reached, first), end, "there is no row")


def _row(db: sqlite3.Connection, base: int, limit: int, report: Report) -> int:
    """Check one row; returns the offset after its events. `limit` is the next row, or the end of the log."""
    try:
        found = db.execute(SELECT, (base,)).fetchone()
    except sqlite3.DatabaseError as error:
        report.add("damaged", FILE, base, limit, f"the row cannot be read: {error}")
        return limit
    if found is None:
        return limit  # removed by retention
    row = Row(*found)
    end = base + row.events
    if not row.sound:
        report.add("damaged", FILE, base, limit, "the checksum is wrong")
        return limit
    if row.body is None:
        report.add("lost", FILE, base, end, "the events were left out by a repair")
        return end
    report.bytes += len(row.body) + len(row.meta)
    if wrong := body_fault(row.body, row.events):
        report.add("body", FILE, base, end, f"the frame {wrong}")
    else:
        report.events += row.events
    return end
