"""Conversion of Python values to columns: whole columns at once, or value by value if one does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.streams.decode.results import Decoded, Mismatch

REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError, KeyError)
"""The exceptions that pyarrow raises for a value of the wrong type."""


def batch_of(records: Sequence[Mapping[str, Any] | Mismatch], schema: pa.Schema) -> Decoded:
    """Records as a batch of `schema`; records that do not fit, or are already mismatches, are misfits.

    Members without a column are ignored, and missing members are null.
    """
    faults = {i: record for i, record in enumerate(records) if isinstance(record, Mismatch)}
    good = [record for record in records if not isinstance(record, Mismatch)]
    try:
        batch = _batch(good, schema)
    except (Mismatch, *REFUSED):
        rows = {i: record for i, record in enumerate(records) if not isinstance(record, Mismatch)}
        faults |= {i: wrong for i, record in rows.items() if (wrong := _wrong(record, schema)) is not None}
        batch = _batch([record for i, record in rows.items() if i not in faults], schema)
    return Decoded(batch, [faults[i].of(i + 1, b"") for i in sorted(faults)])


def _batch(records: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        array = pa.array([record.get(field.name) for record in records], field.type)
        if not field.nullable and array.null_count:
            raise Mismatch("missing_field", "is null or missing", field.name)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _wrong(record: Mapping[str, Any], schema: pa.Schema) -> Mismatch | None:
    """The first mismatch of a record, or None."""
    for field in schema:
        try:
            _batch([record], pa.schema([field]))
        except Mismatch as mismatch:
            return mismatch
        except REFUSED as error:
            return Mismatch("wrong_type", f"is not {field.type}: {error}", field.name)
    return None
