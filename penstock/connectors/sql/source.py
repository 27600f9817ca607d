"""The `sql` source: rows of a table or query in PostgreSQL, MySQL, MariaDB or SQLite."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from penstock.connectors.base import SourceGuarantee
from penstock.connectors.probe import Probe
from penstock.connectors.received import ReceivedSource, Receiver
from penstock.connectors.sql.client import SqlEnd, table_text
from penstock.errors import Invalid, Problem, Unavailable
from penstock.frames.site import Site
from penstock.specs.conditions import only_with
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SqlSource(SqlEnd, ReceivedSource):
    """Reads the rows of a table, or of a query, in PostgreSQL, MySQL, MariaDB or SQLite.

    With `mode: incremental`, the source polls for rows whose `column`, an increasing number or time, is
    greater than in the last row. Changed or deleted rows are captured only if the column increases with the
    change; to capture every change, read the database's log instead. `mode: snapshot` reads all rows once, in
    the order of the key, and then the pipeline ends as `completed`.

    Each row is read exactly once: the column and the key of the last row are stored with the rows in the
    pipeline's input stream, and after a crash the source resumes right after that row. The exception is a row
    that becomes visible more than `lag_ms` after a row with a greater value of `column`: it is not read.
    """

    type: Literal["sql"] = "sql"
    table: str | None = Field(
        default=None,
        min_length=1,
        description="The table or view, with its schema if it is not the default one: `sales.orders`.",
    )
    query: str | None = Field(default=None, min_length=1, description="Instead of `table`: a SELECT.")
    mode: Literal["incremental", "snapshot"] = Field(
        default="incremental",
        description="`incremental` keeps reading new rows; `snapshot` reads all rows once and completes.",
    )
    column: str | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=only_with(mode=["incremental"]),
        description="A column that increases with each new row, such as an id or the time of "
        "the last change. It should be indexed. Rows with NULL in this column are not read.",
    )
    key: list[str] | None = Field(
        default=None,
        description="Columns that distinguish rows with the same value of `column`. Absent: the primary key "
        "of the table. A `query` needs it; `[]` says that `column` is unique.",
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns to read, as Spark DDL; absent: all, with types inferred and pinned.",
    )
    poll_ms: int = Field(
        default=1000,
        ge=10,
        json_schema_extra=only_with(mode=["incremental"]),
        description="Interval between queries for new rows, if the last query returned "
        "less than a full page.",
    )
    page: int = Field(default=10_000, ge=1, le=1_000_000, description="Maximum number of rows per query.")
    lag_ms: int = Field(
        default=1000,
        ge=0,
        json_schema_extra=only_with(mode=["incremental"]),
        description="How long to wait before new rows are read. Transactions may commit in a "
        "different order than they get ids or times; rows of a transaction that takes longer than this may "
        "be missed.",
    )

    guarantee: ClassVar[SourceGuarantee] = "exactly-once"
    tested: ClassVar = "PostgreSQL 15, MariaDB 10.11 and SQLite 3.40"
    example: ClassVar = """\
type: sql
url: postgresql://penstock@db.example/shop
password: ${PG_PASSWORD}
table: sales.orders
column: updated_at
"""

    @field_validator("table")
    @classmethod
    def _is_a_table(cls, value: str | None) -> str | None:
        return None if value is None else table_text(value)

    @field_validator("query")
    @classmethod
    def _is_one_query(cls, value: str | None) -> str | None:
        return None if value is None else value.strip().rstrip(";")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("set either 'table' or 'query'")
        if (self.column is not None) != (self.mode == "incremental"):
            needs = "needs a 'column'" if self.column is None else "can't have a 'column'"
            raise ValueError(f"mode '{self.mode}' {needs}")
        if self.query is not None and self.key is None:
            raise ValueError("a 'query' needs a 'key'; `key: []` if its column is unique")
        if self.mode == "snapshot" and self.key == []:
            raise ValueError("mode 'snapshot' needs a 'key' that is not empty")
        given = self.model_fields_set & {"poll_ms", "lag_ms"}
        if self.mode == "snapshot" and given:
            names = ", ".join(f"'{name}'" for name in sorted(given))
            raise ValueError(f"{names} can't be used with mode 'snapshot'")
        return self

    @classmethod
    def input_schema(cls, spec: Mapping[str, Any]) -> str | None:
        schema = spec.get("schema")
        return schema if isinstance(schema, str) else None

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.schema_ is not None:
            parse_schema(spark, self.schema_, field="schema")
            return self
        try:
            return self.model_copy(update={"schema_": self.inferred()})
        except Unavailable as error:
            (problem, *_) = error.problems
            hint = f"{problem.hint}; or declare the columns in 'schema'"
            message = f"the columns can't be inferred: {problem.message}"
            raise Invalid(
                Problem(code="schema_unknown", message=message, path=problem.path, hint=hint)
            ) from None

    def inferred(self) -> str:
        """The columns of the table or query, as Spark DDL."""
        from penstock.connectors.sql.database import connect
        from penstock.connectors.sql.reading import in_query, layout_of

        with contextlib.closing(connect(self.place, self.connect_timeout_s)) as database:
            try:
                columns = layout_of(database, self).columns
            except database.errors as error:
                raise in_query(database.explained(error), self) from None
            return ", ".join(f"{quote(each.name)} {database.spark_type(each)}" for each in columns)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.connectors.sql.check import probe_source

        return probe_source(self)

    def receiver(self, site: Site) -> Receiver:
        from penstock.connectors.sql.reading import SqlReceiver
        from penstock.streams.schema import arrow_schema

        return SqlReceiver(self, arrow_schema(self.schema_ or self.inferred()))
