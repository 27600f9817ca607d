"""The settings of a server, its tables and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from penstock.connectors.mysql_cdc.kinds import Kind, kind_of
from penstock.connectors.mysql_cdc.position import Place
from penstock.errors import Invalid, Problem, did_you_mean

if TYPE_CHECKING:
    import pymysql

SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")

PARSE_ERROR = 1064

AS_BYTES = ("uuid", "inet4", "inet6")
"""MariaDB types that appear as bytes in the log."""

NO_LOG = "start it with log_bin, binlog_format = ROW, binlog_row_image = FULL and binlog_row_metadata = FULL"
"""The hint for a server without a binary log."""


@dataclass(frozen=True)
class SqlColumn:
    """A column of a table as currently defined."""

    name: str
    type: str
    kind: Kind


@dataclass(frozen=True)
class SqlTable:
    """A table as currently defined."""

    name: str
    columns: tuple[SqlColumn, ...]
    key: tuple[str, ...]
    engine: str

    @property
    def ddl(self) -> str:
        """The columns of the table as Spark DDL."""
        return ", ".join(f"{quoted(column.name)} {column.kind.ddl}" for column in self.columns)


class Catalog:
    """Queries the settings and tables of a server over its own connection."""

    def __init__(self, connection: pymysql.Connection[Any]) -> None:
        self.connection = connection
        self.mariadb = "mariadb" in str(cast(Any, connection).server_version).lower()

    def rows(self, statement: str, args: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, args or None)
            return list(cursor.fetchall())

    def variable(self, name: str) -> str | None:
        """A global setting of the server; None if it has no such setting."""
        found = self.rows("SHOW GLOBAL VARIABLES WHERE Variable_name = %s", (name,))
        return str(found[0][1]) if found else None

    def place(self) -> Place | None:
        """The current end of the log; None if there is no log."""
        found = self._status()
        if found is None:
            return None
        return self.place_at(str(found[0]), int(found[1]), str(found[4]) if len(found) > 4 else "")

    def status(self) -> tuple[str, int]:
        """The file and the position of the current end of the log."""
        found = self._status()
        if found is None:
            raise Invalid(no_log(None))
        return str(found[0]), int(found[1])

    def place_at(self, file: str, pos: int, executed: str = "") -> Place:
        """A place in the log, with the GTIDs before it. On MySQL, `executed` has these GTIDs."""
        if self.mariadb:
            (found,) = self.rows("SELECT BINLOG_GTID_POS(%s, %s)", (file, pos))
            return Place(file, pos, _gtid(found[0]))
        return Place(file, pos, _gtid(executed) if self.variable("gtid_mode") == "ON" else None)

    def logs(self) -> list[tuple[str, int]]:
        """The files of the log, the oldest first, with their sizes."""
        return [(str(row[0]), int(row[1])) for row in self.rows("SHOW BINARY LOGS")]

    def names(self) -> list[str]:
        """The names of all tables with their databases."""
        marks = ", ".join(["%s"] * len(SYSTEM))
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ({marks})",
            SYSTEM,
        )
        return sorted(f"{schema}.{name}" for schema, name in found)

    def table(self, name: str) -> SqlTable | None:
        """A table by name; None if it doesn't exist. Raises `Invalid` if a column has an unknown type."""
        schema, _, short = name.partition(".")
        found = self.rows(
            "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            (schema, short),
        )
        if not found:
            return None
        columns = []
        for column, data_type, column_type in self.rows(
            "SELECT column_name, data_type, column_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (schema, short),
        ):
            kind = kind_of(text_of(data_type), text_of(column_type))
            if kind is None:
                raise Invalid(_unknown_type(name, str(column), text_of(data_type)))
            columns.append(SqlColumn(str(column), text_of(data_type).lower(), kind))
        key = self.rows(
            "SELECT column_name FROM information_schema.key_column_usage WHERE table_schema = %s "
            "AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
            (schema, short),
        )
        return SqlTable(name, tuple(columns), tuple(str(each[0]) for each in key), str(found[0][0]))

    def hints(self, table: str) -> dict[str, str] | None:
        """The columns of a MariaDB table whose types are missing from the log, with types; None on MySQL."""
        if not self.mariadb:
            return None
        schema, _, name = table.partition(".")
        found = self.rows(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s "
            "AND table_name = %s AND data_type IN (%s, %s, %s)",
            (schema, name, *AS_BYTES),
        )
        return {str(column): text_of(kind).lower() for column, kind in found}

    def charsets(self) -> dict[int, str]:
        """The character sets of the server by collation number."""
        found = self.rows("SELECT id, character_set_name FROM information_schema.collations WHERE id > 0")
        made = {int(number): str(name) for number, name in found if number and name}
        if self.mariadb:
            # A collation for several character sets has a number for each.
            known = "information_schema.collation_character_set_applicability"
            if self.rows(f"SHOW COLUMNS FROM {known} LIKE 'ID'"):
                found = self.rows(f"SELECT id, character_set_name FROM {known}")
                made |= {int(number): str(name) for number, name in found}
        return made

    def _status(self) -> tuple[Any, ...] | None:
        import pymysql

        try:
            found = self.rows("SHOW BINARY LOG STATUS")
        except pymysql.MySQLError as error:  # before MySQL 8.2, and MariaDB before 12
            if error.args[0] != PARSE_ERROR:
                raise
            found = self.rows("SHOW MASTER STATUS")
        return found[0] if found else None


def no_log(path: str | None) -> Problem:
    """The problem for a server without a binary log."""
    message = "binary logging is disabled on the server"
    return Problem(code="no_binlog", message=message, path=path, hint=NO_LOG)


def text_of(value: Any) -> str:
    """A text from `information_schema`, which some versions return as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def quoted(name: str) -> str:
    """The quoted name of a column or table."""
    return "`" + name.replace("`", "``") + "`"


def quoted_table(name: str) -> str:
    """The quoted name of a table with its database."""
    schema, _, short = name.partition(".")
    return f"{quoted(schema)}.{quoted(short)}"


def is_pattern(name: str) -> bool:
    """Whether a name is a pattern that may match several tables."""
    return "*" in name or "?" in name


def matches(name: str, tables: Iterable[str]) -> bool:
    """Whether the name of a table is in a list of names and patterns."""
    return any(name == each or (is_pattern(each) and fnmatchcase(name, each)) for each in tables)


def missing(tables: Sequence[str], found: Sequence[str]) -> list[Problem]:
    """A problem for each name or pattern that matches no table."""
    problems = []
    for i, name in enumerate(tables):
        if not any(matches(each, [name]) for each in found):
            what = f"no table matches '{name}'" if is_pattern(name) else f"there is no table '{name}'"
            hint = did_you_mean(name, found) if found else "create the table, and GRANT SELECT on it"
            problems.append(Problem(code="unknown_table", message=what, path=f"tables[{i}]", hint=hint))
    return problems


def _gtid(text: Any) -> str | None:
    return None if text is None else re.sub(r"\s", "", str(text))


def _unknown_type(table: str, column: str, kind: str) -> Problem:
    return Problem(
        code="unsupported_type",
        message=f"column '{column}' of '{table}' has the unsupported type {kind}",
        path="tables",
        hint="change the type of the column, or exclude the table",
    )
