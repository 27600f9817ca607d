"""The interface of a database connection that the sink, the source and the connection test use."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.sql.client import Place, TableName
from penstock.connectors.sql.problems import Flaw
from penstock.connectors.sql.types import HOLDS, Column, Kind
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa

SAVEPOINT = "penstock"

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Target:
    """A table to write batches to, with the columns that events provide, by name."""

    table: TableName
    columns: Mapping[str, Column]
    """The name of a column of the events → the column of the table."""
    key: tuple[str, ...] = ()
    """The columns of the table that identify a row."""
    only_key: bool = True
    """Whether no other unique index can conflict."""


class Database(ABC):
    """A database connection. Used by one thread, except for `cancel`. Its client raises `errors`."""

    quote: ClassVar[str] = '"'
    key_type: ClassVar[str | None] = None
    """The type of a text column in a key, if it differs from other text columns."""
    booleans: ClassVar[bool] = True
    """Whether the database has booleans; else they are integers."""
    text_type: ClassVar[str] = "TEXT"
    """The type to which any value can be cast to get its text."""

    errors: tuple[type[Exception], ...]

    def __init__(self, place: Place, timeout_s: float) -> None:
        self.place, self.timeout_s = place, timeout_s

    # A connection

    @abstractmethod
    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""

    @abstractmethod
    def cancel(self) -> None:
        """Interrupt the running statement of the connection, from another thread."""

    @abstractmethod
    def run(self, statement: str) -> int:
        """Run a statement; returns the number of rows that it has changed."""

    @abstractmethod
    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    @abstractmethod
    def explained(self, error: Exception) -> PenstockError:
        """The error for a client exception: `Invalid` if a retry can't help. Paths are as in a sink."""

    @abstractmethod
    def flaw(self, error: Exception) -> Flaw | None:
        """Why a row was rejected; None if the error is not about rows."""

    # Tables

    @abstractmethod
    def tables(self) -> list[str]:
        """The tables and views to suggest to a user."""

    @abstractmethod
    def columns(self, table: TableName) -> list[Column]:
        """The columns of a table; none if there is no such table."""

    @abstractmethod
    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        """The columns of each unique index that can identify a row."""

    @abstractmethod
    def type_for(self, kind: pa.DataType) -> str:
        """The type of a new column for events of an Arrow type."""

    def create(self, table: TableName, columns: Mapping[str, str], key: Sequence[str]) -> None:
        """Create a table."""
        parts = [f"{self.name(each)} {kind}" for each, kind in columns.items()]
        if key:
            parts.append(f"PRIMARY KEY ({self.names(key)})")
        self.run(f"CREATE TABLE {self.table(table)} ({', '.join(parts)}){self.table_options()}")

    def add_column(self, table: TableName, name: str, kind: str) -> None:
        """Add a column to a table."""
        self.run(f"ALTER TABLE {self.table(table)} ADD COLUMN {self.name(name)} {kind}")

    def table_options(self) -> str:
        """Table options that follow the columns in CREATE TABLE."""
        return ""

    def holds(self, event: pa.DataType, column: Column) -> bool:
        """Whether a column can hold values of an event's column."""
        from penstock.connectors.sql.types import kind_of

        kind = kind_of(event)
        return column.kind == "any" or column.kind in self.holding(kind, event)

    def holding(self, kind: Kind, event: pa.DataType) -> frozenset[Kind]:
        """The kinds of column that can hold values of an event's column."""
        more: frozenset[Kind] = (
            frozenset({"integer"}) if kind == "boolean" and not self.booleans else frozenset()
        )
        return HOLDS.get(kind, frozenset()) | more

    # Reading

    @abstractmethod
    def describe(self, query: str) -> list[Column]:
        """The columns of a query."""

    @abstractmethod
    def spark_type(self, column: Column) -> str:
        """The Spark type for the values of a column."""

    @abstractmethod
    def read(self, query: str, schema: pa.Schema) -> pa.Table:
        """The rows of a query; a value that doesn't match `schema` raises `Unfit`."""

    def selected(self, column: Column) -> str:
        """The SQL expression with which a column is read."""
        return self.name(column.name)

    def as_text(self, column: Column) -> str:
        """The SQL expression of a column as text, which `literal` converts back."""
        name = self.name(column.name)
        return f"HEX({name})" if column.kind == "binary" else f"CAST({name} AS {self.text_type})"

    def literal(self, column: Column, text: str) -> str:
        """The SQL literal for a value of a column, from its text."""
        if column.kind in ("integer", "decimal", "double", "float") and NUMBER.fullmatch(text):
            return text
        return f"x'{text}'" if column.kind == "binary" else self.text(text)

    # A transaction

    def prepare(self, target: Target, schema: pa.Schema) -> None:  # noqa: B027 (most need nothing)
        """Prepare the connection for batches of this schema that are written to a target."""

    def begin(self) -> None:
        """Begin a transaction."""
        self.run("BEGIN")

    def commit(self) -> None:
        """Commit the transaction."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Roll the transaction back."""
        self.run("ROLLBACK")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A savepoint: this part of the transaction is rolled back if a row is rejected."""
        self.run(f"SAVEPOINT {SAVEPOINT}")
        try:
            yield
        except self.errors as error:
            if self.flaw(error) is not None:
                self.run(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
                self.run(f"RELEASE SAVEPOINT {SAVEPOINT}")
            raise
        self.run(f"RELEASE SAVEPOINT {SAVEPOINT}")

    @abstractmethod
    def insert(self, target: Target, data: pa.Table) -> None:
        """Insert events; `data` has columns of the table, matched by name."""

    @abstractmethod
    def upsert(self, target: Target, data: pa.Table) -> None:
        """Insert events, or replace the rows with the same key; `data` has no key twice."""

    @abstractmethod
    def delete(self, target: Target, keys: pa.Table) -> None:
        """Delete the rows with these keys."""

    # Names and texts in SQL

    def name(self, name: str) -> str:
        """A quoted name."""
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    def names(self, names: Sequence[str]) -> str:
        """Quoted names, separated by commas."""
        return ", ".join(map(self.name, names))

    def table(self, table: TableName) -> str:
        """The quoted name of a table."""
        return ".".join(self.name(part) for part in (table.schema, table.name) if part)

    @staticmethod
    def text(value: str) -> str:
        """A text as a SQL literal. All connections are configured to treat a backslash as plain text."""
        return "'" + value.replace("'", "''") + "'"


def connect(place: Place, timeout_s: float, *, create: bool = False) -> Database:
    """A new connection; raises `Invalid` or `Unavailable`. `create`: create a missing SQLite file."""
    if place.engine == "postgresql":
        from penstock.connectors.sql.postgres import Postgres

        return Postgres(place, timeout_s)
    if place.engine == "mysql":
        from penstock.connectors.sql.mysql import MySQL

        return MySQL(place, timeout_s)
    from penstock.connectors.sql.sqlite import SQLite

    return SQLite(place, timeout_s, create=create)
