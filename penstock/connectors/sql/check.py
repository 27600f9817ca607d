"""The connection test of databases: checks the address, the login, and the table or query."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.connectors.probe import CONNECT_S, Probe
from penstock.connectors.sql.client import SqlEnd, TableName, file_of
from penstock.connectors.sql.database import Database, connect
from penstock.connectors.sql.problems import unknown_table
from penstock.connectors.sql.target import engine_problems, key_problems, matches
from penstock.errors import PenstockError, Problem, did_you_mean

if TYPE_CHECKING:
    from penstock.connectors.sql.sink import SqlSink
    from penstock.connectors.sql.source import SqlSource

SAMPLE, SHOWN = 5, 500
"""Maximum rows of a sample, and maximum characters shown of a value."""

PATIENCE_S = 2 * CONNECT_S
"""Maximum connection timeout of the test, in seconds."""


def probe_sink(sink: SqlSink) -> Probe:
    """The result of the connection test of a SQL sink."""
    creates = sink.place.engine == "sqlite" and sink.create != "never"
    if creates and not file_of(sink.place).exists():
        return Probe(offers={"tables": []})
    return _connected(sink, lambda database: _sink(database, sink))


def probe_source(source: SqlSource) -> Probe:
    """The result of the connection test of a SQL source, with its first rows."""
    return _connected(source, lambda database: _source(database, source))


def _connected(end: SqlEnd, look: Callable[[Database], Probe]) -> Probe:
    try:
        with contextlib.closing(connect(end.place, min(PATIENCE_S, end.connect_timeout_s))) as database:
            try:
                return look(database)
            except database.errors as error:
                return Probe(problems=database.explained(error).problems)
    except PenstockError as error:
        return Probe(problems=error.problems)


def _source(database: Database, source: SqlSource) -> Probe:
    from penstock.connectors.sql.reading import layout_of

    tables = database.tables()
    table = TableName.of(source.table) if source.table is not None else None
    try:
        columns = layout_of(database, source).columns
    except PenstockError as error:
        return Probe(problems=error.problems, offers=offers_of(database, table, tables))
    place = database.table(table) if table is not None else f"({source.query}) q"
    names = [column.name for column in columns]
    chosen = ", ".join(database.as_text(column) for column in columns)
    rows = database.rows(f"SELECT {chosen} FROM {place} LIMIT {SAMPLE}")
    sample = [dict(zip(names, map(_shown, row), strict=True)) for row in rows]
    return Probe(offers={"tables": tables, "columns": names}, sample=sample)


def _shown(value: object) -> str | None:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return None if text is None else str(text)[:SHOWN]


def _sink(database: Database, sink: SqlSink) -> Probe:
    tables, table = database.tables(), sink.table_name
    columns = database.columns(table)
    offers = offers_of(database, table, tables)
    if not columns:
        problems = [unknown_table(table, tables)] if sink.create == "never" else []
        return Probe(problems=problems, offers=offers)
    names = [column.name for column in columns]
    found = matches(sink.key or (), columns)
    problems = [
        Problem(
            code="unknown_column",
            message=f"the table '{table}' has no column '{name}'",
            path=f"key[{i}]",
            hint=did_you_mean(name, names),
        )
        for i, name in enumerate(sink.key or ())
        if name not in found
    ]
    if not problems:
        problems += key_problems(database, table, [column.name for column in found.values()])
    problems += engine_problems(database, table)
    return Probe(problems=problems, offers=offers)


def offers_of(database: Database, table: TableName | None, tables: list[str]) -> dict[str, list[str]]:
    """The tables of a database, and the columns of the given table."""
    columns = database.columns(table) if table is not None else []
    return {"tables": tables, **({"columns": [column.name for column in columns]} if columns else {})}
