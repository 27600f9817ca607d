"""Fast decoding of whole columns, for bodies in which every event fits the schema.

It accepts nothing that the exact decoder in `values` would reject, and returns the same values. In uncertain
cases it raises `Unsure`, and that decoder is used: a body with an unusual value only takes longer.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pydantic_core
from pyarrow import types as is_

from penstock.streams.casting import Lost, cast, convert
from penstock.streams.decode import times
from penstock.streams.decode.epochs import limits
from penstock.streams.decode.scalars import DIGITS, base64_bytes

NOT_A_NUMBER = re.compile(rb"[:,\[\s]-?(?:NaN|Inf)")
DEEP = 150
"""Number of brackets above which an event may be nested more deeply than the exact decoder accepts (200)."""
LONG_NUMBER = re.compile(rb"[0-9]{%d}" % DIGITS)


class Unsure(Exception):
    """A value may not fit: each event has to be decoded separately."""


def read_json(texts: list[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Events that are JSON objects.

    Arrow's reader rejects the whole body for nearly everything that does not fit: values of other types,
    numbers out of range or with a fraction, duplicate members, and missing required members.
    """
    readable = _readable(schema)
    if readable is None or not all(text[0] == 0x7B and text[-1] == 0x7D for text in texts):
        raise Unsure
    # A `}` is never followed by a `{` within a JSON value: with braces around each text, and as many rows as
    # texts, every text is one object.
    body = b"\n".join(texts)
    _check_syntax(texts, body)
    try:
        table = pa.json.read_json(
            pa.BufferReader(body),
            pa.json.ReadOptions(use_threads=False, block_size=len(body) + 1),
            pa.json.ParseOptions(explicit_schema=readable, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Unsure from None
    read = [column.combine_chunks() for column in table.columns]
    if table.num_rows != len(texts) or not all(map(_is_finite, read)):
        raise Unsure
    arrays = [convert(array, kind, _leaf)[0] for array, kind in zip(read, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def parse_texts(texts: pa.StringArray, to: pa.DataType) -> pa.Array:
    """A column of text parsed as `to`, a type that is not nested."""
    try:
        return _parse(texts, to)
    except pa.ArrowInvalid:
        raise Unsure from None


def _check_syntax(texts: list[bytes], body: bytes) -> None:
    """Raise `Unsure` in the few cases in which Arrow accepts more than JSON and the exact decoder."""
    try:
        body.decode()
    except UnicodeDecodeError:
        raise Unsure from None
    if (b"NaN" in body or b"Inf" in body) and NOT_A_NUMBER.search(body):
        raise Unsure
    for text in texts:
        if len(text) > 2 * DEEP and _is_extreme(text):
            try:
                pydantic_core.from_json(text)
            except ValueError:
                raise Unsure from None


def _is_extreme(text: bytes) -> bool:
    if text.count(b"[") + text.count(b"{") > DEEP:
        return True
    return len(text) > DIGITS and LONG_NUMBER.search(text) is not None


@lru_cache(maxsize=256)
def _readable(schema: pa.Schema) -> pa.Schema | None:
    """The schema for Arrow's JSON reader, converted to `schema` by `_leaf`; None if Arrow can't read it."""
    kinds = [_readable_type(kind) for kind in schema.types]
    if None in kinds:
        return None
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)])


def _readable_type(kind: pa.DataType) -> pa.DataType | None:
    if is_.is_map(kind):  # objects with any member
        return None
    if is_.is_list(kind):
        inner = _readable_type(kind.value_type)
        return inner and pa.list_(kind.value_field.with_type(inner))
    if is_.is_struct(kind):
        kinds = [_readable_type(field.type) for field in kind]
        fields = [field.with_type(inner) for field, inner in zip(kind, kinds, strict=True)]
        return None if None in kinds else pa.struct(fields)
    if is_.is_float32(kind):  # rounded once, as by the exact decoder
        return pa.float64()
    if is_.is_decimal(kind):  # a number scaled beyond the bits of the type would be wrong
        return pa.decimal256(76 - kind.scale, kind.scale)
    if is_.is_duration(kind):
        return pa.int64()
    if is_.is_temporal(kind) or is_.is_binary(kind):
        return pa.string()
    return kind


def _leaf(array: pa.Array, to: pa.DataType) -> tuple[pa.Array, Lost]:
    if is_.is_duration(to):
        return _epochs(array, to), None
    return (_parse(array, to) if is_.is_string(array.type) else _cast(array, to)), None


def _is_finite(array: pa.Array) -> bool:
    """Whether all numbers are finite: Arrow reads a number that is too large, such as 20e307, as infinity."""
    kind = array.type
    if is_.is_floating(kind):
        return pc.all(pc.is_finite(array)).as_py() is not False
    if is_.is_list(kind):
        return _is_finite(array.flatten())
    if is_.is_struct(kind):
        return all(_is_finite(pc.struct_field(array, [i])) for i in range(kind.num_fields))
    return True


def _cast(array: pa.Array, to: pa.DataType) -> pa.Array:
    made, lost = cast(array, to)
    if lost is not None:
        raise Unsure
    return made


def _parse(texts: pa.StringArray, to: pa.DataType) -> pa.Array:
    if is_.is_string(to):
        return texts
    if is_.is_duration(to):
        return _epochs(_parse(texts, pa.int64()), to)
    if is_.is_temporal(to):
        made = times.column(texts, to)
    elif is_.is_binary(to):
        made = _base64(texts)
    elif is_.is_integer(to):
        hexadecimal = (pc.any(pc.match_substring(texts, mark)).as_py() for mark in "xX")
        made = None if any(hexadecimal) else texts.cast(to)
    elif is_.is_floating(to):
        number = texts.cast(pa.float64())
        made = _cast(number, to) if _is_finite(number) else None
    elif is_.is_boolean(to):  # Arrow also accepts 0 and 1
        shortest = pc.min(pc.binary_length(texts)).as_py()
        made = None if shortest is not None and shortest < len("true") else texts.cast(to)
    else:
        made = _decimal(texts, to)
    if made is None:
        raise Unsure
    return made


def _epochs(numbers: pa.Int64Array, to: pa.DurationType) -> pa.Array:
    ends, (first, last) = pc.min_max(numbers).as_py(), limits(to)
    if ends["min"] is not None and not first <= ends["min"] <= ends["max"] <= last:
        raise Unsure
    return numbers.cast(to)


def _decimal(texts: pa.StringArray, to: pa.DataType) -> pa.Array | None:
    """Numbers of up to 38 digits, which can be scaled in 256 bits without error."""
    longest = pc.max(pc.binary_length(texts)).as_py()
    exponent = (pc.any(pc.match_substring(texts, mark)).as_py() for mark in "eE")
    if (longest is not None and longest > 38) or any(exponent):
        return None
    return texts.cast(pa.decimal256(76, to.scale)).cast(to)


def _base64(texts: pa.StringArray) -> pa.Array | None:
    values = texts.to_pylist()
    try:
        made = [None if text is None else base64_bytes(text) for text in values]
    except ValueError:
        return None
    return pa.array(made, pa.binary())
