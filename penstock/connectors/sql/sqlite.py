"""SQLite, through Python's `sqlite3` module."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.sql.client import Place, TableName, file_of
from penstock.connectors.sql.database import Database, Target
from penstock.connectors.sql.problems import BUSY, FAILED, FORBIDDEN, NO_UNIQUE_KEY, Flaw, Rule, error_of
from penstock.connectors.sql.rows import from_rows
from penstock.connectors.sql.types import Column, Kind, is_json, kind_of
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa

EXACT_DIGITS = 15
"""Digits of a decimal that SQLite preserves in a column with numeric affinity."""

CHUNK = 10_000
"""Number of rows that are converted to Python objects at a time."""

FLAWS = {
    "SQLITE_CONSTRAINT_NOTNULL": "null_value",
    "SQLITE_CONSTRAINT_CHECK": "check_failed",
    "SQLITE_CONSTRAINT_UNIQUE": "duplicate_key",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "duplicate_key",
    "SQLITE_CONSTRAINT_ROWID": "duplicate_key",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign_key",
    "SQLITE_CONSTRAINT_TRIGGER": "refused",
    "SQLITE_TOOBIG": "too_long",
}

MISSING = Rule(
    "unknown_database",
    "cannot open the file {address}: {0}",
    "create its directory, or correct the URL; the path is on the machine where the flow runs",
)
NO_DATABASE = Rule("unknown_database", "{address} is not an SQLite database: {0}", "correct the URL")

AFFINITIES: tuple[tuple[str, Kind], ...] = (
    (r"BOOL", "boolean"), (r"JSON", "json"), (r"DATETIME|TIMESTAMP", "timestamp"), (r"DATE", "date"),
    (r"INT", "integer"), (r"CHAR|CLOB|TEXT", "text"), (r"BLOB", "binary"), (r"REAL|FLOA|DOUB", "double"),
    (r"DEC|NUM", "decimal"),
)  # fmt: skip
"""Patterns of declared column types, in the order in which they are tried."""

TYPEOF: dict[str, Kind] = {"integer": "integer", "real": "double", "text": "text", "blob": "binary"}

SPARK: dict[Kind, str] = {
    "boolean": "BOOLEAN", "integer": "BIGINT", "double": "DOUBLE", "float": "DOUBLE", "binary": "BINARY",
    "date": "DATE", "timestamp": "TIMESTAMP",
}  # fmt: skip

AS_TEXT: frozenset[Kind] = frozenset({"decimal", "date", "timestamp", "timestamptz", "json"})
"""Kinds of values that SQLite has no type for."""


class SQLite(Database):
    """A connection to an SQLite file."""

    booleans: ClassVar = False

    def __init__(self, place: Place, timeout_s: float, *, create: bool = False) -> None:
        super().__init__(place, timeout_s)
        self.errors = (sqlite3.Error, OverflowError)
        try:
            if create:
                with contextlib.suppress(OSError):  # connecting reports the error
                    file_of(place).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                f"{file_of(place).absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
                timeout_s,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
            # ATTACH in a user's query would open any other file.
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self.run("PRAGMA foreign_keys = ON")
            self.rows("SELECT count(*) FROM sqlite_master")
        except sqlite3.Error as error:
            raise self.explained(error) from None

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def cancel(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.interrupt()

    def run(self, statement: str) -> int:
        return self._connection.execute(statement).rowcount

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")  # upgrading a read to a write could fail at once, without waiting

    def tables(self) -> list[str]:
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
        return sorted(name for (name,) in self.rows(query))

    def columns(self, table: TableName) -> list[Column]:
        found = self.rows(f"PRAGMA {self._schema(table)}table_xinfo({self.name(table.name)})")
        key = [row for row in found if row[5]]
        return [_column(row, alone=len(key) == 1) for row in found if row[6] != 1]

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        schema = self._schema(table)
        info = self.rows(f"PRAGMA {schema}table_info({self.name(table.name)})")
        keys = [tuple(sorted(row[1] for row in info if row[5]))]
        for row in self.rows(f"PRAGMA {schema}index_list({self.name(table.name)})"):
            if row[2] and not row[4]:  # unique, and not a partial index
                parts = self.rows(f"PRAGMA {schema}index_info({self.name(row[1])})")
                keys.append(tuple(sorted(str(part[2]) for part in parts)))
        return list(dict.fromkeys(key for key in keys if key))

    def type_for(self, kind: pa.DataType) -> str:
        names: dict[Kind, str] = {
            "boolean": "BOOLEAN", "integer": "INTEGER", "float": "REAL", "double": "REAL", "binary": "BLOB",
            "date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP", "json": "JSON",
        }  # fmt: skip
        return names.get(kind_of(kind), "TEXT")

    def holding(self, kind: Kind, event: pa.DataType) -> frozenset[Kind]:
        more: set[Kind] = set()
        if kind in AS_TEXT:
            more.add("text")
        if kind == "float":
            more.add("double")
        if kind == "decimal" and event.precision > EXACT_DIGITS:
            return frozenset({"text"})
        return super().holding(kind, event) | more

    def insert(self, target: Target, data: pa.Table) -> None:
        marks = ", ".join("?" * data.num_columns)
        columns = self.names(data.column_names)
        self._each(f"INSERT INTO {self.table(target.table)} ({columns}) VALUES ({marks})", data)

    def upsert(self, target: Target, data: pa.Table) -> None:
        marks = ", ".join("?" * data.num_columns)
        others = [name for name in data.column_names if name not in target.key]
        changes = ", ".join(f"{self.name(name)} = excluded.{self.name(name)}" for name in others)
        self._each(
            f"INSERT INTO {self.table(target.table)} ({self.names(data.column_names)}) VALUES ({marks}) "
            f"ON CONFLICT ({self.names(target.key)}) DO {f'UPDATE SET {changes}' if others else 'NOTHING'}",
            data,
        )

    def delete(self, target: Target, keys: pa.Table) -> None:
        same = " AND ".join(f"{self.name(name)} = ?" for name in keys.column_names)
        self._each(f"DELETE FROM {self.table(target.table)} WHERE {same}", keys)

    def describe(self, query: str) -> list[Column]:
        self.run(f"CREATE TEMP VIEW penstock_query AS {query}")
        try:
            found = self.rows("PRAGMA temp.table_xinfo(penstock_query)")
            return self._sampled("temp.penstock_query", [_column(row, alone=False) for row in found])
        finally:
            self.run("DROP VIEW temp.penstock_query")

    def spark_type(self, column: Column) -> str:
        if column.kind == "decimal":
            return "STRING" if column.scale is None else f"DECIMAL({column.precision},{column.scale})"
        return SPARK.get(column.kind, "STRING")

    def selected(self, column: Column) -> str:
        name = self.name(column.name)
        return f"CAST({name} AS TEXT) AS {name}" if self.spark_type(column) == "STRING" else name

    def read(self, query: str, schema: pa.Schema) -> pa.Table:
        return from_rows(self.rows(query), schema)

    def explained(self, error: Exception) -> PenstockError:
        name, said = getattr(error, "sqlite_errorname", ""), str(error)
        if name.startswith(
            ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_INTERRUPT")
        ):
            return error_of(BUSY, said, self.place)
        if name.startswith("SQLITE_CANTOPEN"):
            return error_of(MISSING, said, self.place)
        if name.startswith(("SQLITE_READONLY", "SQLITE_PERM")):
            return error_of(FORBIDDEN, said, self.place)
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return error_of(NO_DATABASE, said, self.place)
        if "ON CONFLICT clause does not match" in said:
            return error_of(NO_UNIQUE_KEY, said, self.place)
        return error_of(FAILED, said, self.place)

    def flaw(self, error: Exception) -> Flaw | None:
        if isinstance(error, OverflowError):
            return Flaw("out_of_range", "the number has more than 64 bits")
        name = getattr(error, "sqlite_errorname", "") or ""
        if name in FLAWS or name.startswith("SQLITE_CONSTRAINT") or name == "SQLITE_MISMATCH":
            return Flaw(FLAWS.get(name, "wrong_value"), str(error))
        return None

    def _sampled(self, table: str, columns: list[Column]) -> list[Column]:
        """The columns; a column without a declared type gets the kind of its first value."""
        for at, column in enumerate(columns):
            if column.kind != "any":
                continue
            name = self.name(column.name)
            found = self.rows(f"SELECT typeof({name}) FROM {table} WHERE {name} IS NOT NULL LIMIT 1")
            kind = TYPEOF.get(found[0][0], "text") if found else "text"
            columns[at] = replace(column, kind=kind)
        return columns

    def _schema(self, table: TableName) -> str:
        return f"{self.name(table.schema)}." if table.schema else ""

    def _each(self, statement: str, data: pa.Table) -> None:
        for batch in data.to_batches(max_chunksize=CHUNK):
            columns = [_values(column) for column in batch.columns]
            self._connection.executemany(statement, zip(*columns, strict=True))


def _column(row: tuple[Any, ...], *, alone: bool) -> Column:
    _, name, declared, not_null, default, key, hidden = row
    kind: Kind = next((each for pattern, each in AFFINITIES if re.search(pattern, declared.upper())), "any")
    precision = scale = None
    if kind == "decimal" and (found := re.search(r"\((\d+)\s*(?:,\s*(\d+))?\)", declared)):
        precision, scale = int(found[1]), int(found[2] or 0)
    # A single INTEGER PRIMARY KEY column is the row id, which SQLite assigns.
    filled = default is not None or (bool(key) and alone and declared.upper() == "INTEGER")
    nullable = not not_null and not key
    return Column(name, declared or "ANY", kind, precision, scale, nullable, filled, hidden in (2, 3))


def _values(column: pa.Array) -> list[Any]:
    """The values as SQLite stores them: values that it has no type for are text, times in ISO 8601."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_json(column.type):
        return list(pc.struct_field(column, [0]).to_pylist())
    kind = kind_of(column.type)
    if kind == "decimal":
        return [None if value is None else format(value, "f") for value in column.to_pylist()]
    if kind in ("timestamp", "timestamptz"):
        form = column.cast(pa.timestamp("us")).cast(pa.string())
        zone = "Z" if kind == "timestamptz" else ""
        return [None if text is None else text + zone for text in form.to_pylist()]
    return list((column.cast(pa.string()) if kind == "date" else column).to_pylist())
