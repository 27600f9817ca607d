"""Snapshots of tables, in chunks by primary key, each at a known place in the log.

A chunk is read in its own transaction, which sees the table as of a place in the log. The receiver emits the
changes up to that place, then the rows of the chunk, then the changes after it. Rows and changes of a key are
thus in the order of the database: a consumer that applies them by key has, after the last chunk, exactly the
rows of the table. The key of the last row is stored with the rows, so a snapshot resumes after a crash.

MariaDB reports the place of a transaction `WITH CONSISTENT SNAPSHOT`. MySQL doesn't, so there the table is
locked for reading while the transaction starts, so that no other transaction is changing the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.mysql_cdc.catalog import Catalog, SqlColumn, SqlTable, quoted, quoted_table
from penstock.connectors.mysql_cdc.kinds import CHOICE
from penstock.connectors.mysql_cdc.position import Place, Progress
from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    from penstock.connectors.mysql_cdc.server import MySqlServer

LOCK_S = 10
"""Seconds to wait for a lock on a table; writers are blocked meanwhile."""


@dataclass(frozen=True)
class Chunk:
    """Rows of a table in the order of the key, as of a place in the log."""

    table: SqlTable
    rows: list[tuple[Any, ...]]
    place: Place
    time_us: int
    after: tuple[str, ...]
    """The key of the last row."""
    last: bool
    """Whether the table has no more rows."""

    def then(self, progress: Progress) -> Progress:
        """The progress after this chunk."""
        if self.last:
            done = progress.done | {self.table.name}
            return replace(progress, done=done, table=None, after=())
        return replace(progress, table=self.table.name, after=self.after)


class Snapshot:
    """Reads chunks over its own connection. `locks`: lock tables as on MySQL, also on MariaDB."""

    def __init__(self, server: MySqlServer, rows: int, *, locks: bool = False) -> None:
        self._server, self._limit = server, rows
        self._catalog = Catalog(server.connect())
        self._locks = locks or not self._catalog.mariadb
        self._catalog.rows("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def close(self) -> None:
        """Disconnect."""
        if self._catalog.connection.open:
            self._catalog.connection.close()

    def read(self, name: str, after: Sequence[str]) -> Chunk:
        """The rows of a table after a key. Raises `Invalid` if the table can't be read in chunks."""
        table = self._catalog.table(name)
        if table is None:
            raise Invalid(_unreadable(name, "no longer exists", "exclude the table"))
        check(table)
        with self._transaction(name) as (file, pos):
            (now,) = self._catalog.rows("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
            found = self._catalog.rows(self._select(table, after))
        width = len(table.columns)
        kinds = [column.kind for column in table.columns]
        rows = [
            tuple(None if v is None else k.parse(v) for k, v in zip(kinds, row, strict=False))
            for row in found
        ]
        key = tuple(_text(value) for value in found[-1][width:]) if found else ()
        place = Place(file, pos)
        return Chunk(table, rows, place, int(now[0]), key, len(rows) < self._limit)

    @contextmanager
    def _transaction(self, table: str) -> Iterator[tuple[str, int]]:
        """A transaction that sees the tables as of a place in the log; yields that place."""
        rows = self._catalog.rows
        try:
            if self._locks:
                lock = Catalog(self._server.connect())
                try:
                    lock.rows(f"SET SESSION lock_wait_timeout = {LOCK_S}")
                    lock.rows(f"LOCK TABLES {quoted_table(table)} READ")
                    rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                    place = lock.status()
                finally:
                    lock.connection.close()  # which releases the lock
            else:
                rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                status = {str(n).lower(): v for n, v in rows("SHOW STATUS LIKE 'binlog_snapshot_%'")}
                place = str(status["binlog_snapshot_file"]), int(status["binlog_snapshot_position"])
            yield place
        finally:
            rows("ROLLBACK")

    def _select(self, table: SqlTable, after: Sequence[str]) -> str:
        columns = [column.kind.select.format(quoted(column.name)) for column in table.columns]
        key = _key(table)
        marks = [column.kind.order.format(quoted(column.name)) for column in key]
        where = f"WHERE {self._behind(key, after)} " if after else ""
        order = ", ".join(quoted(column.name) for column in key)
        return (
            f"SELECT {', '.join([*columns, *marks])} FROM {quoted_table(table.name)} {where}"
            f"ORDER BY {order} LIMIT {self._limit}"
        )

    def _behind(self, key: Sequence[SqlColumn], after: Sequence[str]) -> str:
        """The condition for rows after a key."""
        column, value = key[0], self._literal(key[0], after[0])
        # An ENUM is compared with a number by its number, which is also its order.
        name = quoted(column.name) + ("+0" if column.kind is CHOICE else "")
        if len(key) == 1:
            return f"{name} > {value}"
        return f"({name} > {value} OR ({name} = {value} AND {self._behind(key[1:], after[1:])}))"

    def _literal(self, column: SqlColumn, text: str) -> str:
        if column.kind.literal == "number":
            return repr(float(text)) if "e" in text.lower() else text
        if column.kind.literal == "hex":
            return f"x'{text}'"
        return str(self._catalog.connection.escape(text))


def check(table: SqlTable) -> None:
    """Raises `Invalid` if a table can't be read in chunks that are consistent with the log."""
    if not table.key:
        raise Invalid(_unreadable(table.name, "has no primary key", "add one, or set snapshot: never"))
    if table.engine.lower() != "innodb":
        raise Invalid(
            _unreadable(
                table.name, f"is a table of {table.engine}", "convert it to InnoDB, or set snapshot: never"
            )
        )


def _key(table: SqlTable) -> list[SqlColumn]:
    by_name = {column.name: column for column in table.columns}
    return [by_name[name] for name in table.key]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _unreadable(table: str, why: str, hint: str) -> Problem:
    return Problem(
        code="no_snapshot",
        message=f"'{table}' can't be read by a snapshot: it {why}",
        path="snapshot",
        hint=hint,
    )
