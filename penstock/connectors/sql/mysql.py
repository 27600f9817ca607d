"""MySQL and MariaDB, through PyMySQL: rows are sent as the text of INSERT statements, built by Arrow."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.sql.client import Place, TableName
from penstock.connectors.sql.database import Database, Target
from penstock.connectors.sql.problems import (
    BUSY,
    FAILED,
    FAILING,
    FORBIDDEN,
    LOGIN,
    OPTION,
    UNKNOWN_DATABASE,
    UNKNOWN_HOST,
    UNREACHABLE,
    Flaw,
    error_of,
    missing_client,
)
from penstock.connectors.sql.rows import from_rows
from penstock.connectors.sql.types import Column, Kind, is_json, kind_of
from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa

MODE = "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION"
"""Invalid values are errors, and a quote is the only character in a text that has to be escaped."""

STATEMENT = 1024 * 1024
"""Maximum bytes of rows in a statement, unless the server accepts less."""

CHUNK = 5_000
"""Number of rows that are converted to text at a time."""

LOST_S = 120
"""Seconds after which a statement without a response closes the connection."""

OPTIONS = {
    "ssl_ca": str, "ssl_cert": str, "ssl_key": str, "unix_socket": str, "ssl_verify_cert": bool,
    "ssl_verify_identity": bool, "ssl_disabled": bool,
}  # fmt: skip

KINDS: dict[str, Kind] = {
    "tinyint": "integer", "smallint": "integer", "mediumint": "integer", "int": "integer",
    "bigint": "integer", "year": "integer", "float": "float", "double": "double", "decimal": "decimal",
    "char": "text", "varchar": "text", "tinytext": "text", "text": "text", "mediumtext": "text",
    "longtext": "text", "binary": "binary", "varbinary": "binary", "tinyblob": "binary", "blob": "binary",
    "mediumblob": "binary", "longblob": "binary", "date": "date", "datetime": "timestamp",
    "timestamp": "timestamptz", "json": "json",
}  # fmt: skip

SIGNED = {"tinyint": "TINYINT", "smallint": "SMALLINT", "mediumint": "INT", "int": "INT", "year": "INT"}
UNSIGNED = {
    "tinyint": "SMALLINT", "smallint": "INT", "mediumint": "INT", "int": "BIGINT", "year": "INT",
    "bigint": "DECIMAL(20,0)",
}  # fmt: skip
SPARK: dict[Kind, str] = {
    "boolean": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE", "binary": "BINARY", "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP",
}  # fmt: skip

CODES = {
    1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 7: "timestamp", 8: "bigint", 9: "int",
    10: "date", 12: "datetime", 13: "year", 246: "decimal", 0: "decimal",
}  # fmt: skip
"""Type codes in the result of a query; all others are read as text."""

FLAWS = {
    1048: "null_value", 1364: "null_value", 1062: "duplicate_key", 1169: "duplicate_key",
    1216: "foreign_key", 1217: "foreign_key", 1451: "foreign_key", 1452: "foreign_key",
    3819: "check_failed", 4025: "check_failed", 1406: "too_long", 1264: "out_of_range", 1690: "out_of_range",
    1265: "wrong_value", 1292: "wrong_value", 1366: "wrong_value", 1411: "wrong_value", 1526: "wrong_value",
    3140: "wrong_value", 1367: "wrong_value", 1644: "refused", 1153: "too_long", 4078: "wrong_value",
}  # fmt: skip
"""Numbers of the MySQL errors that reject a row."""

NUMBERS = {
    1044: FORBIDDEN, 1045: LOGIN, 1049: UNKNOWN_DATABASE, 1142: FORBIDDEN, 1143: FORBIDDEN, 1227: FORBIDDEN,
    1205: BUSY, 1213: BUSY, 1040: BUSY, 1203: BUSY, 1290: BUSY, 1836: BUSY, 1021: BUSY, 1114: BUSY,
    1317: BUSY, 1698: LOGIN, 1130: LOGIN,
}  # fmt: skip

DUPLICATE, NULL_IN_KEY = 1062, 1048
CONFLICT = "another row has the same value in another unique index"

COLUMNS = """\
SELECT column_name, column_type, data_type, numeric_precision, numeric_scale, datetime_precision,
       is_nullable = 'YES', column_default IS NOT NULL OR extra LIKE '%auto_increment%'
       OR (data_type = 'timestamp' AND extra <> ''), extra LIKE '%GENERATED%'
FROM information_schema.columns WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position"""

UNIQUE = """\
SELECT GROUP_CONCAT(column_name ORDER BY column_name SEPARATOR '\x1f')
FROM information_schema.statistics WHERE table_schema = {} AND table_name = {} AND non_unique = 0
GROUP BY index_name ORDER BY index_name = 'PRIMARY' DESC"""


class MySQL(Database):
    """A connection to MySQL or MariaDB."""

    quote: ClassVar = "`"
    key_type: ClassVar = "VARCHAR(255)"
    booleans: ClassVar = False
    text_type: ClassVar = "CHAR"

    def __init__(self, place: Place, timeout_s: float) -> None:
        super().__init__(place, timeout_s)
        try:
            import pymysql
        except ImportError:
            raise missing_client("mysql", "MySQL") from None
        # A broken connection may surface as a socket error, or as an error in a partial response.
        self.errors = (pymysql.Error, OSError)
        try:
            self._connection: Any = pymysql.connect(
                host=place.host,
                port=place.port,
                user=place.user,
                password=place.password or "",
                database=place.database,
                charset="utf8mb4",
                connect_timeout=max(1, round(timeout_s)),
                read_timeout=LOST_S,
                write_timeout=LOST_S,
                autocommit=True,
                **_options(place),
            )
            self.run(f"SET SESSION sql_mode = '{MODE}', time_zone = '+00:00'")
            ((packet, version),) = self.rows("SELECT @@max_allowed_packet, VERSION()")
        except self.errors as error:
            raise self.explained(error) from None
        self._statement = min(STATEMENT, int(packet) // 2)
        self._is_mariadb = "mariadb" in str(version).lower()

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the connection may be broken
            self._connection.close()

    def cancel(self) -> None:
        number = self._connection.thread_id()
        with contextlib.suppress(Exception):  # the server may be gone
            other = MySQL(self.place, self.timeout_s)
            with contextlib.closing(other):
                other.run(f"KILL {number}")

    def run(self, statement: str) -> int:
        with self._connection.cursor() as cursor:
            return int(cursor.execute(statement))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def begin(self) -> None:
        self.run("START TRANSACTION")

    def tables(self) -> list[str]:
        query = (
            "SELECT IF(table_schema = DATABASE(), table_name, CONCAT(table_schema, '.', table_name)) "
            "FROM information_schema.tables WHERE table_schema NOT IN "
            "('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1"
        )
        return [str(name) for (name,) in self.rows(query)]

    def columns(self, table: TableName) -> list[Column]:
        found = [_column(*row) for row in self.rows(COLUMNS.format(*self._where(table)))]
        for name in self._checked_as_json(table) if found else ():
            found = [Column(**{**vars(c), "kind": "json"}) if c.name == name else c for c in found]
        return found

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        found = self.rows(UNIQUE.format(*self._where(table)))
        return [tuple(str(names).split("\x1f")) for (names,) in found]

    def engine_of(self, table: TableName) -> str:
        """The storage engine of a table."""
        query = "SELECT engine FROM information_schema.tables WHERE table_schema = {} AND table_name = {}"
        return next((str(name) for (name,) in self.rows(query.format(*self._where(table)))), "")

    def type_for(self, kind: pa.DataType) -> str:
        names: dict[Kind, str] = {
            "boolean": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE", "text": "LONGTEXT",
            "binary": "LONGBLOB", "date": "DATE", "timestamp": "DATETIME(6)", "timestamptz": "DATETIME(6)",
            "json": "JSON",
        }  # fmt: skip
        family = kind_of(kind)
        if family == "integer":
            return {8: "TINYINT", 16: "SMALLINT", 32: "INT"}.get(kind.bit_width, "BIGINT")
        return f"DECIMAL({kind.precision},{kind.scale})" if family == "decimal" else names[family]

    def table_options(self) -> str:
        # Text is compared byte by byte, trailing spaces included: the key 'a' is neither 'A' nor 'a '.
        collation = "utf8mb4_nopad_bin" if self._is_mariadb else "utf8mb4_0900_bin"
        return f" ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE {collation}"

    def insert(self, target: Target, data: pa.Table) -> None:
        into = f"INSERT INTO {self.table(target.table)} ({self.names(data.column_names)}) VALUES "
        self._send(into, data)

    def upsert(self, target: Target, data: pa.Table) -> None:
        into = f"INSERT INTO {self.table(target.table)} ({self.names(data.column_names)}) VALUES "
        others = [name for name in data.column_names if name not in target.key]
        changes = [f"{self.name(name)} = VALUES({self.name(name)})" for name in others]
        first = self.name(target.key[0])
        if target.only_key:
            changes = changes or [f"{first} = {first}"]
        else:
            # The conflicting row may be a different one, by another index; a NULL in the key then raises.
            same = " AND ".join(f"{self.name(k)} <=> VALUES({self.name(k)})" for k in target.key)
            changes.insert(0, f"{first} = IF({same}, {first}, NULL)")
        try:
            self._send(into, data, f" ON DUPLICATE KEY UPDATE {', '.join(changes)}")
        except self.errors as error:
            number, said = _said(error)
            if number == NULL_IN_KEY and not target.only_key and f"'{target.key[0]}'" in said:
                raise type(error)(DUPLICATE, CONFLICT) from None
            raise

    def delete(self, target: Target, keys: pa.Table) -> None:
        one = keys.num_columns == 1
        names = self.names(keys.column_names)
        where = f"DELETE FROM {self.table(target.table)} WHERE {names if one else f'({names})'} IN ("
        self._send(where, keys, ")")

    def describe(self, query: str) -> list[Column]:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) q LIMIT 0")
            return [_described(*each[:6]) for each in cursor.description or ()]

    def spark_type(self, column: Column) -> str:
        if column.kind == "integer":
            wide = "unsigned" in column.type
            word = column.type.partition("(")[0].partition(" ")[0]
            return (UNSIGNED if wide else SIGNED).get(word, "BIGINT")
        if column.kind == "decimal":
            fits = column.precision is not None and column.precision <= 38
            return f"DECIMAL({column.precision},{column.scale or 0})" if fits else "STRING"
        return SPARK.get(column.kind, "STRING")

    def read(self, query: str, schema: pa.Schema) -> pa.Table:
        return from_rows(self.rows(query), schema)

    def explained(self, error: Exception) -> PenstockError:
        number, said = _said(error)
        if number in (2003, 2002, 2005) and re.search(
            r"Name or service|nodename|getaddrinfo|resolution", said
        ):
            return error_of(UNKNOWN_HOST, said, self.place)
        if number in NUMBERS:
            return error_of(NUMBERS[number], said, self.place)
        if number == 0 or 2000 <= number < 3000:
            return error_of(UNREACHABLE, said, self.place)
        rule = FAILED if number in (1064, 1054, 1146, 1071, 1170, 1427, 1425) else FAILING
        return error_of(rule, said, self.place)

    def flaw(self, error: Exception) -> Flaw | None:
        number, said = _said(error)
        return Flaw(FLAWS[number], self.place.safe(said)) if number in FLAWS else None

    def _where(self, table: TableName) -> tuple[str, str]:
        return self.text(table.schema or self.place.database), self.text(table.name)

    def _checked_as_json(self, table: TableName) -> list[str]:
        """The JSON columns of a MariaDB table, where JSON is a text with a check constraint."""
        if not self._is_mariadb:
            return []
        query = (
            "SELECT check_clause FROM information_schema.check_constraints "
            "WHERE constraint_schema = {} AND table_name = {}"
        )
        found = (
            re.fullmatch(r"json_valid\(`(.+)`\)", str(clause))
            for (clause,) in self.rows(query.format(*self._where(table)))
        )
        return [each[1].replace("``", "`") for each in found if each]

    def _send(self, head: str, data: pa.Table, tail: str = "") -> None:
        """Run statements, each with as many rows as the server accepts."""
        for rows in self._chunks(data):
            self.run(f"{head}{','.join(rows)}{tail}")

    def _chunks(self, data: pa.Table) -> Iterator[list[str]]:
        rows: list[str] = []
        size = 0
        for batch in data.to_batches(max_chunksize=CHUNK):
            for row in _literals(batch):
                if rows and size + len(row) > self._statement:
                    yield rows
                    rows, size = [], 0
                rows.append(row)
                size += len(row)
        if rows:
            yield rows


def _options(place: Place) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in place.options.items():
        if name == "charset":
            continue
        if name not in OPTIONS:
            raise error_of(OPTION, f"'{name}' is not one of {', '.join(sorted(OPTIONS))}", place)
        made[name] = value.lower() in ("1", "true", "yes") if OPTIONS[name] is bool else value
    return made


def _said(error: Exception) -> tuple[int, str]:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    return number, str(error.args[1] if len(error.args) > 1 else error)


def _column(
    name: str,
    kind: str,
    family: str,
    precision: int | None,
    scale: int | None,
    fraction: int | None,
    nullable: int,
    filled: int,
    generated: int,
) -> Column:
    found: Kind = "boolean" if kind == "tinyint(1)" else KINDS.get(family, "other")
    digits = fraction if found in ("timestamp", "timestamptz") else precision
    return Column(name, kind, found, digits, scale, bool(nullable), bool(filled), bool(generated))


def _described(name: str, code: int, _shown: object, length: int, _size: object, scale: int) -> Column:
    word = CODES.get(code, "text")
    if word == "decimal":  # the length counts the sign and the point
        precision = length - 1 - (1 if scale else 0)
        return Column(name, word, "decimal", precision, scale)
    return Column(name, word, KINDS[word])


def _literals(batch: pa.RecordBatch) -> list[str]:
    """Each row as a list of SQL literals in parentheses."""
    import pyarrow.compute as pc

    joined = pc.binary_join_element_wise(*(_literal(column) for column in batch.columns), ",")
    return list(pc.binary_join_element_wise("(", joined, ")", "").to_pylist())


def _literal(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = kind_of(values.type)
    if is_json(values.type):
        values = pc.struct_field(values, [0])
    if kind == "binary":
        hexed = (None if value is None else f"x'{value.hex()}'" for value in values.to_pylist())
        return pc.coalesce(pa.array(hexed, pa.string()), pa.scalar("NULL"))
    if kind == "boolean":
        values = values.cast(pa.int8())
    elif kind in ("timestamp", "timestamptz"):
        values = values.cast(pa.timestamp("us"))
    text = values.cast(pa.string())
    if kind not in ("boolean", "integer", "decimal"):
        quoted = pc.replace_substring(text, "'", "''") if kind in ("text", "json") else text
        text = pc.binary_join_element_wise("'", quoted, "'", "")
    return pc.coalesce(text, pa.scalar("NULL"))
