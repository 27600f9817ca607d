"""Values of Arrow columns as plain JSON that reads back as the same value."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from penstock.streams.casting import as_lists


def text_or_base64(value: bytes | None) -> str | dict[str, str] | None:
    """Bytes as text if they are UTF-8, else as `{"base64": …}`."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def plain_values(array: pa.Array) -> list[Any]:
    """The values as JSON values.

    Decimals and binary (base64) are strings, times are ISO 8601; NaN and the infinities, for which JSON has
    no numbers, are the strings `NaN`, `Infinity` and `-Infinity`; maps are objects.
    """
    kind = array.type
    if is_.is_struct(kind):
        columns = [plain_values(pc.struct_field(array, [i])) for i in range(kind.num_fields)]
        names = [field.name for field in kind]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        return [row if valid else None for row, valid in zip(rows, _valid(array), strict=True)]
    if is_.is_map(kind):
        lists = as_lists(array)
        entries = lists.flatten()
        keys = map(_name, plain_values(pc.struct_field(entries, [0])))
        pairs = list(zip(keys, plain_values(pc.struct_field(entries, [1])), strict=True))
        return _each(_parts(lists, pairs), dict)
    if is_.is_list(kind):
        return _parts(array, plain_values(array.flatten()))
    if is_.is_timestamp(kind):
        return [_iso(text) for text in array.cast(pa.string()).to_pylist()]
    if is_.is_date(kind):
        return list(array.cast(pa.string()).to_pylist())
    if is_.is_decimal(kind):
        return _each(array.to_pylist(), lambda value: format(value, "f"))
    if is_.is_floating(kind):
        # By way of text a 32-bit number keeps its short form: 0.1 instead of 0.10000000149011612.
        return _each(array.cast(pa.string()).to_pylist(), lambda text: _number(float(text)))
    if is_.is_binary(kind):
        return _each(array.to_pylist(), lambda value: base64.b64encode(value).decode())
    return list(array.to_pylist())


def _each(values: Iterable[Any], change: Callable[[Any], Any]) -> list[Any]:
    return [None if value is None else change(value) for value in values]


def _valid(array: pa.Array) -> list[bool]:
    return list(array.is_valid().to_pylist())


def _parts(array: pa.Array, values: list[Any]) -> list[Any]:
    """The flattened values as the lists they came from."""
    parts, at = [], 0
    for length in pc.list_value_length(array).to_pylist():
        parts.append(None if length is None else values[at : at + length])
        at += length or 0
    return parts


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _iso(text: str | None) -> str | None:
    """`2026-01-02 03:04:05.600000Z` as `2026-01-02T03:04:05.6Z`."""
    if text is None:
        return None
    zone = "Z" if text.endswith("Z") else ""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return seconds.replace(" ", "T") + ("." + fraction if fraction else "") + zone


def _name(value: Any) -> str:
    """The key of a map as the name of a JSON member."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
