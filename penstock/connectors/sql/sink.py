"""The `sql` sink: events as rows of a table in PostgreSQL, MySQL, MariaDB or SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from penstock.connectors.base import Guarantee, Sink, SinkWriter, Takes
from penstock.connectors.probe import Probe
from penstock.connectors.sql.client import TableEnd, table_text
from penstock.connectors.sql.target import Create
from penstock.errors import Problem, did_you_mean
from penstock.frames.hidden import EVENT, visible
from penstock.frames.site import Site
from penstock.specs.base import Spec
from penstock.specs.conditions import only_with

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

BESIDE = ("_key", "_headers")
"""Metadata columns of an event, which are not written."""


class Operation(Spec):
    """The column with the operation of an event: delete or upsert."""

    column: str = Field(min_length=1, description="Name of the column. It is not written to the table.")
    delete: list[str] = Field(
        default=["d", "delete"],
        min_length=1,
        description="Values that delete the row; all other values upsert it.",
    )


class SqlSink(TableEnd, Sink):
    """Writes events as rows of a table in PostgreSQL, MySQL, MariaDB or SQLite.

    Delivery is exactly-once: the rows of a batch are committed in one transaction together with the id of the
    batch in the table `penstock_deliveries`, and a batch whose id is in that table is not written again.

    Columns are matched by name; `_key` and `_headers` are not written. Values are never rounded or truncated:
    an event that the table rejects, because of a type, a length, NOT NULL, CHECK, a foreign key or a unique
    index, goes to the dead letters with the database's error message, and the other events of its batch are
    written. If a batch has several events with the same key, `upsert` and `sync` write the last one.
    """

    type: Literal["sql"] = "sql"
    mode: Literal["insert", "upsert", "sync"] = Field(
        default="insert",
        description="`insert` adds a row for each event. `upsert` replaces the row with the same `key`. "
        "`sync` does the same, and deletes the row if `op` says so.",
    )
    key: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Columns that identify a row. The table needs a unique index on them.",
        json_schema_extra=only_with(mode=["upsert", "sync"]),
    )
    op: Operation | None = Field(
        default=None, description="Column that marks deletes.", json_schema_extra=only_with(mode=["sync"])
    )
    create: Create = Field(
        default="never",
        description="`if_missing` creates the table from the columns of the events, `evolve` also adds "
        "columns that the table does not have.",
    )
    deliveries: str = Field(
        default="penstock_deliveries",
        min_length=1,
        description="Table that records delivered batches; in the schema of `table` by default. It is "
        "created if missing.",
    )

    guarantee: ClassVar[Guarantee] = "exactly-once"
    tested: ClassVar = "PostgreSQL 15, MariaDB 10.11 and SQLite 3.40"
    meta: ClassVar = True
    takes: ClassVar[Takes] = "table"
    example: ClassVar = """\
type: sql
url: postgresql://penstock@db.example/shop
password: ${PG_PASSWORD}
table: sales.orders
mode: upsert
key: [id]
"""

    @field_validator("deliveries")
    @classmethod
    def _is_a_table_too(cls, value: str) -> str:
        return table_text(value)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.key is not None) != (self.mode != "insert"):
            needs = "needs a 'key'" if self.key is None else "can't have a 'key'"
            raise ValueError(f"mode '{self.mode}' {needs}")
        if self.key is not None and len(set(self.key)) != len(self.key):
            raise ValueError("'key' has a duplicate column")
        if (self.op is not None) != (self.mode == "sync"):
            needs = "needs an 'op'" if self.op is None else "can't have an 'op'"
            raise ValueError(f"mode '{self.mode}' {needs}")
        if self.op is not None and self.op.column in (self.key or ()):
            raise ValueError("the column of 'op' is not written, so it can't be part of 'key'")
        return self

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        from pyspark.sql import functions as f

        from penstock.connectors.sql.types import is_nested
        from penstock.sql.names import quote

        def column(name: str) -> Column:
            kind = df.schema[name].dataType
            return _as_json(df.schema, name) if is_nested(kind) else f.col(quote(name))

        names = [name for name in visible(df.columns) if name not in BESIDE]
        hidden = [f.col(quote(EVENT))] if EVENT in df.columns else []
        return df.select(*(column(name) for name in names), *hidden)

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        from penstock.connectors.sql.types import has_no_column, is_nested

        names = [name for name in visible(schema.names) if name not in BESIDE]
        for i, name in enumerate(self.key or ()):
            if name not in names:
                yield _missing(name, names, f"key[{i}]")
            elif is_nested(schema[name].dataType):
                message = (
                    f"'{name}' is a {schema[name].dataType.simpleString()}, which can't be part of a key"
                )
                hint = "extract a field in a processor"
                yield Problem(code="wrong_type", message=message, path=f"key[{i}]", hint=hint)
        if self.op is not None:
            if self.op.column not in names:
                yield _missing(self.op.column, names, "op.column")
            elif schema[self.op.column].dataType.typeName() not in ("string", "char", "varchar"):
                message = f"'{self.op.column}' must be a STRING"
                hint = "cast it in a processor"
                yield Problem(code="wrong_type", message=message, path="op.column", hint=hint)
        own = [name for name in names if self.op is None or name != self.op.column]
        if not own:
            yield Problem(code="no_columns", message="no columns remain for the table", path="table")
        for name in own:
            if has_no_column(schema[name].dataType):
                message = f"a table can't hold '{name}', a {schema[name].dataType.simpleString()}"
                hint = "cast it to STRING, or drop it"
                yield Problem(code="unsupported_type", message=message, path="table", hint=hint)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.connectors.sql.check import probe_sink

        return probe_sink(self)

    def open(self, site: Site) -> SinkWriter:
        from penstock.connectors.sql.writer import SqlWriter

        return SqlWriter(self)


def _as_json(schema: StructType, name: str) -> Column:
    """A nested column as a struct with one JSON text, so that the writer can tell it from plain text."""
    from pyspark.sql import functions as f

    from penstock.connectors.file.form import WRITE, columns_in_form
    from penstock.connectors.sql.types import JSON
    from penstock.sql.names import quote

    value = f.col(quote(name))
    if schema[name].dataType.typeName() == "variant":
        text = f.to_json(value)
    else:
        (formed,) = columns_in_form([schema[name]], "json")
        text = f.to_json(formed, WRITE["json"])
    return f.struct(text.alias(JSON)).alias(name)


def _missing(name: str, names: list[str], path: str) -> Problem:
    message = f"the events have no column '{name}'"
    return Problem(code="unknown_column", message=message, path=path, hint=did_you_mean(name, names))
