"""Rows of a database as Arrow columns of a source's schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from penstock.connectors.sql.types import Kind, kind_of

if TYPE_CHECKING:
    import pyarrow as pa


class Unfit(Exception):
    """A database value that its column in the schema can't hold."""

    def __init__(self, column: str, value: object, wanted: str) -> None:
        super().__init__(f"'{column}' has the value {str(value)[:100]!r}, which is not a valid {wanted}")


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a table, in their order, converted losslessly to the columns of a schema."""
    import pyarrow as pa

    columns = [
        _converted(column.combine_chunks(), field)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def from_rows(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows of a Python database client as columns of a schema."""
    import pyarrow as pa

    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    columns = [_column(each, field) for each, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _converted(array: pa.Array, field: pa.Field) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types as is_

    from penstock.streams.casting import convert

    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if is_.is_decimal(field.type) and is_.is_string(array.type):  # the driver reads NUMERIC as text
        return _column(array.to_pylist(), field)
    made, lost = convert(array, field.type)
    if lost is not None and pc.any(lost).as_py():
        value = array.filter(lost)[0].as_py()
        raise Unfit(field.name, value, str(field.type))
    return made


def _column(values: Sequence[Any], field: pa.Field) -> pa.Array:
    import pyarrow as pa

    change = CHANGES.get(kind_of(field.type))
    try:
        if change is not None:
            values = [None if value is None else change(value) for value in values]
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError, InvalidOperation, OverflowError):
        for value in values:
            try:
                pa.array([value if change is None or value is None else change(value)], field.type)
            except (pa.ArrowException, ValueError, TypeError, InvalidOperation, OverflowError):
                raise Unfit(field.name, value, str(field.type)) from None
        raise


def _boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _decimal(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(value))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else str(value)


def _date(value: Any) -> date:
    return date.fromisoformat(value) if isinstance(value, str) else value


def _local(value: Any) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise ValueError(value)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _instant(value: Any) -> datetime:
    """A point in time; without a time zone it is UTC, as the connection is configured."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise ValueError(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


CHANGES: dict[Kind, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "decimal": _decimal,
    "text": _text,
    "date": _date,
    "timestamp": _local,
    "timestamptz": _instant,
}
"""Conversions of a client's values to the types that Arrow accepts, by kind."""
