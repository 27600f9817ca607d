"""Types of events and of table columns: which column can hold which events, and which values would change.

A value is never rounded, truncated or guessed: a column that can't hold any value of an event's type is an
error of the pipeline, and a single value that the column can't hold is a dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType

Kind = Literal[
    "boolean", "integer", "float", "double", "decimal", "text", "binary", "date", "timestamp", "timestamptz",
    "json", "other", "any",
]  # fmt: skip
"""`timestamptz` is an instant and `timestamp` a local time. `other` is a database type that parses its
values from text, such as UUID, and `any` is a type that holds all values, as in SQLite."""

JSON = "$json"
"""The only field of a struct that holds a nested value as JSON text."""

HOLDS: Mapping[Kind, frozenset[Kind]] = {
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer", "decimal", "double"}),
    "float": frozenset({"float", "double"}),
    "double": frozenset({"double"}),
    "decimal": frozenset({"decimal", "integer"}),
    "text": frozenset({"text", "json", "other"}),
    "binary": frozenset({"binary"}),
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp", "timestamptz"}),
    "timestamptz": frozenset({"timestamp", "timestamptz"}),
    "json": frozenset({"json", "text"}),
}
"""The kind of an event's column → the kinds of a table's column that can hold it."""

EXACT_INTEGER = 2**53
"""The largest integer up to which a double represents every integer exactly."""

MICROS = 6
"""Fractional digits of the seconds of an event's timestamp."""

NO_COLUMN = ("void", "interval", "time(", "object", "geometry", "geography")
"""Prefixes of the names of Spark types that no database has a column for."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    """The database's name of the type."""
    kind: Kind
    precision: int | None = None
    """Digits of a decimal, or of the fraction of a second; None: unlimited, or full precision."""
    scale: int | None = None
    """Digits of a decimal after the point."""
    nullable: bool = True
    filled: bool = False
    """Whether the database provides a value if the event has none: a default, an identity."""
    generated: bool = False
    """Whether only the database can set the value."""
    code: int = 0
    """The OID of the type, in PostgreSQL."""
    base: str = ""
    """The type without its length, in PostgreSQL."""

    def named(self, name: str) -> Column:
        """The same column with another name."""
        return replace(self, name=name)


def is_json(kind: pa.DataType) -> bool:
    """Whether an event column contains nested values as JSON text."""
    from pyarrow import types as is_

    return bool(is_.is_struct(kind) and kind.num_fields == 1 and kind.field(0).name == JSON)


def kind_of(kind: pa.DataType) -> Kind:
    """The kind of an event's column."""
    from pyarrow import types as is_

    tests: list[tuple[bool, Kind]] = [
        (is_.is_boolean(kind), "boolean"),
        (is_.is_integer(kind), "integer"),
        (is_.is_float32(kind), "float"),
        (is_.is_float64(kind), "double"),
        (is_.is_decimal(kind), "decimal"),
        (is_.is_string(kind) or is_.is_large_string(kind), "text"),
        (is_.is_binary(kind) or is_.is_large_binary(kind), "binary"),
        (is_.is_date(kind), "date"),
        (is_.is_timestamp(kind) and kind.tz is None, "timestamp"),
        (is_.is_timestamp(kind) and kind.tz is not None, "timestamptz"),
        (is_json(kind), "json"),
    ]
    return next((found for fits, found in tests if fits), "other")


def is_nested(kind: DataType) -> bool:
    """Whether values of a Spark type are written as JSON."""
    return kind.typeName() in ("array", "map", "struct", "variant")


def has_no_column(kind: DataType) -> bool:
    """Whether no database has a column for a Spark type."""
    from penstock.connectors.file.sink import has_no_form

    if is_nested(kind):
        return kind.typeName() != "variant" and has_no_form(kind, "json")
    return kind.simpleString().startswith(NO_COLUMN)


def changed(values: pa.Array, column: Column) -> pa.Array | None:
    """A mask of the values that the column would store as a different value; None if there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = kind_of(values.type)
    if kind == "integer" and column.kind == "double" and values.type.bit_width == 64:
        # Compared from both sides: the smallest integer has no absolute value.
        return pc.or_(pc.greater(values, EXACT_INTEGER), pc.less(values, -EXACT_INTEGER))
    if kind == "decimal" and column.kind in ("decimal", "integer"):
        scale = column.scale if column.kind == "decimal" else 0
        if scale is None or values.type.scale <= scale:
            return None
        return pc.not_equal(pc.round(values, ndigits=scale), values)
    if kind in ("timestamp", "timestamptz") and column.kind in ("timestamp", "timestamptz"):
        if column.precision is None or column.precision >= MICROS:
            return None
        micros = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        unit = 10 ** (MICROS - column.precision)
        return pc.not_equal(pc.multiply(pc.divide(micros, unit), unit), micros)
    return None
