"""The base of sinks for table formats: their fields, their checks, and the delivery of a batch."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.base import Delivered, DeliveryId, Events, Sink, SinkWriter, Takes
from penstock.errors import Problem, Retryable, did_you_mean
from penstock.frames.site import Site
from penstock.specs.base import Spec
from penstock.specs.conditions import only_with

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

FORBIDDEN = set(" ,;{}()\n\t=")
"""Characters that common readers reject in the name of a column."""

HELD = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "varchar",
    "char", "binary", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
"""Types that a table supports, in addition to arrays, maps and structs of them."""

INEXACT = ("float", "double", "array", "map", "struct", "variant")
"""Types of columns that can be neither a key nor a partition."""


class Op(Spec):
    """The column that determines whether an event upserts or deletes the row of its key. It is not stored."""

    column: str = Field(min_length=1, description="Name of the column.")
    delete: list[str] = Field(
        default=["d", "delete"],
        min_length=1,
        description="Values that delete the row; all others, and null, insert or update it.",
    )


class TableSink(Sink):
    """A sink that commits each batch to a table."""

    mode: Literal["append", "merge"] = Field(
        default="append",
        description="`append` adds a row for each event; `merge` updates the row with the same key or "
        "inserts it.",
    )
    key: list[str] = Field(
        default_factory=list,
        json_schema_extra=only_with(mode=["merge"]),
        description="Columns that identify a row. If a batch has several events with the same key, "
        "the last one wins.",
    )
    op: Op | None = Field(
        default=None, description="Column that marks deletes.", json_schema_extra=only_with(mode=["merge"])
    )
    partition_by: list[str] = Field(default_factory=list, description="Partition columns of a new table.")
    create: Literal["never", "if_missing", "evolve"] = Field(
        default="if_missing",
        description="`if_missing` creates the table with the first batch, `evolve` also adds columns that "
        "the table does not have.",
    )

    takes: ClassVar[Takes] = "table"

    @property
    def evolves(self) -> bool:
        """Whether new columns are added to the table."""
        return self.create == "evolve"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.mode == "merge" and not self.key:
            raise ValueError("mode 'merge' needs a 'key'")
        if self.mode == "append" and (self.key or self.op is not None):
            raise ValueError("'key' and 'op' are for mode 'merge'")
        if self.op is not None and self.op.column in (*self.key, *self.partition_by):
            raise ValueError(f"'{self.op.column}' is the column of 'op', which is not stored")
        return self

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        named = {"key": self.key, "partition_by": self.partition_by}
        paths = [(name, f"{field}[{i}]") for field, names in named.items() for i, name in enumerate(names)]
        paths += [(self.op.column, "op.column")] if self.op is not None else []
        for name, path in paths:
            if name not in schema.names:
                message, hint = f"there is no column '{name}'", did_you_mean(name, schema.names)
                yield Problem(code="unknown_column", message=message, path=path, hint=hint)
            elif schema[name].dataType.typeName() in INEXACT:
                message = (
                    f"'{name}' is a {schema[name].dataType.simpleString()}, which can't be compared exactly"
                )
                hint = "use a text, integer, decimal, date or timestamp column"
                yield Problem(code="unsupported_type", message=message, path=path, hint=hint)
        stored = [field for field in schema.fields if self.op is None or field.name != self.op.column]
        for field in stored:
            if FORBIDDEN & set(field.name):
                message = f"'{field.name}' is not a valid column name"
                hint = "rename it in a processor: names can't have spaces, commas, semicolons, braces or '='"
                yield Problem(code="column_name", message=message, hint=hint)
            if not is_held(field.dataType):
                message = f"the table can't hold '{field.name}', a {field.dataType.simpleString()}"
                yield Problem(code="unsupported_type", message=message, hint="cast it in a processor")
        if stored and all(field.name in self.partition_by for field in stored):
            message = "no columns remain for the files"
            yield Problem(code="no_columns", message=message, path="partition_by")


def is_held(kind: DataType) -> bool:
    """Whether a table can hold values of a type."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return is_held(kind.elementType)
    if isinstance(kind, MapType):
        return is_held(kind.keyType) and is_held(kind.valueType)
    if isinstance(kind, StructType):
        return all(is_held(field.dataType) for field in kind.fields)
    return kind.simpleString().partition("(")[0] in HELD


class TableWriter(SinkWriter):
    """Delivers batches from this process as Arrow tables, with one commit per batch."""

    def __init__(self, sink: TableSink) -> None:
        self.spec = sink
        self._cancelled = threading.Event()

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        table = events.table()
        if not table.num_rows:
            return Delivered(0)  # no commit: a retry would be empty again
        return self.deliver(table, owner_of(delivery), delivery.batch)

    @abstractmethod
    def deliver(self, events: pa.Table, owner: str, batch: int) -> Delivered:
        """Commit a batch unless the table has it. An `owner` numbers its batches, which arrive in order."""

    def cancel(self) -> None:
        self._cancelled.set()

    def about_to_commit(self) -> None:
        """Raises if the batch must no longer be committed."""
        if self._cancelled.is_set():
            raise Retryable("the run ended before the batch was committed")
        self.permitted()


def owner_of(delivery: DeliveryId) -> str:
    """The name under which a sink numbers its batches; a pipeline that starts over gets a new name."""
    return f"penstock/{delivery.pipeline}/{delivery.sink}/{delivery.lineage}"
