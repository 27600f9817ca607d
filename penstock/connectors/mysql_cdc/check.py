"""The connection test of `mysql_cdc`: checks the settings of the log, the permissions and the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.connectors.mysql_cdc.catalog import (
    Catalog,
    SqlTable,
    matches,
    missing,
    no_log,
    quoted,
    quoted_table,
)
from penstock.connectors.mysql_cdc.server import client, explained
from penstock.connectors.mysql_cdc.snapshot import check
from penstock.connectors.probe import Probe, unreachable
from penstock.errors import Invalid, PenstockError, Problem

if TYPE_CHECKING:
    from penstock.connectors.mysql_cdc.source import MySqlCdcSource

SAMPLE, SHOWN = 5, 500
"""Maximum rows of a sample, and maximum characters shown of a value."""

WANTED = {
    "binlog_format": ("ROW", "the binary log contains statements, not rows"),
    "binlog_row_image": ("FULL", "the binary log doesn't contain all columns of a row"),
    "binlog_row_metadata": ("FULL", "the binary log doesn't contain column names"),
}
"""Server settings with their required value, and the problem with any other value."""

WANTED_OF_MYSQL = {
    "binlog_row_value_options": ("", "the binary log contains partial JSON documents"),
    "binlog_transaction_compression": ("OFF", "the binary log contains compressed transactions"),
}

MAY_READ = re.compile(r"\bALL PRIVILEGES\b.* ON \*\.\*|\bREPLICATION (SLAVE|REPLICA)\b", re.IGNORECASE)


def requirements(catalog: Catalog, path: str) -> Iterator[Problem]:
    """The settings and permissions that have to change on the server before its log can be read."""
    if (catalog.variable("log_bin") or "OFF").upper() not in ("ON", "1"):
        yield no_log(path)
        return
    wanted = WANTED if catalog.mariadb else WANTED | WANTED_OF_MYSQL
    for name, (value, why) in wanted.items():
        found = catalog.variable(name)
        if found is None and name == "binlog_row_metadata":
            hint = "use MariaDB 10.5 or newer, or MySQL 8.0.1 or newer"
            message = f"{why}, and the server is too old to write them"
            yield Problem(code="server_too_old", message=message, path=path, hint=hint)
        elif found is not None and found.upper() != value:
            yield Problem(
                code=name,
                message=f"{why}: {name} is {found or 'empty'}",
                path=path,
                hint=f"SET GLOBAL {name} = '{value}', and set it in the server's configuration",
            )
    yield from _permission(catalog, path)


def _permission(catalog: Catalog, path: str) -> Iterator[Problem]:
    grants = [str(row[0]) for row in catalog.rows("SHOW GRANTS")]
    roles = any(grant.upper().startswith("GRANT `") or " ON " not in grant.upper() for grant in grants)
    if not roles and not any(MAY_READ.search(grant) for grant in grants):
        yield Problem(
            code="permission_denied",
            message="the user has no permission to read the binary log",
            path=path,
            hint="GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the user",
        )


def probe_mysql(source: MySqlCdcSource) -> Probe:
    """The result of the connection test of a `mysql_cdc` source."""
    host, port = source.address
    if problems := unreachable([f"{host}:{port}"], source.place):
        return Probe(problems=problems)
    try:
        catalog = Catalog(source.connect())
    except PenstockError as error:
        return Probe(problems=error.problems)
    try:
        return _look(source, catalog)
    except client().MySQLError as error:
        return Probe(problems=explained(error, source).problems)
    finally:
        catalog.connection.close()


def _look(source: MySqlCdcSource, catalog: Catalog) -> Probe:
    problems = list(requirements(catalog, source.place))
    names = catalog.names()
    problems += missing(source.full_names, names)
    chosen = [name for name in names if matches(name, source.full_names)]
    tables: list[SqlTable] = []
    for name in chosen:
        try:
            table = catalog.table(name)
            if table is not None:
                tables.append(table)
                if source.snapshot != "never":
                    check(table)
        except Invalid as error:
            problems += error.problems
    if not problems:
        problems += _position(source, catalog)
    offers = {"tables": names}
    if len(tables) == 1:
        offers["columns"] = [f"{column.name} {column.kind.ddl}" for column in tables[0].columns]
    return Probe(problems=problems, offers=offers, sample=_sample(catalog, tables[0]) if tables else [])


def _position(source: MySqlCdcSource, catalog: Catalog) -> Iterator[Problem]:
    """A problem if the log file in `position` doesn't exist."""
    if not source.position.startswith("file:"):
        return
    file, files = source.position.split(":")[1], [name for name, _ in catalog.logs()]
    if file not in files:
        yield Problem(
            code="position_gone",
            message=f"the server doesn't have the binary log file '{file}'",
            path="position",
            hint=f"its files are {files[0]} to {files[-1]}; remove 'position' to take a new snapshot",
        )


def _sample(catalog: Catalog, table: SqlTable) -> list[dict[str, Any]]:
    columns = ", ".join(column.kind.select.format(quoted(column.name)) for column in table.columns)
    rows = catalog.rows(f"SELECT {columns} FROM {quoted_table(table.name)} LIMIT {SAMPLE}")
    return [
        {column.name: _shown(value) for column, value in zip(table.columns, row, strict=True)} for row in rows
    ]


def _shown(value: Any) -> Any:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text[:SHOWN] if isinstance(text, str) else text
