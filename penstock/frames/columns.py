"""Columns of Python steps: lookup by name, declaration as DDL, and assembly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from penstock.errors import Invalid, Problem
from penstock.frames.hidden import EVENT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType


def declared(ddl: str, path: str = "schema") -> pa.Schema:
    """The columns that a DDL declares; raises `Invalid` at `path` if the DDL is invalid."""
    import pyarrow as pa

    from penstock.streams.ddl import Parser

    try:
        return pa.schema(list(Parser(ddl).columns()))
    except Invalid as error:
        raise Invalid(*(p.model_copy(update={"path": path}) for p in error.problems)) from None


def as_struct(schema: pa.Schema) -> StructType:
    """An Arrow schema as a Spark schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def as_arrow(schema: StructType) -> pa.Schema:
    """A Spark schema as the Arrow schema that a Python step gets."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def index_of(names: Sequence[str], name: str) -> int:
    """The index of a column, or -1. An exact match takes precedence over one that differs only in case."""
    if name in names:
        return list(names).index(name)
    lower = [each.lower() for each in names]
    return lower.index(name.lower()) if name.lower() in lower else -1


def found(schema: StructType, name: str, path: str) -> StructField:
    """The column with a name; raises `Invalid` at `path` if there is none."""
    from penstock.sql.problems import unknown_column

    at = index_of(schema.names, name)
    if at < 0:
        raise Invalid(unknown_column(name, schema.names).model_copy(update={"path": path}))
    return schema.fields[at]


def joined(kept: Sequence[StructField], new: StructType, path: str, hint: str) -> StructType:
    """The kept columns, then the new ones; raises `Invalid` at `path` for duplicate names."""
    from pyspark.sql.types import StructType

    taken = {field.name.lower() for field in kept}
    problems = [
        Problem(code="duplicate_column", message=f"the column '{name}' already exists", path=path, hint=hint)
        for name in new.names
        if name.lower() in taken
    ]
    if problems:
        raise Invalid(*problems)
    return StructType([*kept, *new.fields])


def shown(batch: pa.RecordBatch, without: Collection[str] = ()) -> list[str]:
    """The visible columns of a batch."""
    return [name for name in batch.schema.names if name != EVENT and name not in without]


def without_rows(batch: pa.RecordBatch, rows: Collection[int]) -> pa.RecordBatch:
    """The batch without some of its rows."""
    import pyarrow as pa

    if not rows:
        return batch
    return batch.filter(pa.array([i not in rows for i in range(batch.num_rows)]))


def put_together(given: pa.RecordBatch, kept: Sequence[str], new: pa.RecordBatch) -> pa.RecordBatch:
    """Combine columns of the input, new columns and the hidden column; both batches have the same rows."""
    import pyarrow as pa

    fields = [*(given.schema.field(name) for name in kept), *new.schema, given.schema.field(EVENT)]
    arrays = [*(given.column(name) for name in kept), *new.columns, given.column(EVENT)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def as_one(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """The columns of a batch as one struct."""
    import pyarrow as pa

    array = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return pa.RecordBatch.from_arrays([array], names=[name])
