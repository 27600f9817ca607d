"""Tables in databases, read through SQLAlchemy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from pydantic import Field, model_validator

from penstock.errors import Invalid, Problem, Retryable
from penstock.frames.faults import Fault
from penstock.processors.tables.fit import check_names, check_rows, fitted
from penstock.specs.base import Spec
from penstock.specs.reach import DatabaseUrl

if TYPE_CHECKING:
    import pyarrow as pa


class DatabaseTable(Spec):
    """A table or a query of a database."""

    url: DatabaseUrl = Field(
        min_length=1,
        description="SQLAlchemy URL of the database, such as `postgresql://user:${PASSWORD}@host/db`.",
    )
    table: str | None = Field(default=None, min_length=1, description="The table, or `schema.table`.")
    query: str | None = Field(default=None, min_length=1, description="A query, instead of a table.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("set either 'table' or 'query'")
        return self

    def check(self) -> None:
        """Raise `Invalid` if there is no driver for the database. Does not connect."""
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError

        try:
            self._url().get_dialect().import_dbapi()
        except (ArgumentError, NoSuchModuleError):
            message, hint = (
                "not the URL of a supported database",
                "such as postgresql://user@host/db",
            )
            raise Invalid(_problem("invalid_value", message, hint)) from None
        except ImportError as error:
            message = f"the driver for this database is not installed: {error.name}"
            raise Invalid(_problem("missing_driver", message, f"pip install {error.name}")) from None

    def read(self, schema: pa.Schema, most: int) -> pa.RecordBatch:
        """The rows, with the names and types of `schema`."""
        import pyarrow as pa
        import sqlalchemy as sa

        url = self._url()
        where = url.render_as_string(hide_password=True)
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        if engine.dialect.name == "sqlite":
            sa.event.listen(engine, "connect", _one_file)
        try:
            with engine.connect().execution_options(stream_results=True) as connection:
                result = connection.execute(self._statement(schema.names, most))
                names, rows = list(result.keys()), result.fetchmany(most + 1)
        except sa.exc.ProgrammingError as error:
            raise Fault("lookup_table", f"{where} refuses the query: {error.orig}") from None
        except sa.exc.SQLAlchemyError as error:
            told = getattr(error, "orig", None) or error
            raise Retryable(f"cannot read the table from {where}: {told}") from None
        check_rows(len(rows), most)
        check_names(names, schema)
        columns = {name: [row[names.index(name)] for row in rows] for name in schema.names}
        arrays = [_from_database(columns[field.name], field) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _url(self) -> Any:
        from sqlalchemy.engine import make_url

        url = make_url(self.url.replace("postgres://", "postgresql://", 1))
        return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url

    def _statement(self, names: Sequence[str], most: int) -> Any:
        import sqlalchemy as sa

        if self.query is not None:
            return sa.text(self.query)
        owner, _, name = (self.table or "").rpartition(".")
        table = sa.table(name, *map(sa.column, names), schema=owner or None)
        return sa.select(table).limit(most + 1)


def _one_file(connection: Any, _: object) -> None:
    """Prevent a query from opening other SQLite files with ATTACH."""
    import sqlite3

    if isinstance(connection, sqlite3.Connection):
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def _from_database(values: list[Any], field: pa.Field) -> pa.Array:
    import pyarrow as pa

    from penstock.processors.support.records import REFUSED

    values = [str(value) if isinstance(value, UUID) else value for value in values]
    try:
        return pa.array(values, field.type)
    except REFUSED:  # such as a decimal for a DOUBLE
        pass
    try:
        return fitted(pa.array(values), field)
    except REFUSED as error:
        raise Fault("lookup_table", f"column '{field.name}' of the table: {error}") from None


def _problem(code: str, message: str, hint: str) -> Problem:
    return Problem(code=code, message=message, path="database.url", hint=hint)
