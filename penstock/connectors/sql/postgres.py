"""PostgreSQL, through the Arrow driver: rows are sent as binary COPY, not as Python objects."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from penstock.connectors.sql.client import Place, TableName
from penstock.connectors.sql.database import Database, Target
from penstock.connectors.sql.problems import (
    BUSY,
    FAILED,
    FAILING,
    FORBIDDEN,
    LOGIN,
    NO_UNIQUE_KEY,
    OPTION,
    UNKNOWN_DATABASE,
    UNKNOWN_HOST,
    UNREACHABLE,
    Flaw,
    Rule,
    error_of,
    matching,
    missing_client,
)
from penstock.connectors.sql.rows import fitted
from penstock.connectors.sql.types import Column, Kind, is_json
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa

STAGE = "penstock_stage"

SETTINGS = ("SET TIME ZONE 'UTC'", "SET standard_conforming_strings = on")

LOST_MS = 30_000
"""Milliseconds after which data that the server has not acknowledged closes the connection."""

KINDS: dict[int, Kind] = {
    16: "boolean", 17: "binary", 20: "integer", 21: "integer", 23: "integer", 25: "text", 114: "json",
    700: "float", 701: "double", 1042: "text", 1043: "text", 1082: "date", 1114: "timestamp",
    1184: "timestamptz", 1700: "decimal", 3802: "json",
}  # fmt: skip
"""Kinds of columns by the OID of their PostgreSQL type."""

SPARK = {
    16: "BOOLEAN", 17: "BINARY", 20: "BIGINT", 21: "SMALLINT", 23: "INT", 700: "FLOAT", 701: "DOUBLE",
    1082: "DATE", 1114: "TIMESTAMP_NTZ", 1184: "TIMESTAMP",
}  # fmt: skip
"""Spark types of values that the driver reads natively; all others are read as text."""

FLAWS = {
    "23502": "null_value", "23503": "foreign_key", "23505": "duplicate_key", "23514": "check_failed",
    "22001": "too_long", "22003": "out_of_range", "22008": "out_of_range", "P0001": "refused",
}  # fmt: skip
"""SQLSTATEs of rejected rows; others in `FLAW_CLASSES` are a `wrong_value`."""

FLAW_CLASSES = ("21", "22", "23", "44")

STATES = {"42501": FORBIDDEN, "42P10": NO_UNIQUE_KEY, "25006": BUSY, "55P03": BUSY, "55000": BUSY}
BUSY_CLASSES = ("08", "40", "53", "57")

CONNECTION = (
    (r"could not translate host name|failed to resolve host", UNKNOWN_HOST),
    (r"password|authentication|role .* does not exist|pg_hba|no encryption", LOGIN),
    (r"database .* does not exist", UNKNOWN_DATABASE),
    (r"not currently accepting|too many connections|starting up|shutting down|remaining connection", BUSY),
    (r"invalid (URI|connection option|sslmode|integer value|.* value)", OPTION),
    (r"permission denied", FORBIDDEN),
)

COLUMNS = """\
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
       (CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END)::int8,
       (CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END)::int4,
       a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '', format_type(a.atttypid, NULL),
       t.typtype = 'd'
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass({}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

UNIQUE = """\
SELECT (SELECT string_agg(a.attname, chr(31) ORDER BY a.attname) FROM pg_attribute a
        WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey))
FROM pg_index i
WHERE i.indrelid = to_regclass({}) AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY i.indisprimary DESC"""

SCHEMA = """\
SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass({})"""

TABLES = """\
SELECT CASE WHEN n.nspname = ANY (current_schemas(false)) THEN '' ELSE n.nspname || '.' END || c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\\_t%' ORDER BY 1"""


class Postgres(Database):
    """A connection to PostgreSQL.

    Transactions are started by statements: the driver's own transactions don't support savepoints.
    """

    def __init__(self, place: Place, timeout_s: float) -> None:
        super().__init__(place, timeout_s)
        try:
            import adbc_driver_manager
            import adbc_driver_postgresql.dbapi as driver
        except ImportError:
            raise missing_client("postgres", "PostgreSQL") from None
        self.errors = (adbc_driver_manager.Error,)
        try:
            self._connection = driver.connect(_uri(place, timeout_s), autocommit=True)
        except self.errors as error:
            raise self._refused(error) from None
        self._cursor = self._connection.cursor()
        self._staged = False
        self._schema: str | None = None
        try:
            for setting in SETTINGS:
                self.run(setting)
        except self.errors as error:
            self.close()
            raise self.explained(error) from None

    def close(self) -> None:
        for each in (self._cursor, self._connection):
            with contextlib.suppress(Exception):  # the connection may be broken
                each.close()

    def cancel(self) -> None:
        with contextlib.suppress(*self.errors):
            self._cursor.adbc_cancel()

    def run(self, statement: str) -> int:
        self._cursor.execute(statement)
        return int(self._cursor.rowcount)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        self._cursor.execute(query)
        return list(self._cursor.fetchall())

    def begin(self) -> None:
        # A violation of a constraint that is checked at commit could not be attributed to a row.
        self._staged = False
        self.run("BEGIN")
        self.run("SET CONSTRAINTS ALL IMMEDIATE")

    def tables(self) -> list[str]:
        return [str(name) for (name,) in self.rows(TABLES)]

    def columns(self, table: TableName) -> list[Column]:
        found = self.rows(COLUMNS.format(self.text(self.table(table))))
        return [_column(*row) for row in found]

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        found = self.rows(UNIQUE.format(self.text(self.table(table))))
        return [tuple(str(names).split("\x1f")) for (names,) in found]

    def type_for(self, kind: pa.DataType) -> str:
        return "jsonb" if is_json(kind) else _own_type(kind)[1]

    def prepare(self, target: Target, schema: pa.Schema) -> None:
        # The driver's COPY only searches the first schema of the search path.
        found = self.rows(SCHEMA.format(self.text(self.table(target.table))))
        self._schema = str(found[0][0])
        columns = ", ".join(f"{self.name(field.name)} {_own_type(field.type)[1]}" for field in schema)
        self.run(f"DROP TABLE IF EXISTS pg_temp.{STAGE}")
        self.run(f"CREATE TEMP TABLE {STAGE} ({columns}) ON COMMIT DELETE ROWS")

    def insert(self, target: Target, data: pa.Table) -> None:
        plain = _as_text(data)
        if all(_is_same(field.type, target.columns[field.name]) for field in plain.schema):
            self._copy(plain, target.table.name, self._schema)
            return
        self._fill(plain)
        self.run(self._inserting(target, data))

    def upsert(self, target: Target, data: pa.Table) -> None:
        self._fill(_as_text(data))
        others = [name for name in data.column_names if name not in target.key]
        changes = ", ".join(f"{self.name(name)} = EXCLUDED.{self.name(name)}" for name in others)
        action = f"UPDATE SET {changes}" if others else "NOTHING"
        self.run(f"{self._inserting(target, data)} ON CONFLICT ({self.names(target.key)}) DO {action}")

    def delete(self, target: Target, keys: pa.Table) -> None:
        self._fill(_as_text(keys))
        same = " AND ".join(
            f"t.{self.name(name)} = s.{self.name(name)}{self._cast(target.columns[name])}"
            for name in keys.column_names
        )
        self.run(f"DELETE FROM {self.table(target.table)} t USING pg_temp.{STAGE} s WHERE {same}")

    def describe(self, query: str) -> list[Column]:
        import psycopg

        try:
            with psycopg.connect(_uri(self.place, self.timeout_s), autocommit=True) as connection:
                found = connection.execute(f"SELECT * FROM ({query}) q LIMIT 0").description or []
        except psycopg.Error as error:
            rule = STATES.get(error.sqlstate or "", FAILED if error.sqlstate else UNREACHABLE)
            raise error_of(replace(rule, path="query"), str(error), self.place) from None
        return [
            Column(
                each.name,
                each.type_display,
                KINDS.get(each.type_code, "other"),
                each.precision,
                each.scale,
                code=each.type_code,
            )
            for each in found
        ]

    def spark_type(self, column: Column) -> str:
        if (
            column.kind == "decimal"
            and column.precision
            and column.precision <= 38
            and (column.scale or 0) >= 0
        ):
            return f"DECIMAL({column.precision},{column.scale or 0})"
        return SPARK.get(column.code, "STRING")

    def selected(self, column: Column) -> str:
        name = self.name(column.name)
        if column.code in SPARK or column.kind == "text":
            return name
        return f"{name}::text AS {name}"

    def as_text(self, column: Column) -> str:
        return f"{self.name(column.name)}::text"

    def literal(self, column: Column, text: str) -> str:
        return self.text(text)  # untyped, so that it gets the type of the column

    def read(self, query: str, schema: pa.Schema) -> pa.Table:
        self._cursor.execute(query)
        return fitted(self._cursor.fetch_arrow_table(), schema)

    def explained(self, error: Exception) -> PenstockError:
        state, said = str(getattr(error, "sqlstate", None) or ""), _said(error)
        if state in STATES:
            return error_of(STATES[state], said, self.place)
        if not state or state.startswith(BUSY_CLASSES):
            return error_of(BUSY if state else UNREACHABLE, said, self.place)
        return error_of(FAILED if state.startswith(("42", "0A")) else FAILING, said, self.place)

    def flaw(self, error: Exception) -> Flaw | None:
        state = str(getattr(error, "sqlstate", None) or "")
        if state not in FLAWS and not state.startswith(FLAW_CLASSES):
            return None
        return Flaw(FLAWS.get(state, "wrong_value"), self.place.safe(_said(error)))

    def _inserting(self, target: Target, data: pa.Table) -> str:
        values = ", ".join(f"{self.name(n)}{self._cast(target.columns[n])}" for n in data.column_names)
        into = f"INSERT INTO {self.table(target.table)} ({self.names(data.column_names)})"
        return f"{into} SELECT {values} FROM pg_temp.{STAGE}"

    def _cast(self, column: Column) -> str:
        """The cast of a staged value, if an assignment would not convert it.

        Without a length: an explicit cast would truncate the value, an assignment does not.
        """
        return f"::{column.base}" if column.kind in ("json", "other") else ""

    def _fill(self, data: pa.Table) -> None:
        """Copy events to the temporary table, replacing its rows."""
        if self._staged:
            self.run(f"TRUNCATE pg_temp.{STAGE}")
        self._staged = True
        self._copy(data, STAGE, None, temporary=True)

    def _copy(self, data: pa.Table, table: str, schema: str | None, *, temporary: bool = False) -> None:
        settings = {} if temporary or schema is None else {"db_schema_name": schema}
        self._cursor.adbc_ingest(table, data, mode="append", temporary=temporary, **settings)

    def _refused(self, error: Exception) -> PenstockError:
        said = str(error).partition("Failed to connect: ")[2] or str(error)
        rule: Rule = matching(said, CONNECTION) or UNREACHABLE
        text = said.partition("FATAL: ")[2] or said.partition("failed: ")[2] or said
        return error_of(rule, text, self.place)


def _uri(place: Place, timeout_s: float) -> str:
    login = "" if place.user is None else quote(place.user, safe="")
    if place.password is not None:
        login += f":{quote(place.password, safe='')}"
    settings = {
        "connect_timeout": str(max(2, round(timeout_s))),
        "tcp_user_timeout": str(LOST_MS),
        "application_name": "penstock",
        **place.options,
    }
    where = f"{login}@{place.address}" if login else place.address
    return f"postgresql://{where}/{quote(place.database, safe='')}?{urlencode(settings, quote_via=quote)}"


def _said(error: Exception) -> str:
    """The server's error message, with its detail."""
    parts = {_plain(name): _plain(value) for name, value in getattr(error, "details", None) or ()}
    told = [parts.get("PG_DIAG_MESSAGE_PRIMARY"), parts.get("PG_DIAG_MESSAGE_DETAIL")]
    known = ": ".join(part.rstrip(".") for part in told if part)
    return known or str(error).partition("ERROR: ")[2] or str(error).partition("] ")[2] or str(error)


def _plain(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def _column(
    name: str,
    kind: str,
    code: int,
    modifier: int,
    not_null: bool,
    filled: bool,
    generated: bool,
    base: str,
    domain: bool,
) -> Column:
    family = KINDS.get(code, "other")
    precision = scale = None
    if family == "decimal" and modifier >= 4:
        precision = (modifier - 4) >> 16 & 0xFFFF
        scale = ((modifier - 4 & 0x7FF) ^ 1024) - 1024  # eleven bits, with a sign
    elif family in ("timestamp", "timestamptz") and modifier >= 0:
        precision = modifier
    own = 0 if domain else code
    return Column(name, kind, family, precision, scale, not not_null, filled, generated, own, base)


def _own_type(kind: pa.DataType) -> tuple[int, str]:
    """The OID and name of the PostgreSQL type as which an Arrow column is sent by binary COPY."""
    import pyarrow as pa
    from pyarrow import types as is_

    if is_.is_decimal(kind):
        return 1700, f"numeric({kind.precision},{kind.scale})"
    if is_.is_timestamp(kind):
        return (1114, "timestamp") if kind.tz is None else (1184, "timestamptz")
    known = {
        pa.bool_(): (16, "boolean"), pa.int8(): (21, "smallint"), pa.int16(): (21, "smallint"),
        pa.int32(): (23, "integer"), pa.int64(): (20, "bigint"), pa.float32(): (700, "real"),
        pa.float64(): (701, "double precision"), pa.date32(): (1082, "date"), pa.binary(): (17, "bytea"),
        pa.large_binary(): (17, "bytea"),
    }  # fmt: skip
    return known.get(kind, (25, "text"))


def _is_same(kind: pa.DataType, column: Column) -> bool:
    """Whether a table's column accepts the binary COPY format of an Arrow column."""
    code = _own_type(kind)[0]
    return column.code == code or (code == 25 and column.code in (1042, 1043, 114))


def _as_text(data: pa.Table) -> pa.Table:
    """The table with JSON columns as text."""
    import pyarrow.compute as pc

    for at, field in enumerate(data.schema):
        if is_json(field.type):
            data = data.set_column(at, field.name, pc.struct_field(data.column(at), [0]))
    return data
