"""Writing a damaged database anew from what can still be read of it.

SQLite itself gives up at the first damaged page of a table. Here its rows are looked for on both sides of
the damage, so that only what lies on the damaged pages is lost; readers are told its offsets as lost.
"""

from __future__ import annotations

import collections
import contextlib
import os
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import structlog

from penstock.streams import clock
from penstock.streams.files import Files, aside
from penstock.streams.rows import FILE, INSERT, PAGE, SELECT, Row, connect, create

log = structlog.get_logger()

MENDED = FILE + ".mended"
"""The new database, complete. Once it is there, it takes the place of the old one."""

MOST_PROBES = 20_000
"""Reads that may find damage before the rest counts as lost: a root page may take all with it."""

JOURNALS = ("-wal", "-shm")

PAGES_AT = 28
"""Where SQLite's file format has the number of pages, then the first free page and how many there are."""


def salvage(directory: Path, files: Files, floor: int) -> None:
    """Write the database anew. The caller is its only user, and the damaged one is kept beside it.

    `floor` is where offsets go on if nothing tells it.
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
        with contextlib.closing(connect(source, read_only=True)) as old:
            _copy(old, new, floor)
    finally:
        new.close()  # and its journal is in it
    _remove(files, copy)
    fd = files.open(temporary)
    try:
        files.sync(fd)
    finally:
        os.close(fd)
    files.step("salvaged")
    files.rename(temporary, directory / MENDED)
    files.sync_directory(directory)
    log.error("a damaged database was written anew", directory=str(directory))
    take_over(directory, files)


def _has_tables(path: Path) -> bool:
    """Whether the head of a database can be read."""
    with contextlib.closing(connect(path, read_only=True)) as db, contextlib.suppress(sqlite3.DatabaseError):
        return len(db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()) >= 5
    return False


def _give_head(damaged: Path, copy: Path, template: Path) -> None:
    """Copy a database with a new first page: all of them begin with the same one, except for their size."""
    shutil.copyfile(damaged, copy)  # nobody has it open, so that no lock is lost by closing it
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
    """Put a mended database in the place of the damaged one; goes on where a crash has stopped it.

    The old journal must be gone before: SQLite would take it for that of the new one.
    """
    mended = directory / MENDED
    if not mended.exists():
        return
    if (directory / FILE).exists():
        kept = aside(directory / FILE)
        for suffix in JOURNALS:
            with contextlib.suppress(FileNotFoundError):
                files.rename(directory / (FILE + suffix), kept.with_name(kept.name + suffix))
        files.step("set aside")
        files.rename(directory / FILE, kept)
    files.step("take over")
    files.rename(mended, directory / FILE)
    files.sync_directory(directory)


def mark_lost(db: sqlite3.Connection, first: int, next: int) -> None:
    """Remember that the events of a range are lost, in place of what is there."""
    db.execute("DELETE FROM frames WHERE base >= ? AND base < ?", (first, next))
    # The time of a neighbour, so that retention and the search by time are not misled.
    found = db.execute(
        "SELECT time_us FROM frames WHERE base < ? ORDER BY base DESC LIMIT 1", (first,)
    ).fetchone()
    found = found or db.execute("SELECT time_us FROM frames ORDER BY base LIMIT 1").fetchone()
    time_us = found[0] if found else clock.now_us()
    db.execute(INSERT, Row.of(first, next - first, time_us, 0, b"", None))


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, floor: int) -> None:
    new.execute("BEGIN")
    for table in ("producers", "cursors", "counters"):
        with contextlib.suppress(sqlite3.DatabaseError):
            for values in old.execute(f"SELECT * FROM {table}"):
                places = ", ".join("?" * len(values))
                new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", values)
    first = next = None
    with contextlib.suppress(sqlite3.DatabaseError):
        first, next = old.execute("SELECT first, next FROM state").fetchone() or (None, None)
    last_us = 0
    reached = first
    for base in _bases(old, 0, max(next or 0, floor)):
        row = _read(old, base)
        if row is not None and row.sound and (reached is None or base >= reached):
            if reached is not None and base > reached:
                mark_lost(new, reached, base)
            new.execute(INSERT, row)
            first = base if first is None else first
            reached, last_us = row.base + row.events, max(last_us, row.time_us)
    if next is None:
        next = max(floor, reached or 0)
    if reached is not None and reached < next:
        mark_lost(new, reached, next)
    first = next if first is None else first
    new.execute("UPDATE state SET first = ?, next = ?, last_us = ?", (first, next, last_us))
    new.execute("COMMIT")


def _read(db: sqlite3.Connection, base: int) -> Row | None:
    try:
        found = db.execute(SELECT, (base,)).fetchone()
    except sqlite3.DatabaseError:
        return None
    return Row(*found) if found else None


def _bases(db: sqlite3.Connection, first: int, next: int) -> Iterator[int]:
    """The base offsets that can be read, in order."""
    found: set[int] = set()
    ranges = collections.deque([(first, next)])
    for _ in range(MOST_PROBES):
        if not ranges:
            break
        low, high = ranges.popleft()
        below = _scan(db, low, high, "ASC", found)
        if below is None:
            continue  # to its end, without damage
        above = _scan(db, below, high, "DESC", found)
        if above is not None and above - below > 1:
            middle = (below + above) // 2
            ranges += [(below, middle), (middle, above)]
    return iter(sorted(found))


def _scan(db: sqlite3.Connection, low: int, high: int, order: str, found: set[int]) -> int | None:
    """Take in the base offsets of a range from one side on; where damage ends it, or None."""
    reached = low if order == "ASC" else high
    try:
        query = f"SELECT base FROM frames WHERE base >= ? AND base < ? ORDER BY base {order}"
        for (base,) in db.execute(query, (low, high)):
            found.add(base)
            reached = base + 1 if order == "ASC" else base
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT:
            return reached  # else there is no database, or no table, to be found
    return None
