"""Repair of a stream's database."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from penstock.streams.faults import Fault, Report
from penstock.streams.files import Files, aside
from penstock.streams.local.floor import Floor
from penstock.streams.repair.salvage import JOURNALS, mark_lost
from penstock.streams.repair.verify_sqlite import verify_database
from penstock.streams.sqlite.database import Database
from penstock.streams.sqlite.rows import FILE
from penstock.streams.storage import WriteFailed


def repair_database(directory: Path, faults: Sequence[Fault], files: Files, *, discard: bool) -> list[Path]:
    """Repair faults of a database. Damaged data is saved next to the database, in the returned files.

    Damage of SQLite's own pages requires a rewrite of the file, which no other process may have open.
    """
    if not faults:
        return []
    before = set(directory.glob("*.damaged*"))
    database = Database(directory, files, Floor(directory, files).read)
    try:
        if any(fault.kind == "database" for fault in faults) and database.rewrite():
            report = Report()
            verify_database(directory, report, lambda done, total: None)
            faults = report.faults
        for fault in faults:
            if fault.kind in ("damaged", "body", "missing"):
                with contextlib.suppress(WriteFailed):  # needs a rewrite: the fault is reported as left
                    _mark(database, fault, directory, files, discard=discard)
    finally:
        database.close()
    kept = sorted(set(directory.glob("*.damaged*")) - before)
    if discard:
        for path in kept:
            files.remove(path)
        return []
    return [path for path in kept if not path.name.endswith(JOURNALS)]


def _mark(database: Database, fault: Fault, directory: Path, files: Files, *, discard: bool) -> None:
    with database.transaction(durable=True) as db:
        first = max(fault.first, db.execute("SELECT first FROM state").fetchone()[0])
        query = "SELECT base, body FROM frames WHERE base >= ? AND base < ?"
        rows = db.execute(query, (first, fault.next)).fetchall()
        for base, body in () if discard else rows:
            if body is not None:
                kept = aside(directory / f"{FILE}-{base:020d}")
                files.replace(kept, body if isinstance(body, bytes) else str(body).encode(), durable=True)
        files.step("repair")
        if first < fault.next:
            mark_lost(db, first, fault.next)
