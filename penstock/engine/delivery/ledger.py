"""The delivery ledger of a flow: the batches that each sink has acknowledged or missed.

It is one SQLite file next to the checkpoints of the flow. The worker that runs the flow writes it; any
process may read it, even while the flow is stopped. A transaction survives a kill of the process at any
point. Missed batches are also synced, since no other file records them; acknowledgements are not, since after
a power loss the batch is repeated under the same number.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from penstock.connectors.base import DeliveryId
from penstock.engine.delivery.sink_states import BUSY_S, FILE, Kept, Standing, State, standing_of
from penstock.errors import Suspended
from penstock.streams.files import Files

log = structlog.get_logger()

NOTES = "$notes"
"""Used in place of a sink's id: an entry means that the notes of a batch are stored."""

TABLES = """
CREATE TABLE IF NOT EXISTS acks (lineage TEXT NOT NULL, batch INTEGER NOT NULL, sink TEXT NOT NULL,
    PRIMARY KEY (lineage, batch, sink)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gaps (number INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL,
    lineage TEXT NOT NULL, batch INTEGER NOT NULL, first INTEGER, next INTEGER, events INTEGER,
    kept TEXT NOT NULL, origin TEXT NOT NULL, file TEXT, bytes INTEGER NOT NULL, since REAL NOT NULL,
    UNIQUE (sink, lineage, batch));
CREATE TABLE IF NOT EXISTS lost (number INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL,
    lineage TEXT NOT NULL, first INTEGER, next INTEGER, last INTEGER NOT NULL, batches INTEGER NOT NULL,
    events INTEGER, since REAL NOT NULL, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sinks (sink TEXT PRIMARY KEY, state TEXT NOT NULL DEFAULT 'in_sync',
    cursor INTEGER, batch INTEGER, last_ack_at REAL, failures INTEGER NOT NULL DEFAULT 0, last_error TEXT)
    WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Span:
    """The source offsets of a batch, the second one exclusive; None if the source has no offsets."""

    first: int | None = None
    next: int | None = None

    @property
    def empty(self) -> bool:
        """Whether it is known that the batch has no events."""
        return self.first is not None and self.first == self.next


@dataclass(frozen=True)
class Gap:
    """A batch that a sink has missed, and that can still be delivered."""

    number: int
    delivery: DeliveryId
    span: Span
    kept: Kept
    origin: str
    """The identity of the source of the offsets: after a change of the source they can't be read any more."""
    file: str | None


class Ledger:
    """The only writer of a ledger, shared by its threads.

    Once the ledger was opened under a later epoch, every write is rejected (invariant 6). A `shared` ledger
    is on a file system that other machines also write to.
    """

    def __init__(self, directory: Path, epoch: int = 0, *, shared: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / FILE
        self._lock = threading.RLock()
        self._synced: bool | None = None
        self._states: tuple[int, dict[str, State]] | None = None
        self.missed_changes = 0
        """Grows with each change of the missed and the lost batches, which no other file records."""
        try:
            self._db = _opened(path, shared)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise  # the database or the disk is busy: a retry may work
            aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
            log.error("ledger damaged, started a new one", path=str(path), kept=str(aside), error=str(error))
            Files().rename_durably(path, aside)
            for rest in ("-wal", "-shm"):
                path.with_name(path.name + rest).unlink(missing_ok=True)
            self._db = _opened(path, shared)
        self._epoch = epoch
        with self._writing() as db:
            db.execute(f"PRAGMA user_version = {epoch}")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def image(self) -> bytes:
        """The ledger as the content of a file, for another machine."""
        with self._lock:
            return self._db.serialize()

    # Batches

    def begin(self, lineage: str, batch: int) -> set[str]:
        """Begin or repeat a batch; returns the sinks that have already acknowledged it.

        All batches before it are committed, so their acknowledgements are deleted (invariant 4).
        """
        with self._writing() as db:
            db.execute("DELETE FROM acks WHERE lineage = ? AND batch < ?", (lineage, batch))
            found = db.execute("SELECT sink FROM acks WHERE lineage = ? AND batch = ?", (lineage, batch))
            return {sink for (sink,) in found}

    def missing(self, lineage: str, batch: int) -> set[str]:
        """The sinks that have missed a batch, according to an earlier attempt to commit it."""
        query = "SELECT sink FROM gaps WHERE lineage = ? AND batch = ?"
        with self._lock:
            known = {sink for (sink,) in self._db.execute(query, (lineage, batch))}
            query = "SELECT sink FROM lost WHERE lineage = ? AND last >= ?"
            return known | {sink for (sink,) in self._db.execute(query, (lineage, batch))}

    def has_acked(self, delivery: DeliveryId) -> bool:
        """Whether a sink has acknowledged the current batch."""
        query = "SELECT 1 FROM acks WHERE lineage = ? AND batch = ? AND sink = ?"
        with self._lock:
            key = (delivery.lineage, delivery.batch, delivery.sink)
            return self._db.execute(query, key).fetchone() is not None

    def settled(self, lineage: str, batch: int) -> None:
        """Record that the notes of a batch are stored."""
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO acks VALUES (?, ?, ?)", (lineage, batch, NOTES))

    def acked(self, delivery: DeliveryId, span: Span) -> str | None:
        """Record that a sink acknowledged a batch, live or from its backlog; returns the file to remove."""
        key = (delivery.sink, delivery.lineage, delivery.batch)
        with self._writing() as db:
            db.execute(
                "INSERT OR IGNORE INTO acks VALUES (?, ?, ?)",
                (delivery.lineage, delivery.batch, delivery.sink),
            )
            gap = db.execute(
                "DELETE FROM gaps WHERE sink = ? AND lineage = ? AND batch = ? RETURNING file", key
            ).fetchone()
            self._update(db, delivery.sink, batch=delivery.batch, last_ack_at=time.time(), **_moved(span))
            self._turn(db, delivery.sink, "failing", "in_sync")
            self.missed_changes += gap is not None
            return gap[0] if gap else None

    # Missed batches

    def missed(
        self,
        delivery: DeliveryId,
        span: Span,
        kept: Kept,
        origin: str,
        *,
        file: str | None = None,
        size: int = 0,
        events: int | None = None,
        why: str = "",
    ) -> bool:
        """Record that a batch is committed without a sink; false if the sink has acknowledged it since."""
        with self._writing(sync=True) as db:
            if self.has_acked(delivery):
                return False
            self.missed_changes += 1
            if kept == "lost":
                self._lose(db, delivery, span, events, why)
                return True
            db.execute(
                "INSERT OR IGNORE INTO gaps (sink, lineage, batch, first, next, events, kept, origin, file,"
                " bytes, since) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(delivery.sink, delivery.lineage, delivery.batch, span.first, span.next),
                    *(events, kept, origin, file, size, time.time()),
                ),
            )
            self._update(db, delivery.sink, state="behind")
            return True

    def lose(self, gap: Gap, why: str, *, up_to: int | None = None) -> None:
        """Record that a missed batch, or its events below an offset, is lost (invariant 5)."""
        with self._writing(sync=True) as db:
            self.missed_changes += 1
            if up_to is not None:
                lost = Span(gap.span.first, up_to)
                db.execute("UPDATE gaps SET first = ? WHERE number = ?", (up_to, gap.number))
                self._lose(db, gap.delivery, lost, None, why)
                return
            row = db.execute("DELETE FROM gaps WHERE number = ? RETURNING events", (gap.number,)).fetchone()
            if row:
                self._lose(db, gap.delivery, gap.span, row[0], why)

    def next_gap(self, sink: str, pipeline: str) -> Gap | None:
        """The oldest missed batch of a sink that can still be delivered."""
        query = "SELECT number, lineage, batch, first, next, kept, origin, file FROM gaps WHERE sink = ?"
        with self._lock:
            row = self._db.execute(f"{query} ORDER BY number LIMIT 1", (sink,)).fetchone()
        if row is None:
            return None
        number, lineage, batch, first, end, kept, origin, file = row
        return Gap(number, DeliveryId(pipeline, sink, lineage, batch), Span(first, end), kept, origin, file)

    def kept(self, sink: str) -> tuple[set[str], int]:
        """The backlog files of a sink, and their total size in bytes."""
        query = "SELECT file, bytes FROM gaps WHERE sink = ? AND file IS NOT NULL"
        with self._lock:
            found = self._db.execute(query, (sink,)).fetchall()
        return {file for file, _ in found}, sum(size for _, size in found)

    def retain(self, sinks: Collection[str]) -> None:
        """Forget sinks that are no longer part of the flow."""
        with self._writing() as db:
            for table in ("sinks", "gaps", "lost"):
                known = {sink for (sink,) in db.execute(f"SELECT DISTINCT sink FROM {table}")}
                for gone in known - set(sinks):
                    count = db.execute(f"DELETE FROM {table} WHERE sink = ?", (gone,)).rowcount
                    if table == "gaps":  # invariant 5
                        log.warning("sink removed with batches it had missed", sink=gone, batches=count)

    # States of sinks

    def failed(self, sink: str, message: str) -> None:
        """Record that a sink has failed on a batch."""
        with self._writing() as db:
            self._update(db, sink, last_error=message)
            db.execute("UPDATE sinks SET failures = failures + 1 WHERE sink = ?", (sink,))
            self._turn(db, sink, "in_sync", "failing")

    def stands(self, sink: str, state: State) -> None:
        """Set the state of a sink."""
        with self._writing() as db:
            self._update(db, sink, state=state)

    def states(self) -> dict[str, State]:
        """The states of all sinks that have received a batch."""
        with self._lock:
            if self._states is None or self._states[0] != self._db.total_changes:
                found = dict(self._db.execute("SELECT sink, state FROM sinks"))
                self._states = self._db.total_changes, found
            return self._states[1]

    def standing(self, sink: str) -> Standing:
        """The state and the backlog of a sink."""
        with self._lock:
            return standing_of(self._db, sink)

    @contextmanager
    def _writing(self, *, sync: bool = False) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if sync != self._synced:
                self._db.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
                self._synced = sync
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._require_newest()
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _require_newest(self) -> None:
        (newest,) = self._db.execute("PRAGMA user_version").fetchone()
        if newest > self._epoch:
            raise Suspended(f"another worker has this flow, under epoch {newest} and not {self._epoch}")

    def _update(self, db: sqlite3.Connection, sink: str, **values: Any) -> None:
        db.execute("INSERT OR IGNORE INTO sinks (sink) VALUES (?)", (sink,))
        changes = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"UPDATE sinks SET {changes} WHERE sink = ?", (*values.values(), sink))

    def _turn(self, db: sqlite3.Connection, sink: str, before: State, after: State) -> None:
        db.execute("UPDATE sinks SET state = ? WHERE sink = ? AND state = ?", (after, sink, before))

    def _lose(
        self, db: sqlite3.Connection, delivery: DeliveryId, span: Span, events: int | None, why: str
    ) -> None:
        """Count lost events; a loss right after the last one is merged with it."""
        if events is None and span.first is not None and span.next is not None:
            events = span.next - span.first
        last = db.execute(
            "SELECT number, last, next FROM lost WHERE sink = ? AND lineage = ? AND why = ?"
            " ORDER BY number DESC LIMIT 1",
            (delivery.sink, delivery.lineage, why),
        ).fetchone()
        if last and last[2] == span.first and delivery.batch - last[1] in (0, 1):
            db.execute(
                "UPDATE lost SET last = ?, next = ?, batches = batches + ?, events = events + ?"
                " WHERE number = ?",
                (delivery.batch, span.next, delivery.batch - last[1], events, last[0]),
            )
            return
        db.execute(
            "INSERT INTO lost (sink, lineage, first, next, last, batches, events, since, why)"
            " VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?)",
            (
                *(delivery.sink, delivery.lineage, span.first, span.next, delivery.batch),
                *(events, time.time(), why),
            ),
        )


def _opened(path: Path, shared: bool) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        # A WAL uses an index in shared memory, which processes on other machines would not see.
        db.execute(f"PRAGMA journal_mode = {'DELETE' if shared else 'WAL'}")
        db.executescript(TABLES)
    except BaseException:
        db.close()
        raise
    return db


def _moved(span: Span) -> dict[str, int]:
    return {} if span.next is None else {"cursor": span.next}
