"""An Iceberg table: its catalog, how it is opened, and its errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from penstock.connectors.probe import Probe, unreachable
from penstock.errors import Fatal, Invalid, PenstockError, Problem, Retryable, Unavailable, did_you_mean
from penstock.specs.base import Component, Spec
from penstock.specs.conditions import only_with
from penstock.specs.reach import ClientOptions, DatabaseUrl, Reach

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

TESTED = "PyIceberg 0.12"

NAME = re.compile(r"[^.\s]+(\.[^.\s]+)+")

ADDRESS = re.compile(r"https?://([^/:@]+)(?::([0-9]+))?(?:/|$)")

PASSWORD = re.compile(r"(?<=://)[^/@]*@")
"""Matches the user and the password in a URL."""

CLASS = re.compile(r"\(\w+(\.\w+)+\) ")
"""Matches the class of an error, which SQLAlchemy puts before its text."""

OFFERED = 100
"""Maximum number of tables in the result of a connection test."""


class CatalogSpec(Spec):
    """The catalog, which stores the location of a table's current metadata."""

    type: Literal["rest", "sql"] = Field(
        description="Type of the catalog: a server with the Iceberg REST protocol, or tables in a database."
    )
    uri: DatabaseUrl = Field(
        min_length=1,
        description="URL of the server, or of the database, such as `sqlite:////var/lib/lake.db` or "
        "`postgresql+psycopg://user:${PASSWORD}@host/lake`.",
    )
    warehouse: Annotated[str | None, Reach("options")] = Field(
        default=None,
        min_length=1,
        description="Location of new tables: a directory as `file:///…`, a location in an object store such "
        "as `s3://…`, or the warehouse name of the server.",
    )
    name: str = Field(
        default="default",
        min_length=1,
        json_schema_extra=only_with(type=["sql"]),
        description="Name of the catalog in the database, which may have several.",
    )
    options: ClientOptions = Field(
        default_factory=dict,
        description="Additional properties of the PyIceberg catalog and its storage, such as `credential`, "
        "`token` or `s3.endpoint`.",
    )


class IcebergEnd(Component):
    """The catalog and the name of an Iceberg table."""

    catalog: CatalogSpec = Field(description="The catalog of the table.")
    table: str = Field(description="Name of the table with its namespace, such as `sales.orders`.")

    @field_validator("table")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(
                f"'{value}' is not a valid table name: use namespace.table, such as sales.orders"
            )
        return value

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the catalog in the form that the library expects; some are secret."""
        chosen = {"type": self.catalog.type, "uri": self.catalog.uri}
        if self.catalog.warehouse is not None:
            chosen["warehouse"] = self.catalog.warehouse
        return {**self.catalog.options, **chosen, "name": self.catalog.name}

    @property
    def namespace(self) -> str:
        """The namespace of the table."""
        return self.table.rpartition(".")[0]

    def connected(self) -> Catalog:
        """A connection to the catalog."""
        return connected(self.properties)

    def probed(self, *, must_exist: bool) -> tuple[Table | None, Probe]:
        """The table, if there is one, and the result of a connection test."""
        found = ADDRESS.match(self.catalog.uri) if self.catalog.type == "rest" else None
        if found is not None:
            port = found[2] or ("443" if self.catalog.uri.startswith("https") else "80")
            if problems := unreachable([f"{found[1]}:{port}"], "catalog.uri"):
                return None, Probe(problems=problems)
        try:
            catalog = self.connected()
            with explained(self.properties):
                return self._probed(catalog, must_exist=must_exist)
        except PenstockError as error:
            return None, Probe(problems=error.problems)

    def _probed(self, catalog: Catalog, *, must_exist: bool) -> tuple[Table | None, Probe]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        try:
            names = [".".join(name) for name in catalog.list_tables(self.namespace)][:OFFERED]
        except NoSuchNamespaceError:
            names = []
        if self.table in names or catalog.table_exists(self.table):
            table = catalog.load_table(self.table)
            columns = [f"{field.name} {field.type}" for field in schema_of(table)]
            return table, Probe(offers={"tables": names, "columns": columns})
        problems = [not_found(self.table, names)] if must_exist else []
        return None, Probe(problems=problems, offers={"tables": names})


def connected(properties: dict[str, str]) -> Catalog:
    """A connection to the catalog with these properties."""
    library()
    from pyiceberg.catalog import load_catalog

    with explained(properties):
        return load_catalog(**properties)


def library() -> None:
    """Raises `Invalid` if the library for Iceberg tables is not installed."""
    try:
        import pyiceberg  # noqa: F401
    except ImportError:
        message = "the library for Iceberg tables is not installed"
        hint = "run pip install 'penstock[iceberg]' where the flow runs"
        raise Invalid(Problem(code="library_missing", message=message, path="type", hint=hint)) from None


def schema_of(table: Table) -> pa.Schema:
    """The columns of a table as an Arrow schema, with the types that Spark uses."""
    import pyarrow as pa

    return pa.schema([_plain(field) for field in table.schema().as_arrow()])


def _plain(field: pa.Field) -> pa.Field:
    import pyarrow as pa
    from pyarrow import types as is_

    kind = field.type
    if is_.is_large_string(kind):
        kind = pa.string()
    elif is_.is_large_binary(kind):
        kind = pa.binary()
    elif is_.is_large_list(kind) or is_.is_list(kind):
        kind = pa.list_(_plain(kind.value_field))
    elif is_.is_map(kind):
        kind = pa.map_(_plain(kind.key_field).type, _plain(kind.item_field))
    elif is_.is_struct(kind):
        kind = pa.struct([_plain(each) for each in kind])
    return pa.field(field.name, kind, field.nullable)


def not_found(name: str, names: list[str]) -> Problem:
    """The problem for a table that doesn't exist and must not be created."""
    hint = did_you_mean(name, names) if names else "check the namespace and the name"
    return Problem(
        code="table_not_found", message=f"there is no Iceberg table '{name}'", path="table", hint=hint
    )


@contextlib.contextmanager
def explained(properties: dict[str, str]) -> Iterator[None]:
    """Raise the library's errors as Penstock errors; `Invalid` if a retry can't help."""
    from pyiceberg.exceptions import (
        BadRequestError,
        CommitFailedException,
        ForbiddenError,
        NoSuchNamespaceError,
        NoSuchTableError,
        NotInstalledError,
        OAuthError,
        UnauthorizedError,
        ValidationError,
    )

    def problem(code: str, error: Exception, path: str, hint: str) -> Problem:
        return Problem(code=code, message=_text(error, properties), path=path, hint=hint)

    try:
        yield
    except (PenstockError, Retryable, Fatal, CommitFailedException):
        raise
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        hint = "check the namespace and the name"
        raise Invalid(problem("table_not_found", error, "table", hint)) from None
    except (UnauthorizedError, ForbiddenError, OAuthError) as error:
        hint = "check 'credential' or 'token' among the catalog's options, and the user's rights"
        raise Invalid(problem("catalog_login", error, "catalog.options", hint)) from None
    except NotInstalledError as error:
        hint = "install the extra of PyIceberg that the message names, where the flow runs"
        raise Invalid(problem("library_missing", error, "catalog.type", hint)) from None
    except (BadRequestError, ValidationError, ValueError, NotImplementedError) as error:
        hint = "check the catalog's properties and the columns of the table"
        raise Invalid(problem("unsupported_table", error, "table", hint)) from None
    except Exception as error:  # of requests, SQLAlchemy and file systems
        hint = "check the catalog's URI and options, and that it is reachable from the worker"
        raise Unavailable(problem("catalog_failed", error, "catalog.uri", hint)) from None


def _text(error: Exception, properties: dict[str, Any]) -> str:
    """The message of an error on one line, without the values of secret properties."""
    lines = str(error).split("(Background on this error")[0].splitlines() or ["no response"]
    text = PASSWORD.sub("***@", CLASS.sub("", " ".join(lines[:2]))).strip()
    for name, value in properties.items():
        if name not in ("name", "type", "uri", "warehouse") and len(value) > 3:
            text = text.replace(value, "***")
    return text[:300]
