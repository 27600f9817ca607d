"""Infers the columns of a table as Spark DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.mysql_cdc.catalog import Catalog, missing
from penstock.connectors.mysql_cdc.server import client, explained
from penstock.errors import Invalid, Problem
from penstock.streams.schema import arrow_schema

if TYPE_CHECKING:
    from penstock.connectors.mysql_cdc.source import MySqlCdcSource


def inferred(source: MySqlCdcSource) -> str:
    """The columns of the source's only table, from the database. Raises `Invalid` or `Unavailable`."""
    catalog = Catalog(source.connect())
    try:
        table = catalog.table(source.full_names[0])
        if table is None:
            raise Invalid(*missing(source.full_names, catalog.names()))
        return table.ddl
    except client().MySQLError as error:
        raise explained(error, source) from None
    finally:
        catalog.connection.close()


def check_schema(ddl: str) -> None:
    """Raises `Invalid` if a column is NOT NULL, which rows can't guarantee."""
    required = next((field.name for field in arrow_schema(ddl) if not field.nullable), None)
    if required is not None:
        raise Invalid(
            Problem(
                code="required_column",
                message=f"the column '{required}' can't be NOT NULL: old events may not have it",
                path="schema",
                hint=f"declare '{required}' without NOT NULL",
            )
        )
