"""The open database of a `storage: sqlite` log in one process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import structlog

from penstock.streams.files import Files
from penstock.streams.repair.salvage import salvage, take_over
from penstock.streams.sqlite.rows import FILE, PAGE, connect, create, is_damage
from penstock.streams.storage import Full, WriteFailed

log = structlog.get_logger()


class Database:
    """The two connections of a process, for writing and for reading, each used by one thread at a time."""

    def __init__(
        self,
        directory: Path,
        files: Files,
        floor: Callable[[], int],
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self.path, self._files, self._floor = directory / FILE, files, floor
        self._on_open = on_open
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._durable: bool | None = None
        self._journal = 0
        self._sick = self._damaged = self.resting = False
        self._open_locks()
        if not self._writable:
            self._reader = connect(self.path, read_only=True)
            return
        try:
            with self._alone():
                self._open()
        except BaseException:
            self._close_locks()
            raise

    def _open_locks(self) -> None:
        directory = self.path.parent
        try:
            self._lock_fd, self._writable = self._files.open_shared(directory / "lock", 0)
            self._users_fd, _ = self._files.open_shared(directory / "users", 0)
        except OSError:  # a read-only directory without lock files
            self._lock_fd, self._users_fd, self._writable = -1, -1, False

    def rest(self) -> bool:
        """Close the connections until their next use; false if a thread is using them."""
        if self._sick or self._damaged or not self._writable or not self._writing.acquire(blocking=False):
            return False
        try:
            if not self._reading.acquire(blocking=False):
                return False
            try:
                self._reader.close()
                self._writer.close()
                self._close_locks()
                self.resting = True
            finally:
                self._reading.release()
        finally:
            self._writing.release()
        return True

    def _wake(self) -> None:
        """Open the connections again after `rest`. The caller holds `_writing`."""
        with self._reading:
            if not self.resting:
                return
            self._open_locks()
            if not self._writable:
                raise WriteFailed("the directory of the stream is read-only")
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                self._open()
            finally:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)
            self.resting = False
        self._on_open()

    def _open(self) -> None:
        """Open the database; a damaged database is set aside and rewritten, so that the log is usable."""
        directory = self.path.parent
        take_over(directory, self._files)  # finishes an interrupted salvage
        is_new = not self.path.exists()
        try:
            self._writer = create(self.path, self._floor())
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            if not self._salvage():
                raise WriteFailed("the database is damaged and in use by another process") from error
            self._writer = create(self.path)
        if is_new:
            self._files.sync_directory(directory)
        self._reader = connect(self.path, read_only=True)
        self._durable, self._journal = None, 0
        fcntl.flock(self._users_fd, fcntl.LOCK_SH)  # prevents other processes from replacing the file

    def rewrite(self) -> bool:
        """Rewrite a damaged database; false if another process has it open."""
        if not self._writable:
            return False
        self._damaged = True  # until it is repaired and open again
        with self._alone(), self._reading, self._told():
            self._reader.close()
            self._writer.close()
            rewritten = self._salvage()
            self._open()
            self._damaged = not rewritten
            return rewritten

    def _salvage(self) -> bool:
        try:
            fcntl.flock(self._users_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.error(
                "a damaged database is in use by another process and can't be repaired", file=str(self.path)
            )
            return False
        salvage(self.path.parent, self._files, self._floor())
        return True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the writers' lock between processes, since SQLite's own lock sleeps too long while waiting."""
        if not self._writable:
            raise WriteFailed("the directory of the stream is read-only")
        with self._writing:
            if self.resting:
                self._wake()
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def transaction(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        """A transaction; with `durable`, it is on disk when the block ends.

        Raises `Full` or `WriteFailed` for disk errors of SQLite.
        """
        if self._damaged:
            self.rewrite()
        with self._alone(), self._told():
            db = self._writer
            if self._sick:
                self._mistrust()
            if durable is not self._durable:
                db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                self._files.step("commit")
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise Full("disk_full") from error
            self._sick = self._sick or code == sqlite3.SQLITE_IOERR
            self._damaged = self._damaged or is_damage(error)
            raise WriteFailed(f"database error: {error}") from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Full("disk_full") from error
            raise WriteFailed(f"disk error: {error.strerror}") from error

    def _mistrust(self) -> None:
        """Checkpoint the journal after a failed write or sync, when its state on disk is unknown.

        A second sync of the journal would report success, so its content is written into the database itself.
        """
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._sick = False

    def read(self, query: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, from a consistent snapshot."""
        try:
            with self._awake():
                return self._reader.execute(query, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            if not (self._damaged or is_damage(error)) or not self.rewrite():
                raise
        with self._awake():
            return self._reader.execute(query, parameters).fetchall()

    @contextlib.contextmanager
    def _awake(self) -> Iterator[None]:
        """Hold the connection for reading, opened again if it was closed by `rest`."""
        while True:
            if self.resting:
                with self._writing:
                    self._wake()
            with self._reading:
                if not self.resting:
                    yield
                    return

    def sync(self) -> None:
        """Return when every transaction is on disk: it is in SQLite's journal, or in the database."""
        try:
            fd = os.open(f"{self.path}-wal", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            self._files.sync(fd)
        except OSError as error:
            self._sick = True
            log.error("a sync of a stream failed", file=str(self.path), error=str(error))
        finally:
            os.close(fd)

    def shrink(self, pages: int) -> None:
        """Free disk space: up to `pages` free pages, and the journal."""
        with self._alone(), self._told():
            # As a script, since a single statement stops after one page.
            self._writer.executescript(f"PRAGMA incremental_vacuum({pages})")
            self._mistrust()

    def keep_journal_below(self, size: int) -> None:
        """Set the size at which SQLite's journal is written into the database."""
        if size == self._journal or not self._writable:
            return
        with self._writing:
            self._wake()
            self._journal = size
            self._writer.execute(f"PRAGMA wal_autocheckpoint={max(1, size // PAGE)}").fetchall()
            self._writer.execute(f"PRAGMA journal_size_limit={size}").fetchall()

    def close(self) -> None:
        """Close the connections."""
        if self.resting:
            return
        with self._alone() if self._writable else contextlib.nullcontext():  # the last one writes the journal
            self._reader.close()
            if self._writable:
                self._writer.close()
        self._close_locks()

    def _close_locks(self) -> None:
        for fd in (self._users_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
