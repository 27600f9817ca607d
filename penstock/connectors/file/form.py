"""The representation of values in files, such that every reader gets back the values that were written.

| Type | json | csv | parquet, orc |
|---|---|---|---|
| TINYINT … BIGINT, BOOLEAN, STRING | as they are | as they are | as they are |
| FLOAT, DOUBLE | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` | the same, without quotes | as they are |
| DECIMAL | a number; with more than 15 digits, a string | a number | as they are |
| BINARY | a string in base64 | base64 | as they are |
| DATE | as 2026-01-31 | the same | as they are |
| TIMESTAMP, TIMESTAMP_NTZ | ISO 8601 with microseconds, TIMESTAMP in UTC | the same | parquet: as they are |
| ARRAY, STRUCT | arrays, objects with all fields | not held | as they are |
| MAP | an object; keys are written as text | not held | as they are |
| NULL | `null` | an empty field; the empty string is `""` | as it is |

`text` holds strings without line breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from penstock.sql.names import quote
from penstock.sql.rows import EXACT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, MapType, StructField

Format = Literal["json", "csv", "parquet", "text", "orc"]

EXACT_DIGITS = 15
"""Decimal digits that a double preserves."""

QUOTING = {
    "header": "true",
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
"""CSV by RFC 4180: a quote is doubled, and spaces and line breaks are part of a value."""

NULL = "\x00null\x00"
"""The text as which Spark's CSV reader reads an empty field, so that `""` is an empty string."""

ORDER = "$order"
"""The column with the modification time of a file in microseconds, by which its events are ordered."""

CORRUPT = "$corrupt"
"""The column in which Spark stores the text of a malformed record."""

READ: dict[str, dict[str, str]] = {"csv": {**QUOTING, "multiLine": "true", "nullValue": NULL}}
"""Options of Spark's reader."""

WRITE: dict[str, dict[str, str]] = {
    "json": {**EXACT, "ignoreNullFields": "false"},
    "csv": {**EXACT, **QUOTING},
    # Otherwise, readers that ignore Spark's footer read old dates in another calendar.
    "orc": {"orc.proleptic.gregorian": "true"},
}
"""Options of Spark's writer."""

NO_FORM = ("void", "interval")
"""Prefixes of the names of types that no reader but Spark would understand."""

NO_FORM_IN_ORC = (*NO_FORM, "timestamp")
"""The same for ORC: its library shifts a timestamp in the last second before 1970 by a second."""


UNHELD = {
    "csv": "the value is null, and a record with one empty field would be an empty line",
    "text": "the value is null or contains a line break",
}
"""By format: the values of a single column that the format can't hold."""


def in_form(df: DataFrame, file_format: Format) -> DataFrame:
    """The events with every value in the representation of the file format."""
    if file_format not in ("json", "csv"):
        return df
    return df.select(*columns_in_form(df.schema.fields, file_format))


def columns_in_form(fields: Sequence[StructField], file_format: Format) -> list[Column]:
    """Columns with every value in the representation of the file format."""
    from pyspark.sql import functions as f

    columns = []
    for field in fields:
        made = _shaped(f.col(quote(field.name)), field.dataType, file_format)
        columns.append(f.col(quote(field.name)) if made is None else made.alias(field.name))
    return columns


def unheld(names: Sequence[str], file_format: Format) -> Column | None:
    """A condition for events with these columns that the format can't hold; None: it holds all.

    A line break in a text would split it into two lines, and an empty record is an empty line, which readers
    skip.
    """
    from pyspark.sql import functions as f

    if len(names) != 1 or file_format not in UNHELD:
        return None
    value = f.col(quote(names[0]))
    return value.isNull() if file_format == "csv" else value.isNull() | value.rlike("[\r\n]")


def _shaped(value: Column, kind: DataType, file_format: Format) -> Column | None:
    """A value in the representation of the file format; None if it needs no conversion."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, BinaryType, DecimalType, MapType, StructType

    if isinstance(kind, DecimalType):
        wide = file_format == "json" and kind.precision > EXACT_DIGITS
        return value.cast("string") if wide else None
    if isinstance(kind, BinaryType):
        return f.base64(value) if file_format == "csv" else None  # for JSON, Spark does it
    if isinstance(kind, ArrayType):
        element = kind.elementType
        if _shaped(value, element, file_format) is None:
            return None
        return f.transform(value, lambda item: _or(_shaped(item, element, file_format), item))
    if isinstance(kind, StructType):
        made = [_shaped(value[field.name], field.dataType, file_format) for field in kind.fields]
        if not any(each is not None for each in made):
            return None
        fields = [
            _or(each, value[field.name]).alias(field.name)
            for each, field in zip(made, kind.fields, strict=True)
        ]
        return f.when(value.isNotNull(), f.struct(*fields))
    return _map(value, kind, file_format) if isinstance(kind, MapType) else None


def _map(value: Column, kind: MapType, file_format: Format) -> Column | None:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType

    made = None
    if not isinstance(kind.keyType, StringType):
        made = f.transform_keys(value, lambda key, _: _text(key, kind.keyType))
    if _shaped(value, kind.valueType, file_format) is not None:
        made = f.transform_values(
            _or(made, value), lambda _, item: _or(_shaped(item, kind.valueType, file_format), item)
        )
    return made


def _text(key: Column, kind: DataType) -> Column:
    """The key of a map as text; Spark would write dates and times as internal numbers."""
    from pyspark.sql import functions as f

    name = kind.typeName()
    if name == "binary":
        return f.base64(key)
    if name in ("timestamp", "timestamp_ntz"):
        return f.date_format(key, EXACT["timestampFormat" if name == "timestamp" else "timestampNTZFormat"])
    return key.cast("string")


def _or(made: Column | None, value: Column) -> Column:
    return value if made is None else made
