"""The kinds of columns: their Spark type, and their values in Arrow, in JSON and in results of SELECT.

Internally, a value is a plain Python object that is cheap to create: a date is a number of days, a time of
day is text, a timestamp is a number of microseconds, and a decimal is its unscaled integer.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY_US = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_DIGITS = 38
"""Maximum digits of a decimal in Spark; a MySQL DECIMAL may have 65."""

_WIDE = Context(prec=76)


@dataclass(frozen=True)
class Kind:
    """A kind of column. Two kinds with the same `ddl` have the same values."""

    ddl: str
    arrow: Callable[[Sequence[Any]], pa.Array]
    """Converts values, with None for NULL, to an Arrow array."""
    parse: Callable[[Any], Any]
    """Parses a value from the text or bytes that a SELECT returns."""
    plain: Callable[[Any], Any] | None = None
    """Converts a value to plain JSON; None if values already are plain JSON."""
    select: str = "{}"
    """The SELECT expression that returns the value without loss."""
    order: str = "{}"
    """An expression with the same sort order as the column, whose text is a literal for comparisons."""
    literal: str = "text"
    """The form of that literal: a `number`, `hex` digits or a `text` to be quoted."""


def day_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None for an invalid date, such as 0000-00-00."""
    try:
        return date(year, month, day).toordinal() - EPOCH_DAY
    except ValueError:
        return None


def _array(values: Sequence[Any], name: str) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, getattr(pa, name)())


def _dates(values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int32()).cast(pa.date32())


def _moments(values: Sequence[Any], zone: str | None) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int64()).cast(pa.timestamp("us", tz=zone))


def _decimals(values: Sequence[Any], precision: int, scale: int) -> pa.Array:
    """Decimals from their unscaled integers; up to 18 digits without a Python loop."""
    import pyarrow as pa

    if precision <= 18:
        return _widened(pa.array(values, pa.int64()), pa.decimal128(precision, scale))
    made = [None if value is None else Decimal(value).scaleb(-scale, _WIDE) for value in values]
    return pa.array(made, pa.decimal128(precision, scale))


def _unsigned(values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    return _widened(pa.array(values, pa.uint64()), pa.decimal128(20, 0))


def _widened(narrow: pa.Array, kind: pa.DataType) -> pa.Array:
    """64-bit integers as the unscaled values of decimals."""
    import numpy as np
    import pyarrow as pa

    valid, data = narrow.buffers()
    wide = np.zeros((len(narrow), 2), np.int64)
    if len(narrow):
        wide[:, 0] = np.frombuffer(data, np.int64, len(narrow))
        if pa.types.is_signed_integer(narrow.type):
            wide[:, 1] = wide[:, 0] >> 63
    return pa.Array.from_buffers(kind, len(narrow), [valid, pa.py_buffer(wide)])


def _same(value: Any) -> Any:
    return value


def _digits(text: str) -> int:
    return int(text.replace(".", ""))


def _parse_day(text: str) -> int | None:
    return day_of(int(text[:4]), int(text[5:7]), int(text[8:10]))


def _parse_moment(text: str) -> int | None:
    day = _parse_day(text)
    if day is None:
        return None
    seconds = int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])
    return day * DAY_US + seconds * 1_000_000 + int(text[20:].ljust(6, "0") or 0)


def _parse_bits(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _number_text(value: int, scale: int) -> Any:
    """A decimal, from its unscaled integer, as a JSON number with all digits."""
    return orjson.Fragment(format(Decimal(value).scaleb(-scale, _WIDE), "f"))


def _iso_day(value: int) -> str:
    return date.fromordinal(value + EPOCH_DAY).isoformat()


def _iso_moment(value: int, zone: str) -> str:
    text = (EPOCH + timedelta(microseconds=value)).replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + zone


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _short(value: float) -> float:
    """A 32-bit number in its short form: 0.1 instead of 0.10000000149011612."""
    import numpy as np

    return float(str(np.float32(value)))


def _whole(ddl: str, arrow: str) -> Kind:
    return Kind(ddl, partial(_array, name=arrow), int, literal="number")


TINYINT, SMALLINT = _whole("TINYINT", "int8"), _whole("SMALLINT", "int16")
INT, BIGINT = _whole("INT", "int32"), _whole("BIGINT", "int64")
UNSIGNED_BIGINT = Kind("DECIMAL(20,0)", _unsigned, int, literal="number")
FLOAT = Kind(
    # MySQL would print only six digits of a 32-bit number.
    "FLOAT", partial(_array, name="float32"), float, _short, "{}+0e0", "{}+0e0", "number",
)  # fmt: skip
DOUBLE = Kind("DOUBLE", partial(_array, name="float64"), float, literal="number")
DATE = Kind("DATE", _dates, _parse_day, _iso_day)
DATETIME = Kind("TIMESTAMP_NTZ", partial(_moments, zone=None), _parse_moment, partial(_iso_moment, zone=""))
TIMESTAMP = Kind("TIMESTAMP", partial(_moments, zone="UTC"), _parse_moment, partial(_iso_moment, zone="Z"))
TEXT = Kind("STRING", partial(_array, name="string"), _same)
CHOICE = Kind("STRING", partial(_array, name="string"), _same, order="{}+0", literal="number")
"""ENUM and SET: sorted by their numbers, but compared with text by their text."""
BYTES = Kind("BINARY", partial(_array, name="binary"), _same, _base64, order="HEX({})", literal="hex")
BIT = Kind("BOOLEAN", partial(_array, name="bool_"), lambda v: v == b"\x01", order="{}+0", literal="number")
BITS = Kind("BIGINT", partial(_array, name="int64"), _parse_bits, order="{}+0", literal="number")
BITS_64 = Kind(UNSIGNED_BIGINT.ddl, UNSIGNED_BIGINT.arrow, _parse_bits, order="{}+0", literal="number")

WHOLE = {
    "tinyint": (TINYINT, SMALLINT), "smallint": (SMALLINT, INT), "mediumint": (INT, INT),
    "int": (INT, BIGINT), "bigint": (BIGINT, UNSIGNED_BIGINT),
}  # fmt: skip
"""Integer types by name: the signed and the unsigned kind."""

OTHERS = {
    "float": FLOAT, "double": DOUBLE, "date": DATE, "datetime": DATETIME, "timestamp": TIMESTAMP,
    "time": TEXT, "year": SMALLINT, "char": TEXT, "varchar": TEXT, "tinytext": TEXT, "text": TEXT,
    "mediumtext": TEXT, "longtext": TEXT, "json": TEXT, "enum": CHOICE, "set": CHOICE, "binary": BYTES,
    "varbinary": BYTES, "tinyblob": BYTES, "blob": BYTES, "mediumblob": BYTES, "longblob": BYTES,
    "geometry": BYTES, "point": BYTES, "linestring": BYTES, "polygon": BYTES, "multipoint": BYTES,
    "multilinestring": BYTES, "multipolygon": BYTES, "geometrycollection": BYTES, "geomcollection": BYTES,
    "uuid": TEXT, "inet4": TEXT, "inet6": TEXT,
}  # fmt: skip


def decimal_kind(precision: int, scale: int) -> Kind:
    """The kind of a DECIMAL; a DECIMAL with more than 38 digits is text."""
    if precision > MAX_DIGITS:
        return Kind(
            "STRING", partial(_array, name="string"), _same, orjson.Fragment, literal="number",
        )  # fmt: skip
    return Kind(
        f"DECIMAL({precision},{scale})",
        partial(_decimals, precision=precision, scale=scale),
        _digits,
        partial(_number_text, scale=scale),
        literal="number",
    )


def bit_kind(bits: int) -> Kind:
    """The kind of a BIT column."""
    return BIT if bits == 1 else BITS if bits < 64 else BITS_64


def kind_of(data_type: str, column_type: str) -> Kind | None:
    """The kind of a column as `information_schema` describes it; None if its type is unknown."""
    name = data_type.lower()
    if name in WHOLE:
        return WHOLE[name]["unsigned" in column_type or "zerofill" in column_type]
    numbers = [int(n) for n in re.findall(r"\d+", column_type)] if name in ("decimal", "bit") else []
    if name == "decimal":
        return decimal_kind(numbers[0] if numbers else 10, numbers[1] if len(numbers) > 1 else 0)
    if name == "bit":
        return bit_kind(numbers[0] if numbers else 1)
    return OTHERS.get(name)
