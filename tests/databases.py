"""Empty databases for tests, each read back by a client of its own and not by the connector's."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg

from tests.mariadb_server import PASSWORD, MariaDB

NAMES = ("postgres", "mariadb", "sqlite")


class Base(Protocol):
    """An empty database."""

    kind: str
    url: str
    password: str | None

    def run(self, *statements: str) -> None: ...

    def rows(self, query: str) -> list[tuple[Any, ...]]: ...

    def stop(self) -> None: ...

    def start(self) -> None: ...

    def spec(self, **fields: Any) -> dict[str, Any]: ...


class _Spec:
    url: str
    password: str | None = None

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {"type": "sql", "url": self.url, "connect_timeout_ms": 1000}
        if self.password is not None:
            given["password"] = self.password
        return {**given, **fields}


class PostgresBase(_Spec):
    kind = "postgres"

    def __init__(self, url: str) -> None:
        self.url = re.sub(r"^postgresql\+psycopg:", "postgresql:", url)
        self.server = self.url.rpartition("/")[0] + "/postgres"
        self.name = self.url.rpartition("/")[2]

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, options="-c TimeZone=UTC") as connection:
            return list(connection.execute(query).fetchall())

    def stop(self) -> None:
        self._admin(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS false")
        self._admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.name}'")

    def start(self) -> None:
        self._admin(f"ALTER DATABASE {self.name} ALLOW_CONNECTIONS true")

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(statement)


class MariaBase(_Spec):
    kind = "mariadb"

    def __init__(self, server: MariaDB, name: str) -> None:
        self.server, self.name = server, name
        self.url = f"mysql://penstock@{server.address}/{name}"
        self.password = PASSWORD

    def run(self, *statements: str) -> None:
        self.server.run(*statements, database=self.name)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.server.run(query, database=self.name)

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()


class SqliteBase(_Spec):
    kind = "sqlite"

    def __init__(self, file: Path) -> None:
        self.file = file
        self.url = f"sqlite:///{file}"
        self._lock: sqlite3.Connection | None = None

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.file)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file)) as connection:
            return list(connection.execute(query).fetchall())

    def stop(self) -> None:
        self._lock = sqlite3.connect(self.file, isolation_level=None)
        self._lock.execute("BEGIN EXCLUSIVE")

    def start(self) -> None:
        assert self._lock is not None
        self._lock.close()


@contextmanager
def database(kind: str, request: Any) -> Iterator[Base]:
    """An empty database of a kind; servers are the fixtures of the session."""
    if kind == "postgres":
        yield PostgresBase(request.getfixturevalue("postgres_database"))
    elif kind == "mariadb":
        name = request.getfixturevalue("mariadb_database")
        yield MariaBase(request.getfixturevalue("mariadb_server"), name)
    else:
        yield SqliteBase(request.getfixturevalue("tmp_path") / "test.db")


def columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """The columns of rows."""
    return [list(column) for column in zip(*rows, strict=True)]
