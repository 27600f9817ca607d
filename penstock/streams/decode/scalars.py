"""Conversion of a JSON value, or a text, to a value of a simple type, without loss or guesses.

| Type | JSON | Text |
|---|---|---|
| TINYINT … BIGINT | an integer, written without fraction and exponent | the same |
| FLOAT, DOUBLE | any number; `"NaN"`, `"Infinity"`, `"-Infinity"` | the same, without quotes |
| DECIMAL | any number, or a string with one, that fits exactly | the same |
| STRING | a string | as it is |
| BINARY | a string in base64 | the same |
| BOOLEAN | `true`, `false` | the same, in any case |
| DATE, TIMESTAMP, TIMESTAMP_NTZ | a string in ISO 8601, see `times` | the same |
| TIMESTAMP, if the document says so | an integer, see `epochs` | the same |
"""

from __future__ import annotations

import base64
import ctypes
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import pyarrow as pa
from pyarrow import types as is_

from penstock.streams.decode import times
from penstock.streams.decode.epochs import epoch
from penstock.streams.decode.results import Mismatch, shown

Read = Callable[[Any], Any]
"""Returns a value that pyarrow accepts for the type, or raises `Mismatch`. Never called with null."""

INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DIGITS = 4000
"""Python refuses to read longer integers."""
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
ZERO = Decimal(0)
FLOAT_LIMIT = 2.0**128 - 2.0**103
"""Numbers from this limit on round to infinity as FLOAT."""

NAMES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}


def from_json(kind: pa.DataType) -> Read:
    """The function that reads a JSON value of a type."""
    if is_.is_integer(kind):
        return _integer(kind)
    if is_.is_floating(kind):
        return _floating(kind)
    if is_.is_decimal(kind):
        return _decimal(kind)
    if is_.is_date(kind):
        return times.days
    if is_.is_duration(kind):
        return epoch(kind)
    if is_.is_timestamp(kind):
        return times.local_time if kind.tz is None else times.instant
    return _binary if is_.is_binary(kind) else _boolean if is_.is_boolean(kind) else _string


def from_text(kind: pa.DataType) -> Read:
    """The function that reads a type from text, such as a CSV field or the name of a JSON member."""
    read = from_json(kind)
    if is_.is_integer(kind) or is_.is_duration(kind):
        return lambda text: read(_whole(text, kind))
    if is_.is_floating(kind):
        # Texts that round to the same FLOAT must be the same key of a map.
        rounded = ctypes.c_float if is_.is_float32(kind) else ctypes.c_double
        return lambda text: rounded(read(float(text) if NUMBER.fullmatch(text) else text)).value
    if is_.is_boolean(kind):
        return lambda text: read({"true": True, "false": False}.get(text.lower(), text))
    return read


def digits(number: str) -> Decimal | float:
    """A number with all its digits, or a float if its exponent is out of range for a decimal."""
    try:
        return Decimal(number)
    except InvalidOperation:
        mantissa = Decimal(number.lower().partition("e")[0])
        return float(number) if mantissa else mantissa


def base64_bytes(text: str) -> bytes:
    """The bytes of a base64 text; raises ValueError if it is invalid, or its padding is wrong."""
    made = base64.b64decode(text, validate=True)
    if len(text) != (len(made) + 2) // 3 * 4:
        raise ValueError("wrong padding")
    return made


def _whole(text: str, kind: pa.DataType) -> int | str:
    if not INTEGER.fullmatch(text):
        return text
    if len(text) > DIGITS:
        raise Mismatch("out_of_range", f"is {shown(text)}, beyond {NAMES.get(kind, 'TIMESTAMP')}")
    return int(text)


def _integer(kind: pa.DataType) -> Read:
    limit, name = 2 ** (kind.bit_width - 1), NAMES[kind]

    def read(value: Any) -> int:
        if type(value) is not int:  # True is an int to isinstance
            raise Mismatch("wrong_type", f"is {shown(value)}, not an integer ({name})")
        if not -limit <= value < limit:
            raise Mismatch("out_of_range", f"is {shown(value)}, beyond {name}")
        return value

    return read


def _floating(kind: pa.DataType) -> Read:
    limit, name = FLOAT_LIMIT if is_.is_float32(kind) else math.inf, NAMES[kind]

    def read(value: Any) -> float:
        if isinstance(value, str) and value in SPECIAL:
            return SPECIAL[value]
        if type(value) not in (float, int, Decimal):
            raise Mismatch("wrong_type", f"is {shown(value)}, not a number ({name})")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) >= limit:
            raise Mismatch("out_of_range", f"is {shown(value)}, beyond {name}")
        return number

    return read


def _decimal(kind: pa.Decimal128Type) -> Read:
    name = f"DECIMAL({kind.precision},{kind.scale})"
    step = Decimal(1).scaleb(-kind.scale)
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])

    def read(value: Any) -> Decimal:
        text = isinstance(value, str)
        if type(value) not in (int, float, Decimal) and not (text and NUMBER.fullmatch(value)):
            raise Mismatch("wrong_type", f"is {shown(value)}, not a number ({name})")
        number = digits(value) if text else value
        try:
            if isinstance(number, float):  # an exponent out of range for a decimal
                raise Inexact
            return (Decimal(number) or ZERO).quantize(step, context=exact)
        except (Inexact, InvalidOperation):
            raise Mismatch("out_of_range", f"is {shown(value)}, which does not fit {name} exactly") from None

    return read


def _string(value: Any) -> str:
    if type(value) is not str:
        raise Mismatch("wrong_type", f"is {shown(value)}, not a string (STRING)")
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Mismatch("wrong_type", f"is {shown(value)}, not true or false (BOOLEAN)")
    return value


def _binary(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return base64_bytes(value)
        except ValueError:
            pass
    raise Mismatch("wrong_type", f"is {shown(value)}, not a string in base64 (BINARY)")
