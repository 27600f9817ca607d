"""Checks of a table: its size, its columns and their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.frames.faults import Fault

if TYPE_CHECKING:
    import pyarrow as pa


def given_table(rows: Any, schema: pa.Schema) -> pa.RecordBatch:
    """The given rows of a test run, which are JSON objects."""
    from penstock.streams.decode.results import Mismatch
    from penstock.streams.decode.values import rows_of

    reader = rows_of(schema)
    try:
        return reader.batch([reader.row(row) for row in rows])
    except (Mismatch, TypeError) as error:
        raise Fault("lookup_table", f"the given rows don't match the columns: {error}") from None


def fitted(array: pa.Array, field: pa.Field) -> pa.Array:
    """A column of the table converted to the requested type; a lossy conversion is a fault."""
    from penstock.streams.casting import convert

    made, lost = convert(array, field.type)
    if lost is not None:
        raise Fault(
            "lookup_table",
            f"column '{field.name}' of the table is {array.type} and has values that are not valid "
            f"{field.type}",
        )
    return made


def check_rows(rows: int, most: int) -> None:
    """Reject a table that would not fit into memory."""
    if rows > most:
        message = f"the table has more than {most} rows, the limit of max_rows"
        raise Fault("lookup_too_large", message)


def check_names(names: Sequence[str], schema: pa.Schema) -> None:
    """Reject a table without a requested column."""
    missing = [name for name in schema.names if name not in names]
    if missing:
        there = ", ".join(names)
        raise Fault("lookup_table", f"the table has no column '{missing[0]}'; it has: {there}")
