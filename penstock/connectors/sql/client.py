"""Shared parts of the SQL source and sink: the address of a database, the login and the name of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.specs.base import Component
from penstock.specs.reach import DatabaseUrl

Engine = Literal["postgresql", "mysql", "sqlite"]

SCHEMES: dict[str, Engine] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
}
PORTS = {"postgresql": 5432, "mysql": 3306}

TABLE = r"[^.\s\x00]+(\.[^.\s\x00]+)?"
"""A table name, optionally with its schema."""


@dataclass(frozen=True)
class Place:
    """The address, name and login of a database."""

    engine: Engine
    database: str
    """The name of the database; for SQLite, the path of its file."""
    host: str = ""
    port: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict)
    """The options after the `?` of the URL."""

    @property
    def address(self) -> str:
        """The address of the database, without the login."""
        if self.engine == "sqlite":
            return self.database
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def safe(self, text: str) -> str:
        """A text from the database with the password masked."""
        return text.replace(self.password, "***") if self.password else text


@dataclass(frozen=True)
class TableName:
    """The name of a table; without a schema, the default schema of the connection applies."""

    schema: str | None
    name: str

    @classmethod
    def of(cls, text: str) -> TableName:
        """The name in `table` or `schema.table`."""
        schema, _, name = text.rpartition(".")
        return cls(schema or None, name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name

    def beside(self, name: str) -> TableName:
        """Another table, in the same schema unless `name` includes one."""
        other = TableName.of(name)
        return other if other.schema else TableName(self.schema, other.name)


def place_of(url: str, password: str | None = None) -> Place:
    """The database of a URL; raises `ValueError` with the reason if the URL is invalid."""
    scheme, separator, _ = url.partition("://")
    engine = SCHEMES.get(scheme.partition("+")[0].lower())
    if not separator or engine is None:
        raise ValueError("must begin with postgresql://, mysql://, mariadb:// or sqlite://")
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if engine == "sqlite":
        path = unquote(parts.path)
        if parts.netloc or len(path) < 2 or ":memory:" in path:
            raise ValueError("use a file: sqlite:///relative/path.db or sqlite:////absolute/path.db")
        if options or password is not None:
            raise ValueError("SQLite files have no user, password or options")
        return Place(engine, path[1:])
    try:
        port = parts.port or PORTS[engine]
    except ValueError:
        raise ValueError("the port must be a number from 0 to 65535") from None
    database = unquote(parts.path.removeprefix("/"))
    if not parts.hostname or not database or "/" in database:
        raise ValueError(f"set a host and a database: {scheme}://user@host:{PORTS[engine]}/database")
    own = unquote(parts.password) if parts.password is not None else None
    if own is not None and password is not None:
        raise ValueError("the password is set both in 'url' and in 'password'")
    user = unquote(parts.username) if parts.username else None
    secret = own if password is None else password
    return Place(engine, database, parts.hostname, port, user, secret, options)


class SqlEnd(Component):
    """The address and login of a database."""

    url: DatabaseUrl = Field(
        min_length=1,
        description="Address of the database: `postgresql://user@host/database`, `mysql://…`, `mariadb://…` "
        "or `sqlite:///path`. Options of the client follow a `?`, such as `?sslmode=require`.",
    )
    password: str | None = Field(
        default=None,
        description="Password in plain text; in `url` it would need percent-encoding. Use `${NAME}` to read "
        "it from an environment variable.",
    )
    connect_timeout_ms: int = Field(
        default=10_000,
        ge=1000,
        le=300_000,
        description="Connection timeout; with SQLite, how long to wait for a locked file.",
    )

    @model_validator(mode="after")
    def _has_a_valid_url(self) -> Self:
        if "${" not in self.url:
            place_of(self.url, self.password)
        return self

    @property
    def place(self) -> Place:
        """The database."""
        return place_of(self.url, self.password)

    @property
    def connect_timeout_s(self) -> float:
        """The connection timeout in seconds."""
        return self.connect_timeout_ms / 1000


class TableEnd(SqlEnd):
    """A table of a database."""

    table: str = Field(
        min_length=1, description="The table, with its schema if it is not the default one: `sales.orders`."
    )

    @field_validator("table")
    @classmethod
    def _is_a_table(cls, value: str) -> str:
        return table_text(value)

    @property
    def table_name(self) -> TableName:
        """The table."""
        return TableName.of(self.table)


def table_text(value: str) -> str:
    """The text itself, if it can be the name of a table; else raises `ValueError`."""
    if not re.fullmatch(TABLE, value):
        raise ValueError("must be the name of a table, or schema.table")
    return value


def file_of(place: Place) -> Path:
    """The file of an SQLite database."""
    return Path(place.database)
