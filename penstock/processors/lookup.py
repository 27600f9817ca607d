"""The `lookup` step."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from cachetools import LRUCache
from pydantic import Field, PrivateAttr, model_validator

from penstock.errors import Invalid, Problem
from penstock.frames.columns import (
    as_arrow,
    as_one,
    as_struct,
    declared,
    found,
    index_of,
    joined,
    put_together,
    shown,
    without_rows,
)
from penstock.processors.base import BadEvent, BatchProcessor, Desk, Outcome, Refused, Stage, Work
from penstock.processors.tables.database import DatabaseTable
from penstock.processors.tables.file import FileTable
from penstock.processors.tables.fit import given_table
from penstock.processors.tables.snapshots import Snapshot, Table, Wanted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

Current = Callable[[], tuple[Snapshot, list[str]]]
"""Returns the current snapshot of the table, and lines for the log."""

_TABLES: LRUCache[tuple[str, str], Table] = LRUCache(64)
"""The tables by flow and step, reused across tasks in each Python process of Spark."""


class LookupProcessor(BatchProcessor):
    """Adds columns of a table to each event, from the row with the same key.

    The table is a file, or a table or query of a database. Each Python process of Spark holds it in memory,
    so `max_rows` limits its size. It is read when the pipeline starts and then again every `refresh_ms`, a
    file only if it has changed; a database is read once for all tasks of a machine. If the table can't be
    reloaded, the old one stays in use, with a line in the log. If several rows have the same key, the last
    one is used; NULL never matches.

    In a test run a file is read as usual; the rows of a database are given, as a list of objects.
    """

    network: ClassVar[bool] = True
    example: ClassVar[str] = """\
type: lookup
file: {path: data/countries.csv}
on: {country: code}
columns: name STRING, continent STRING
into: country_info
refresh_ms: 60000
"""

    type: Literal["lookup"] = "lookup"
    file: FileTable | None = Field(default=None, description="Table in a file.")
    database: DatabaseTable | None = Field(default=None, description="Table in a database.")
    on: dict[str, str] = Field(min_length=1, description="Column of the event → column of the table.")
    columns: str = Field(min_length=1, description="Columns of the table to add to events, as Spark DDL.")
    into: str | None = Field(
        default=None,
        min_length=1,
        description="Name of a struct for these columns; NULL without a matching row.",
    )
    missing: Literal["null", "drop", "dead_letter"] = Field(
        default="null", description="What happens to an event without a row in the table."
    )
    refresh_ms: int | None = Field(
        default=None, ge=100, description="Reload the table after this time. Default: never."
    )
    max_rows: int = Field(
        default=1_000_000, ge=1, description="Maximum number of rows; a larger table fails the pipeline."
    )

    _keys: pa.Schema = PrivateAttr(default=None)
    _state: Path | None = PrivateAttr(default=None)
    _planned: float = PrivateAttr(default=0.0)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.file is None) == (self.database is None):
            raise ValueError("set either 'file' or 'database'")
        return self

    def asks(self) -> bool:
        return self.database is not None

    def task_paths(self) -> Iterable[tuple[str, str]]:
        return [] if self.file is None else [("file.path", str(Path(self.file.path).expanduser()))]

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The columns of the event and those of the table."""
        self._state, self._planned = stage.site.state, time.time()
        self._keys = self._key_columns(schema)
        self._check_source(stage)
        added = as_struct(self._columns())
        if self.into is not None:
            added = type(schema)().add(self.into, added)
        return joined(schema.fields, added, "into" if self.into else "columns", "use a struct: set 'into'")

    def open(self, desk: Desk) -> Work:
        """The function that joins batches with the current table."""
        import pyarrow as pa

        mocked = desk.testing and (self.database is not None or desk.given is not None)
        current = self._given(desk.given) if mocked else self._table(desk).current
        added = self._columns().names

        def work(batch: pa.RecordBatch) -> Outcome:
            snapshot, logs = current()
            names = batch.schema.names
            keys = [batch.column(index_of(names, name)) for name in self.on]
            places = snapshot.places(keys)
            rows = snapshot.rows.select(added)
            rows = as_one(rows, self.into) if self.into is not None else rows
            bad = [] if self.missing == "null" else [i for i, place in enumerate(places) if place is None]
            made = rows.take(
                pa.array([p for i, p in enumerate(places) if p is not None or not bad], pa.int64())
            )
            kept = without_rows(batch, set(bad))
            faults = [BadEvent(i, "not_found", self._told(keys, i)) for i in bad]
            out = put_together(kept, shown(kept), _nullable(made))
            return Outcome(out, faults if self.missing == "dead_letter" else [], logs)

        return work

    def _columns(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([field.with_nullable(True) for field in declared(self.columns, "columns")])

    def _wanted(self) -> pa.Schema:
        """The columns to read from the table: those to add to events, and the keys with the events' types."""
        import pyarrow as pa

        columns = self._columns()
        return pa.schema([*(f for f in columns if f.name not in self._keys.names), *self._keys])

    def _key_columns(self, schema: StructType) -> pa.Schema:
        """The key columns of the table, with the types of the events' columns."""
        import pyarrow as pa

        added = {field.name: field.type for field in self._columns()}
        fields = []
        for ours, theirs in self.on.items():
            kind = as_arrow(type(schema)([found(schema, ours, f"on.{ours}")])).field(0).type
            if pa.types.is_nested(kind):
                message = f"column '{ours}' is {kind}, which can't be a key"
                raise Invalid(Problem(code="sql_type", message=message, path=f"on.{ours}"))
            if added.get(theirs, kind) != kind:
                message = (
                    f"column '{theirs}' is a key of the table, so it must have the type of '{ours}': {kind}"
                )
                raise Invalid(Problem(code="sql_type", message=message, path="columns"))
            fields.append(pa.field(theirs, kind))
        return pa.schema(fields)

    def _check_source(self, stage: Stage) -> None:
        if self.database is not None:
            self.database.check()
        elif self.file is not None and self.file.kind is None:
            message = f"can't detect the format of {self.file.path} from its name"
            hint = "add format: csv, json or parquet"
            raise Invalid(Problem(code="missing_field", message=message, path="file.format", hint=hint))
        elif self.file is not None and not Path(self.file.path).expanduser().is_file():
            message = f"there is no file {self.file.path}"
            raise Invalid(Problem(code="unreadable_file", message=message, path="file.path"))

    def _given(self, rows: Any) -> Current:
        def current() -> tuple[Snapshot, list[str]]:
            if not isinstance(rows, list):
                raise Refused("no_answer", "the test doesn't define which rows the table has")
            return Snapshot(given_table(rows, self._wanted()), tuple(self.on.values())), []

        return current

    def _table(self, desk: Desk) -> Table:
        name = hashlib.sha256(desk.step.encode()).hexdigest()[:16]  # a step may have any name
        source = self.file or self.database
        assert source is not None
        wanted = Wanted(
            source,
            self._wanted(),
            tuple(self.on.values()),
            self.max_rows,
            self.refresh_ms / 1000 if self.refresh_ms is not None else None,
            self._planned,
            self._shared() / name if self._state and self.database else None,
            desk.policy,
        )
        table = _TABLES.get((desk.flow, desk.step))
        if table is None or table.wanted != wanted:
            table = _TABLES[desk.flow, desk.step] = Table(wanted)
        return table

    def _shared(self) -> Path:
        """The directory in which tasks of this machine share tables: the flow's, if it is on this machine."""
        assert self._state is not None
        if self._state.is_dir():
            return self._state / "lookups"
        flow = hashlib.sha256(str(self._state).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"penstock-lookups-{flow}"

    def _told(self, keys: list[pa.Array], row: int) -> str:
        from penstock.streams.decode.results import shown as quoted

        values = (
            f"{name} = {quoted(key[row].as_py())}" for name, key in zip(self.on.values(), keys, strict=True)
        )
        return f"the table has no row with {', '.join(values)}"


def _nullable(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    schema = pa.schema([field.with_nullable(True) for field in batch.schema])
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
