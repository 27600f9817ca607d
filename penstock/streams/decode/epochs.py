"""Times that are sent as integers: seconds, milliseconds or microseconds since 1970.

While such a body is decoded, its TIMESTAMP columns have the type Arrow duration with that unit, a type that
streams don't use otherwise; then they are converted to timestamps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import types as is_

from penstock.specs.stream import Timestamps
from penstock.streams.casting import Lost, convert
from penstock.streams.decode.results import Decoded, Mismatch, shown
from penstock.streams.decode.times import MICROSECONDS

UNITS = {"epoch_s": ("s", 1_000_000), "epoch_ms": ("ms", 1_000), "epoch_us": ("us", 1)}
"""The Arrow unit, and its length in microseconds."""

FACTORS = dict(UNITS.values())
WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}


@lru_cache(maxsize=256)
def as_sent(schema: pa.Schema, timestamps: Timestamps) -> pa.Schema:
    """The schema for decoding events with this timestamp format."""
    if timestamps == "iso":
        return schema
    kind = pa.duration(UNITS[timestamps][0])
    return pa.schema([field.with_type(_replaced(field.type, kind)) for field in schema])


def as_kept(decoded: Decoded, schema: pa.Schema) -> Decoded:
    """Events decoded with `as_sent(schema, …)`, converted to the columns of `schema`."""
    batch = decoded.batch
    fields = [schema.field(f.name) if f.name in schema.names else f for f in batch.schema]
    arrays = [convert(array, f.type, _timestamp)[0] for array, f in zip(batch.columns, fields, strict=True)]
    return Decoded(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), decoded.misfits)


def limits(kind: pa.DurationType) -> tuple[int, int]:
    """The lowest and the highest number for the years 1 to 9999."""
    factor = FACTORS[kind.unit]
    return -(-MICROSECONDS[0] // factor), MICROSECONDS[1] // factor


def epoch(kind: pa.DurationType) -> Callable[[Any], int]:
    """A function that reads a time from an integer."""
    first, last = limits(kind)
    wanted = f"an integer, the {WORDS[kind.unit]} since 1970 (TIMESTAMP)"

    def read(value: Any) -> int:
        if type(value) is not int:
            raise Mismatch("wrong_type", f"is {shown(value)}, not {wanted}")
        if not first <= value <= last:
            raise Mismatch("out_of_range", f"is {shown(value)}, a time outside the years 1 to 9999")
        return value

    return read


def _replaced(kind: pa.DataType, by: pa.DataType) -> pa.DataType:
    if is_.is_timestamp(kind) and kind.tz is not None:
        return by
    if is_.is_list(kind):
        return pa.list_(kind.value_field.with_type(_replaced(kind.value_type, by)))
    if is_.is_map(kind):
        item = kind.item_field  # keys are text, and stay ISO 8601
        return pa.map_(kind.key_field, item.with_type(_replaced(item.type, by)))
    if is_.is_struct(kind):
        return pa.struct([field.with_type(_replaced(field.type, by)) for field in kind])
    return kind


def _timestamp(array: pa.Array, to: pa.DataType) -> tuple[pa.Array, Lost]:
    """Durations since 1970 as times; all of them are within limits."""
    return array.cast(pa.duration("us")).cast(pa.int64()).cast(to), None
