"""Conversion of Arrow columns to the JSON for a script, and back.

Values in JSON are those of `penstock.streams.rendering`, and the values accepted from a script are those that
`penstock.streams.decode` accepts. In between, integers beyond 2^53 are sent as text, since JavaScript parses
every number in JSON as floating point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from penstock.frames.hidden import EVENT
from penstock.processors.base import Refused
from penstock.streams.casting import as_lists, convert
from penstock.streams.decode.columns import Unsure, parse_texts
from penstock.streams.decode.results import Mismatch
from penstock.streams.decode.values import reader
from penstock.streams.rendering import plain_values

SAFE = 2**53 - 1
META = ("key", "headers", "offset", "time", "sinks")
OPAQUE = {b"variant", b"geometry", b"geography"}
"""Metadata of types that Spark represents as structs."""
DUMP = orjson.OPT_SERIALIZE_NUMPY


def shape(kind: pa.DataType) -> Any:
    """The description of a type for a script; see `prelude.js`. `TypeError` if scripts don't support it."""
    if is_.is_struct(kind) and not any(OPAQUE & (field.metadata or {}).keys() for field in kind):
        return {"struct": [(field.name, shape(field.type)) for field in kind]}
    if is_.is_list(kind):
        return {"list": shape(kind.value_type)}
    if is_.is_map(kind) and not is_.is_nested(kind.key_type):
        shape(kind.key_type)
        return {"map": shape(kind.item_type)}
    names = {
        "int": is_.is_signed_integer,
        "float": is_.is_floating,
        "decimal": is_.is_decimal,
        "bool": is_.is_boolean,
        "text": is_.is_string,
        "bytes": is_.is_binary,
        "date": is_.is_date,
    }
    for name, check in names.items():
        if check(kind):
            return name
    if is_.is_timestamp(kind):
        return "local" if kind.tz is None else "time"
    raise TypeError(kind)


def encode(batch: pa.RecordBatch, *, meta: bool) -> bytes:
    """Encode a batch for a script."""
    columns, special = [], []
    for i, (name, array) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        if name == EVENT:
            continue
        try:
            values, odd = _values(array)
        except UnicodeDecodeError:
            raise Refused("invalid_utf8", f"column '{name}' has bytes that are not UTF-8") from None
        columns.append(values)
        if odd:
            special.append(i)
    known = None
    if meta:
        event = batch.column(EVENT)
        known = {name: _values(pc.struct_field(event, name))[0] for name in META}
    message = {"columns": columns, "special": special, "count": batch.num_rows, "meta": known}
    return orjson.dumps(message, option=DUMP)


def _values(array: pa.Array) -> tuple[Any, bool]:
    """The values for JSON, and whether some of their numbers are sent as text."""
    kind = array.type
    if is_.is_string(kind):
        return array.to_pylist(), False
    if is_.is_timestamp(kind):
        return _times(array), False
    large, infinite = _beyond(array)
    plain = is_.is_signed_integer(kind) or is_.is_boolean(kind) or is_.is_float64(kind)
    if plain and not array.null_count and not large and not infinite:
        return np.ascontiguousarray(array.to_numpy(zero_copy_only=False)), False
    if large:
        array, _ = convert(array, _as_text(kind), lambda leaf, to: (leaf.cast(to), None))
    return plain_values(array), large or infinite


def _times(array: pa.Array) -> list[str | None]:
    """Times in the format of `plain_values`, converted a column at a time."""
    texts = pc.replace_substring(array.cast(pa.string()), " ", "T")
    return list(pc.replace_substring_regex(texts, r"\.?0*(Z?)$", r"\1").to_pylist())


def _beyond(array: pa.Array) -> tuple[bool, bool]:
    """Whether there are integers beyond 2^53, and whether there are numbers that JSON can't represent."""
    large = infinite = False
    for leaf in _leaves(array):
        if is_.is_int64(leaf.type):
            ends = pc.min_max(leaf)
            low, high = ends["min"].as_py(), ends["max"].as_py()
            large = large or (low is not None and (low < -SAFE or high > SAFE))
        elif is_.is_floating(leaf.type):
            infinite = infinite or pc.all(pc.is_finite(leaf)).as_py() is False
    return large, infinite


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The columns inside a nested column, without the keys of maps, which are always text."""
    kind = array.type
    if is_.is_struct(kind):
        for i in range(kind.num_fields):
            yield from _leaves(pc.struct_field(array, [i]))
    elif is_.is_map(kind):
        yield from _leaves(pc.struct_field(as_lists(array).flatten(), [1]))
    elif is_.is_list(kind):
        yield from _leaves(array.flatten())
    else:
        yield array


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The type with text in place of 64-bit integers."""
    if is_.is_struct(kind):
        return pa.struct([field.with_type(_as_text(field.type)) for field in kind])
    if is_.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_as_text(kind.item_type)))
    if is_.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_text(kind.value_type)))
    return pa.string() if is_.is_int64(kind) else kind


def decode(values: list[Any], field: pa.Field, *, odd: bool) -> tuple[pa.Array, dict[int, Mismatch]]:
    """A column returned by a script, and its mismatches by row. `odd`: not all values are plain."""
    if not odd:
        try:
            made = _column(values, field.type)
            if field.nullable or not made.null_count:
                return made, {}
        except (Unsure, pa.ArrowInvalid, OverflowError):
            pass
    read, found, wrong = reader(field.type), [], {}
    for row, value in enumerate(values):
        try:
            if value is None and not field.nullable:
                raise Mismatch("missing_field", "is null or missing")
            found.append(None if value is None else read(value))
        except Mismatch as mismatch:
            found.append(None)
            wrong[row] = mismatch.below(field.name)
    return pa.array(found, field.type), wrong


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Convert plain values, all at once."""
    if shape(kind) in ("int", "bool", "text") or is_.is_float64(kind):
        return pa.array(values, kind)
    if is_.is_float32(kind):  # Arrow converts a number that is too large to infinity
        raise Unsure
    return parse_texts(pa.array(values, pa.string()), kind)
