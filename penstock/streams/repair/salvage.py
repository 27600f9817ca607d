"""Rewriting a damaged database from its readable rows.

SQLite itself stops at the first damaged page of a table. Here rows are searched page by page, so that only
rows on damaged pages are lost; their offsets are marked as lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from pathlib import Path

import structlog

from penstock.streams import clock
from penstock.streams.files import Files, aside
from penstock.streams.repair.scavenge import scavenge
from penstock.streams.sqlite.rows import FILE, INSERT, PAGE, Row, connect, create

log = structlog.get_logger()

REWRITTEN = FILE + ".rewritten"
"""The complete new database. Once this file exists, it replaces the old database."""

JOURNALS = ("-wal", "-shm")

PAGES_AT = 28
"""The position in SQLite's header of the page count; the first free page and the free page count follow."""


def salvage(directory: Path, files: Files, floor: int) -> None:
    """Rewrite the database. No other process may use it, and the damaged file is saved next to it.

    `floor` is the next offset if it can't be read from the database.
    """
    temporary, copy = directory / f".{FILE}.tmp", directory / f".{FILE}.old.tmp"
    _remove(files, temporary, copy)
    create(temporary).close()
    source = directory / FILE
    if not _has_tables(source):
        _give_head(source, copy, template=temporary)
        source = copy
    new = create(temporary)
    try:
        with contextlib.closing(connect(source)) as old:  # closing it merges its journal
            known = _copy_tables(old, new)
        _copy_rows(source, new, known, floor)
    finally:
        new.close()  # this merges its journal
    _remove(files, copy)
    fd = files.open(temporary)
    try:
        files.sync(fd)
    finally:
        os.close(fd)
    files.step("salvaged")
    files.rename(temporary, directory / REWRITTEN)
    files.sync_directory(directory)
    log.error("a damaged database was rewritten", directory=str(directory))
    take_over(directory, files)


def _has_tables(path: Path) -> bool:
    """Whether the first page of a database can be read."""
    with contextlib.closing(connect(path, read_only=True)) as db, contextlib.suppress(sqlite3.DatabaseError):
        return len(db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()) >= 5
    return False


def _give_head(damaged: Path, copy: Path, template: Path) -> None:
    """Copy a database with a new first page, which is the same for all databases except for the size."""
    shutil.copyfile(damaged, copy)  # no process has the file open, so closing it releases no lock
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(f"{damaged}-wal", f"{copy}-wal")
    head = bytearray(template.read_bytes()[:PAGE])
    struct.pack_into(">III", head, PAGES_AT, copy.stat().st_size // PAGE, 0, 0)  # and no free pages
    with copy.open("r+b") as file:
        file.write(head)


def _remove(files: Files, *paths: Path) -> None:
    for path in paths:
        for suffix in ("", *JOURNALS):
            files.remove(path.with_name(path.name + suffix))


def take_over(directory: Path, files: Files) -> None:
    """Replace the damaged database with the repaired one; resumes after a crash.

    The old journal must be removed first: SQLite would apply it to the new file.
    """
    rewritten = directory / REWRITTEN
    if not rewritten.exists():
        return
    if (directory / FILE).exists():
        kept = aside(directory / FILE)
        for suffix in JOURNALS:
            with contextlib.suppress(FileNotFoundError):
                files.rename(directory / (FILE + suffix), kept.with_name(kept.name + suffix))
        files.step("set aside")
        files.rename(directory / FILE, kept)
    files.step("take over")
    files.rename(rewritten, directory / FILE)
    files.sync_directory(directory)


def mark_lost(db: sqlite3.Connection, first: int, end: int) -> None:
    """Mark the events of a range as lost, replacing existing rows."""
    db.execute("DELETE FROM frames WHERE base >= ? AND base < ?", (first, end))
    # The time of an adjacent row, so that retention and the search by time are not misled.
    found = db.execute(
        "SELECT time_us FROM frames WHERE base < ? ORDER BY base DESC LIMIT 1", (first,)
    ).fetchone()
    found = found or db.execute("SELECT time_us FROM frames ORDER BY base LIMIT 1").fetchone()
    time_us = found[0] if found else clock.now_us()
    db.execute(INSERT, Row.of(first, end - first, time_us, 0, b"", None))


def _copy_tables(old: sqlite3.Connection, new: sqlite3.Connection) -> tuple[int, int] | None:
    """Copy all tables except the events; returns the first and the next offset, if readable."""
    for table in ("windows", "cursors", "counters"):
        with contextlib.suppress(sqlite3.DatabaseError):
            for values in old.execute(f"SELECT * FROM {table}"):
                places = ", ".join("?" * len(values))
                new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", values)
    with contextlib.suppress(sqlite3.DatabaseError):
        found: tuple[int, int] | None = old.execute("SELECT first, next FROM state").fetchone()
        return found
    return None


def _copy_rows(path: Path, new: sqlite3.Connection, known: tuple[int, int] | None, floor: int) -> None:
    """Copy the events, and mark missing offsets between them as lost."""
    new.execute("BEGIN")
    first, stop = known or (0, floor)
    for row in scavenge(path):
        if first <= row.base and (known is None or row.base < stop):
            new.execute(INSERT, row)
    query = (
        "SELECT coalesce(min(base), 0), coalesce(max(base + count), 0), coalesce(max(time_us), 0) FROM frames"
    )
    lowest, highest, last_us = new.execute(query).fetchone()
    if known is None:
        first, stop = lowest if highest else stop, max(stop, highest)
    ranges = new.execute("SELECT base, base + count FROM frames ORDER BY base").fetchall()
    reached = first
    for base, end in [*ranges, (stop, stop)]:
        if base > reached:
            mark_lost(new, reached, base)
        reached = end
    new.execute("UPDATE state SET first = ?, next = ?, last_us = ?", (first, stop, last_us))
    new.execute("COMMIT")
