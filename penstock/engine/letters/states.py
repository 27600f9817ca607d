"""Edits and states of dead letters.

The stream of letters is immutable, so edits and states are stored separately: in a SQLite file in the
directory of the flow, written by the server (edits) and by a worker (replays). A replay is on disk before
anything is delivered, so that an interrupted replay resumes under the same name, and an idempotent sink
stores no event twice (invariant 4).
"""

from __future__ import annotations

import fcntl
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from penstock.errors import Conflict, Problem

State = Literal["new", "replaying", "replayed", "discarded"]
STATES: frozenset[State] = frozenset(get_args(State))

Outcome = Literal["delivered", "failed_again", "sent"]
"""`sent`: the original event was appended to the input of the flow again."""

FILE, LOCK = "letters.sqlite", "letters.lock"

BUSY_S = 10.0
"""Seconds that a writer waits for another writer."""

TABLES = """
CREATE TABLE IF NOT EXISTS letters (stream TEXT NOT NULL, number INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'new', before TEXT, edit TEXT, edited_at REAL, request TEXT, slice INTEGER,
    PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS claimed ON letters (request, slice) WHERE request IS NOT NULL;
CREATE TABLE IF NOT EXISTS replays (stream TEXT NOT NULL, number INTEGER NOT NULL, request TEXT NOT NULL,
    at REAL NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (stream, number, request)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS slices (request TEXT NOT NULL, slice INTEGER NOT NULL, stream TEXT NOT NULL,
    target TEXT NOT NULL, PRIMARY KEY (request, slice)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS acks (request TEXT NOT NULL, slice INTEGER NOT NULL, sink TEXT NOT NULL,
    PRIMARY KEY (request, slice, sink)) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Replay:
    """A finished replay of a letter."""

    request: str
    at: float
    outcome: Outcome


@dataclass(frozen=True)
class Mark:
    """The state of a letter."""

    state: State = "new"
    edit: str | None = None
    """The edited event, as JSON."""
    edited_at: float | None = None
    replays: tuple[Replay, ...] = ()


@dataclass(frozen=True)
class Slice:
    """Letters that are replayed together, under a name that never changes."""

    request: str
    number: int
    target: str
    """The name of the entry at which the letters enter the flow."""
    offsets: tuple[int, ...]


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Hold the lock for replaying letters of a flow; raises `Conflict` if another process has it."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = "letters of this flow are being replayed"
            hint = "wait until that replay has finished"
            raise Conflict(Problem(code="replay_under_way", message=message, hint=hint)) from None
        yield


class Marks:
    """The marks on the letters of one stream."""

    def __init__(self, db: sqlite3.Connection, stream: str) -> None:
        self._db, self._stream = db, stream

    @classmethod
    @contextmanager
    def open(cls, directory: Path, stream: str, *, write: bool = True) -> Iterator[Marks]:
        """The marks in the directory of a flow. Without `write`, the file is not created."""
        path = directory / FILE
        if write:
            directory.mkdir(parents=True, exist_ok=True)
        where = str(path) if write or path.exists() else ":memory:"
        with closing(
            sqlite3.connect(where, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        ) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.executescript(TABLES)
            yield cls(db, stream)

    def between(self, first: int, end: int) -> dict[int, Mark]:
        """The letters of a range that have a mark."""
        bounds = (self._stream, first, end)
        replays: dict[int, list[Replay]] = {}
        query = "SELECT number, request, at, outcome FROM replays WHERE stream = ? AND number >= ?"
        for number, *told in self._db.execute(f"{query} AND number < ? ORDER BY at", bounds):
            replays.setdefault(number, []).append(Replay(*told))
        query = "SELECT number, state, edit, edited_at FROM letters WHERE stream = ? AND number >= ?"
        return {
            number: Mark(state, edit, at, tuple(replays.get(number, ())))
            for number, state, edit, at in self._db.execute(f"{query} AND number < ?", bounds)
        }

    def states(self) -> dict[State, int]:
        """The number of letters in each state except `new`."""
        query = "SELECT state, COUNT(*) FROM letters WHERE stream = ? AND state <> 'new' GROUP BY state"
        return dict(self._db.execute(query, (self._stream,)).fetchall())

    # People

    def edit(self, offset: int, event: str | None) -> None:
        """Replace the event of a letter; None restores the original event."""
        at = None if event is None else time.time()
        with self._changing(offset, allowed=("new",)) as key:
            self._db.execute(
                "UPDATE letters SET edit = ?, edited_at = ? WHERE stream = ? AND number = ?",
                (event, at, *key),
            )

    def discard(self, offset: int, *, cut_off: bool = False) -> None:
        """Mark a letter as discarded; with `cut_off`, also if its replay was interrupted."""
        begun: tuple[State, ...] = ("replaying",) if cut_off else ()
        with self._changing(offset, allowed=("new", "discarded", *begun)) as key:
            self._set(key, "discarded")

    def restore(self, offset: int) -> None:
        """Restore a discarded letter."""
        with self._changing(offset, allowed=("new", "discarded")) as key:
            self._set(key, "new")

    def sent(self, offset: int, request: str) -> None:
        """Record that the original event of a letter was sent to the input again."""
        with self._changing(offset, allowed=("new",)) as key:
            self._db.execute("INSERT INTO replays VALUES (?, ?, ?, ?, 'sent')", (*key, request, time.time()))
            self._set(key, "replayed")

    # Replays

    def unfinished(self) -> list[Slice]:
        """Slices whose replay was interrupted. The caller must hold `alone`."""
        query = "SELECT request, slice, target FROM slices WHERE stream = ? ORDER BY request, slice"
        return [
            Slice(request, number, target, self._offsets(request, number))
            for request, number, target in self._db.execute(query, (self._stream,)).fetchall()
        ]

    def claim(self, part: Slice) -> None:
        """Begin the replay of a slice."""
        rows = [(self._stream, offset, part.request, part.number) for offset in part.offsets]
        with self._transaction():
            self._db.execute(
                "INSERT INTO slices VALUES (?, ?, ?, ?)",
                (part.request, part.number, self._stream, part.target),
            )
            self._db.executemany(
                "INSERT INTO letters (stream, number, state, before, request, slice)"
                " VALUES (?, ?, 'replaying', 'new', ?, ?) ON CONFLICT (stream, number) DO UPDATE SET"
                " before = state, state = 'replaying', request = excluded.request, slice = excluded.slice",
                rows,
            )

    def release(self, part: Slice, offsets: Sequence[int]) -> None:
        """Reset letters of a slice to their state before the replay."""
        with self._transaction():
            self._db.executemany(
                "UPDATE letters SET state = before, before = NULL, request = NULL, slice = NULL"
                " WHERE stream = ? AND number = ? AND state = 'replaying'",
                [(self._stream, offset) for offset in offsets],
            )
            if not self._offsets(part.request, part.number):
                self._forget(part)

    def acked(self, part: Slice) -> set[str]:
        """The sinks that have acknowledged a slice."""
        query = "SELECT sink FROM acks WHERE request = ? AND slice = ?"
        return {sink for (sink,) in self._db.execute(query, (part.request, part.number))}

    def ack(self, part: Slice, sink: str) -> None:
        """Record that a sink has acknowledged a slice."""
        key = (part.request, part.number, sink)
        self._db.execute("INSERT OR IGNORE INTO acks VALUES (?, ?, ?)", key)

    def finish(self, part: Slice, outcomes: Mapping[int, Outcome]) -> None:
        """Record that a slice is replayed."""
        now = time.time()
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO replays VALUES (?, ?, ?, ?, ?)",
                [(self._stream, offset, part.request, now, outcome) for offset, outcome in outcomes.items()],
            )
            self._db.execute(
                "UPDATE letters SET state = 'replayed', before = NULL, request = NULL, slice = NULL"
                " WHERE request = ? AND slice = ? AND state = 'replaying'",
                (part.request, part.number),
            )
            self._forget(part)

    def forget_before(self, first: int) -> None:
        """Delete the marks of letters below an offset, which retention has removed."""
        with self._transaction():
            for table in ("letters", "replays"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE stream = ? AND number < ?", (self._stream, first)
                )
            for part in self.unfinished():
                if not part.offsets:
                    self._forget(part)

    def _offsets(self, request: str, number: int) -> tuple[int, ...]:
        query = "SELECT number FROM letters WHERE request = ? AND slice = ? AND state = 'replaying'"
        return tuple(n for (n,) in self._db.execute(f"{query} ORDER BY number", (request, number)))

    def _forget(self, part: Slice) -> None:
        for table in ("slices", "acks"):
            self._db.execute(
                f"DELETE FROM {table} WHERE request = ? AND slice = ?", (part.request, part.number)
            )

    def _set(self, key: tuple[str, int], state: State) -> None:
        self._db.execute(
            "UPDATE letters SET state = ?, before = NULL, request = NULL, slice = NULL"
            " WHERE stream = ? AND number = ?",
            (state, *key),
        )

    @contextmanager
    def _changing(self, offset: int, allowed: Sequence[State]) -> Iterator[tuple[str, int]]:
        """A change of one letter, if its state allows it."""
        key = (self._stream, offset)
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO letters (stream, number) VALUES (?, ?)", key)
            query = "SELECT state FROM letters WHERE stream = ? AND number = ?"
            (state,) = self._db.execute(query, key).fetchone()
            if state not in allowed:
                raise Conflict(_not_now(offset, state))
            yield key

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


def _not_now(offset: int, state: State) -> Problem:
    hints = {
        "replaying": "replay it again to continue, or discard it",
        "replayed": "an event that failed again is a new letter",
        "discarded": f"restore it first: `penstock dead-letters discard NAME {offset} --undo`",
    }
    return Problem(
        code=f"letter_{state}", message=f"the letter at offset {offset} is {state}", hint=hints.get(state)
    )
