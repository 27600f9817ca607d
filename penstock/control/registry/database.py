"""Connections and transactions: the only module that distinguishes between SQLite and PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from penstock.errors import Invalid, Problem

# How long a writer waits for another writer before it fails with "database is locked".
BUSY_TIMEOUT_S = 30.0

# Keys of the advisory locks on PostgreSQL, held until the transaction ends.
MIGRATION_LOCK = 0x70656E01
DOCUMENTS_LOCK = 0x70656E02
EVENTS_LOCK = 0x70656E03
ACCESS_LOCK = 0x70656E04

_WRITES = "penstock_writes"


def connect(url: str) -> Engine:
    """An engine for a registry URL: `sqlite:///path/to/file.db` or `postgresql://…`."""
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _connect_sqlite(parsed)
    return create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        # A statement after an advisory lock must see the commits of the previous lock holder.
        isolation_level="READ COMMITTED",
        pool_size=10,
        max_overflow=20,
        pool_pre_ping=True,
        json_serializer=_dump_json,
    )


@contextmanager
def writing(engine: Engine, **options: Any) -> Iterator[Connection]:
    """A connection in a write transaction: committed at the end, rolled back by an exception."""
    with engine.connect() as conn:
        conn.execution_options(**{_WRITES: True}, **options)
        with conn.begin():
            yield conn


def lock(conn: Connection, key: int) -> None:
    """Wait until no other transaction holds `key`. On SQLite, write transactions are exclusive anyway."""
    if conn.dialect.name == "postgresql":
        conn.execute(select(func.pg_advisory_xact_lock(key)))


def is_shared(engine: Engine) -> bool:
    """Whether servers on several machines can share the registry; a file belongs to one server's home."""
    return engine.dialect.name == "postgresql"


def now(conn: Connection) -> float:
    """The time by the clock that all processes of this registry share, in seconds since 1970."""
    if conn.dialect.name == "postgresql":
        return float(conn.scalars(select(func.extract("epoch", func.clock_timestamp()))).one())
    return time.time()


def _parse(url: str) -> URL:
    # SQLAlchemy doesn't support `postgres://`, the form that hosting providers use.
    if url.startswith("postgres://"):
        url = "postgresql://" + url.removeprefix("postgres://")
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise _unsupported("the registry URL names no supported database")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise _unsupported("a registry can't be in memory: several processes share it")
    return parsed


def _unsupported(message: str) -> Invalid:
    hint = "use sqlite:///path/to/registry.db or postgresql://user@host/database"
    return Invalid(Problem(code="unsupported_database", message=message, hint=hint))


def _connect_sqlite(url: URL) -> Engine:
    Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S},
        pool_size=10,
        max_overflow=20,
        json_serializer=_dump_json,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    _enter_wal_mode(engine)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # Python's driver would otherwise begin transactions itself, and not around DDL.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # A save that was acknowledged survives power loss.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(conn: Connection) -> None:
    # A read transaction that starts writing fails at once with "database is locked" if another one has
    # written in the meantime; a transaction that begins as a writer waits its turn.
    writes = conn.get_execution_options().get(_WRITES, False)
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _enter_wal_mode(engine: Engine) -> None:
    # Two processes that create the same file may lock each other out without waiting for the busy timeout.
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        finally:
            connection.close()
        time.sleep(0.02)


def _dump_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
