"""Infers the columns of a table as Spark DDL."""

from __future__ import annotations

from penstock.connectors.postgres_cdc.catalogue import Catalogue, chosen
from penstock.connectors.postgres_cdc.server import Server, said
from penstock.connectors.postgres_cdc.tables import struct_of
from penstock.errors import Invalid, Problem, Unavailable


def inferred(server: Server, table: str) -> str:
    """The columns of a table, read from the database; raises `Invalid` if they can't be read."""
    try:
        return _columns(server, table)
    except Unavailable as error:
        problem = error.problems[0]
        raise Invalid(
            Problem(
                code="schema_unknown",
                message=f"the columns of '{table}' are unknown: {problem.message}",
                path="schema",
                hint=f"declare the columns in 'schema', or {problem.hint}",
            )
        ) from None


def _columns(server: Server, table: str) -> str:
    connection = server.connect()
    try:
        with said(server):
            catalogue = Catalogue(connection)
            (info,) = chosen([table], catalogue.tables())
            columns = catalogue.relation(info).columns
            kinds = [catalogue.kinds.kind(column.type, column.modifier) for column in columns]
    finally:
        connection.close()
    made = ", ".join(
        f"{_quoted(column.name)} {kind.ddl}" for column, kind in zip(columns, kinds, strict=True)
    )
    check_schema(made)
    return made


def check_schema(schema: str) -> None:
    """Raise `Invalid` if a column is NOT NULL, which `before` can't guarantee."""
    required = next((field.name for field in struct_of(schema) if not field.nullable), None)
    if required is not None:
        raise Invalid(
            Problem(
                code="required_column",
                message=f"the column '{required}' can't be NOT NULL: 'before' may have only the key",
                path="schema",
                hint=f"declare '{required}' without NOT NULL",
            )
        )


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else "`" + name.replace("`", "``") + "`"
