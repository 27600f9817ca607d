"""SQL queries over streams: read-only, limited in rows and time, run alongside the flows of a worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from penstock.engine.runtime.limits import limited
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.spark.driver import java_errors
from penstock.spark.tables import table_of
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

AT_ONCE = 2
"""The maximum number of concurrent queries on a worker, so that its flows keep running."""

MOST_BYTES = 16 * 1024 * 1024
"""The maximum size of a result in bytes."""

SHOWN_AS_THEY_ARE = frozenset(
    {
        "array", "binary", "boolean", "byte", "date", "decimal", "double", "float", "integer", "long",
        "map", "short", "string", "struct", "timestamp", "timestamp_ntz", "void",
    }
)  # fmt: skip
"""Types that can be represented in Arrow and in JSON. Columns of other types are shown as text."""


class ColumnInfo(BaseModel):
    """A column of a query's result."""

    name: str
    type: str = Field(description="Spark type of the column.")


class QueryResult(BaseModel):
    """The result of a query."""

    columns: list[ColumnInfo]
    rows: list[list[Any]]
    truncated: bool = Field(description="Whether there are more rows.")
    ms: int = Field(description="Duration in milliseconds.")


class TookTooLong(PenstockError):
    """A query did not end within its timeout."""

    status = 408


class Cancelled(PenstockError):
    """A query was cancelled by a user."""

    status = 409

    def __init__(self) -> None:
        super().__init__(Problem(code="query_cancelled", message="the query was cancelled"))


class Queries:
    """Runs queries on the Spark of a worker."""

    def __init__(self, spark: SparkSession, streams: Callable[[], Mapping[str, StreamPlace]]) -> None:
        # A separate session: flows never see the tables of a query.
        self._spark, self._streams = spark.newSession(), streams
        self._places = threading.BoundedSemaphore(AT_ONCE)

    def run(self, sql: str, limit: int, timeout_s: float, stop: threading.Event | None = None) -> QueryResult:
        """The first `limit` rows of a query whose tables are streams, by id; `stop` cancels it."""
        from penstock.frames.streams.table import read_table
        from penstock.sql.tables import query_tables

        if not self._places.acquire(blocking=False):
            message = f"{AT_ONCE} queries are already running"
            raise Unavailable(Problem(code="busy", message=message, hint="try again in a moment"))
        try:
            began = time.monotonic()
            streams = self._streams()
            with self._limited(timeout_s, stop or threading.Event()):
                frame = query_tables(
                    self._spark, sql, streams, lambda id: read_table(self._spark, streams[id])
                )
                table = table_of(_renderable(frame).limit(limit + 1))
            columns = [ColumnInfo(name=f.name, type=f.dataType.simpleString()) for f in frame.schema.fields]
            kept = _fitting(table, limit)
            ms = round((time.monotonic() - began) * 1000)
            return QueryResult(columns=columns, rows=_rows(kept), truncated=len(kept) < len(table), ms=ms)
        finally:
            self._places.release()

    @contextmanager
    def _limited(self, timeout_s: float, stop: threading.Event) -> Iterator[None]:
        """Cancel a query after its timeout or by `stop`, and raise that instead of its failure."""
        with limited(self._spark, timeout_s, "query", stop) as over:
            try:
                yield
            except java_errors(PenstockError) as error:
                if over.is_set():
                    raise (Cancelled() if stop.is_set() else _too_long(timeout_s)) from None
                if isinstance(error, PenstockError):
                    raise
                raise _failed(error) from None


def _renderable(frame: DataFrame) -> DataFrame:
    """The frame with unique names, as a query may use a name twice, and with types that Arrow supports."""
    from pyspark.sql import functions as f

    named = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))

    def rendered(field: Any) -> Column:
        column = f.col(field.name)
        known = field.dataType.typeName().partition("(")[0] in SHOWN_AS_THEY_ARE
        return column if known else column.cast("string").alias(field.name)

    return named.select(*map(rendered, named.schema.fields))


def _fitting(table: pa.Table, limit: int) -> pa.Table:
    rows = min(len(table), limit)
    if table.nbytes > MOST_BYTES:
        rows = min(rows, max(1, len(table) * MOST_BYTES // table.nbytes))
    return table.slice(0, rows)


def _rows(table: pa.Table) -> list[list[Any]]:
    from penstock.streams.rendering import plain_values

    columns = [plain_values(column.combine_chunks()) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _too_long(timeout_s: float) -> TookTooLong:
    return TookTooLong(
        Problem(
            code="query_timeout",
            message=f"the query was stopped after {timeout_s:g} s",
            hint="allow more time, or read fewer events: WHERE _time > now() - INTERVAL 1 HOUR",
        )
    )


def _failed(error: Exception) -> PenstockError:
    """A data error, such as a division by zero, which only occurs when the query runs."""
    from penstock.sql.problems import told

    try:
        with told("sql", (), row_by_row=False):
            raise error
    except Invalid as problem:
        return problem
