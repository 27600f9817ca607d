"""Exact decoding, event by event: defines valid values, and returns the reason for invalid ones.

The fast decoding by column must agree with this decoder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pydantic_core
from pyarrow import types as is_

from penstock.streams.decode import scalars
from penstock.streams.decode.results import Mismatch, raw_batch, shown
from penstock.streams.decode.scalars import Read
from penstock.streams.events import RAW, Form


def load(text: bytes, *, exact: bool = False) -> Any:
    """The value of a JSON text. `exact` preserves all digits of numbers with a fraction."""
    try:
        value = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _not_json(text, error) from None
    if exact:
        return json.loads(text, parse_float=scalars.digits)
    return value


class Texts:
    """Reads events of a raw stream: any JSON, stored as text."""

    schema = RAW

    def load(self, text: bytes) -> bytes:
        """The text, if it is JSON."""
        load(text)
        return text

    def batch(self, texts: list[bytes]) -> pa.RecordBatch:
        """Texts as a record batch."""
        return raw_batch(texts)


class Rows:
    """Reads events that are JSON objects into rows of a schema.

    Members without a column are ignored, and of two members with the same name the later one is used.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.exact = any(map(_has_decimal, schema.types))
        """Whether the schema distinguishes numbers that are equal in floating point."""
        self._read = _struct(schema)

    def load(self, text: bytes) -> tuple[Any, ...]:
        """The row of a JSON text."""
        return self.row(load(text, exact=self.exact))

    def row(self, event: Any) -> tuple[Any, ...]:
        """The row of a JSON value."""
        if not isinstance(event, dict):
            raise Mismatch("not_an_object", f"the event is {shown(event)}, not an object with the columns")
        return tuple(self._read(event).values())

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        """Rows as a record batch."""
        columns: Iterable[Any] = zip(*rows, strict=True) if rows else ((),) * len(self.schema)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self.schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@lru_cache(maxsize=256)
def rows_of(schema: pa.Schema) -> Rows:
    """The reader for a schema."""
    return Rows(schema)


TEXTS = Texts()


def form_of(schema: pa.Schema | None) -> Form:
    """The reader for a schema; None: for a raw stream."""
    return TEXTS if schema is None else rows_of(schema)


def reader(kind: pa.DataType) -> Read:
    """The function that reads a JSON value of any type."""
    if is_.is_struct(kind):
        return _object(kind)
    if is_.is_map(kind):
        return _map(kind)
    if is_.is_list(kind):
        return _list(kind)
    return scalars.from_json(kind)


def text_reader(kind: pa.DataType) -> Read:
    """The function that reads any type from text; nested values are JSON."""
    if not is_.is_nested(kind):
        return scalars.from_text(kind)
    read, exact = reader(kind), _has_decimal(kind)
    return lambda text: read(load(text.encode(), exact=exact))


def _struct(fields: Iterable[pa.Field]) -> Read:
    plan = [(field.name, reader(field.type), not field.nullable) for field in fields]

    def read(value: dict[str, Any]) -> dict[str, Any]:
        made = {}
        name = ""
        try:
            for name, convert, required in plan:
                item = value.get(name)
                if item is not None:
                    item = convert(item)
                elif required:
                    raise Mismatch("missing_field", "is null" if name in value else "is missing")
                made[name] = item
        except Mismatch as mismatch:
            raise mismatch.below(name) from None
        return made

    return read


def _object(kind: pa.StructType) -> Read:
    inner = _struct(kind)

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Mismatch("wrong_type", f"is {shown(value)}, not an object (STRUCT)")
        made: dict[str, Any] = inner(value)
        return made

    return read


def _list(kind: pa.ListType) -> Read:
    convert = reader(kind.value_type)

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Mismatch("wrong_type", f"is {shown(value)}, not an array (ARRAY)")
        made = []
        for i, item in enumerate(value):
            try:
                made.append(None if item is None else convert(item))
            except Mismatch as mismatch:
                raise mismatch.below(f"[{i}]") from None
        return made

    return read


def _map(kind: pa.MapType) -> Read:
    key, convert = scalars.from_text(kind.key_type), reader(kind.item_type)

    def read(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict):
            raise Mismatch("wrong_type", f"is {shown(value)}, not an object (MAP)")
        made = {}
        for name, item in value.items():
            try:
                made[key(name)] = None if item is None else convert(item)
            except Mismatch as mismatch:
                raise mismatch.below(f"[{shown(name)}]") from None
        return list(made.items())

    return read


def _has_decimal(kind: pa.DataType) -> bool:
    if is_.is_decimal(kind):
        return True
    return any(_has_decimal(kind.field(i).type) for i in range(kind.num_fields))


def _not_json(text: bytes, error: ValueError) -> Mismatch:
    try:
        text.decode()
    except UnicodeDecodeError as broken:
        return Mismatch("invalid_utf8", f"byte {broken.start + 1} is not UTF-8")
    return Mismatch("not_json", f"not JSON: {error}")
