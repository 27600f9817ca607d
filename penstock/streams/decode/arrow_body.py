"""Arrow IPC bodies: columns are matched by name, and converted if no information is lost."""

from __future__ import annotations

import json
import struct

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from penstock.streams.casting import Lost, convert
from penstock.streams.decode.arrow_size import claimed, expanded
from penstock.streams.decode.results import Decoded, Misfit, nothing, whole, with_meta
from penstock.streams.events import META, RAW
from penstock.streams.rendering import plain_values

MOST_BYTES = 64 * 1024 * 1024
MOST_RATIO = 32
"""Memory that a body may need: this many bytes, or this many times its size, if larger. Above it, the body is
treated as an attack."""


def decode_arrow(body: bytes, schema: pa.Schema | None) -> Decoded:
    """The rows as events. A raw stream accepts a column `value` of text or bytes.

    Raw and typed streams also accept `_key` and `_headers`. Other columns are ignored.
    """
    if not body:
        return Decoded(nothing(schema))
    payload = RAW if schema is None else schema
    try:
        table = _read(body, len(payload))
        if not set(payload.names) & set(table.column_names):
            found, wanted = ", ".join(table.column_names), ", ".join(payload.names)
            return whole(body, schema, "missing_field", f"the columns are {found}, not {wanted}")
        return _convert(table, payload)
    except _TooLarge as error:
        return whole(body, schema, "too_large", str(error))
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        return whole(body, schema, "bad_arrow", f"not an Arrow IPC stream: {error}")


class _TooLarge(Exception):
    """The body would take more memory than allowed."""


def _read(body: bytes, columns: int) -> pa.Table:
    most = max(MOST_BYTES, MOST_RATIO * len(body))
    if claimed(body, columns) > most:
        raise _TooLarge(f"the rows need more than {most} bytes in memory")
    table = pa.ipc.open_stream(body).read_all()
    for kind in table.schema.types:
        _check(kind)
    table.validate(full=True)  # offsets out of bounds would be dereferenced later
    if sum(expanded(chunk) for column in table.columns for chunk in column.chunks) > most:
        raise _TooLarge(f"the values need more than {most} bytes in memory")
    return table


def _check(kind: pa.DataType) -> None:
    """Reject a type that Arrow reads but cannot process."""
    if is_.is_decimal(kind) and not 0 <= kind.scale <= kind.precision:
        raise ValueError(f"not a valid decimal type: precision {kind.precision}, scale {kind.scale}")
    for i in range(kind.num_fields):
        _check(kind.field(i).type)
    if is_.is_dictionary(kind):
        _check(kind.value_type)


def _convert(table: pa.Table, payload: pa.Schema) -> Decoded:
    arrays, faults = [], {}
    for field in [*payload, *META]:
        array, wrong = _column(table, field)
        arrays.append(array)
        faults.update({i: fault for i, fault in wrong.items() if i not in faults})
    batch = pa.RecordBatch.from_arrays(arrays[: len(payload)], schema=payload)
    batch = with_meta(batch, *arrays[len(payload) :])
    if not faults:
        return Decoded(batch)
    good = batch.filter(pa.array([i not in faults for i in range(table.num_rows)]))
    return Decoded(good, [Misfit(i + 1, _row(table, i), *faults[i]) for i in sorted(faults)])


def _column(table: pa.Table, field: pa.Field) -> tuple[pa.Array, dict[int, tuple[str, str]]]:
    """A column with the stream's type, and the faults by row."""
    at = table.schema.get_field_index(field.name)
    if at < 0:
        array, lost, problem = pa.nulls(table.num_rows, field.type), None, "is missing"
    else:
        source = table.column(at).combine_chunks()
        (array, lost), problem = convert(source, field.type), "is null"
    wrong = {}
    if lost is not None:
        reason = f"column '{field.name}' has a value of {source.type} that is not one of {field.type}"
        wrong = dict.fromkeys(_rows(lost), ("wrong_type", reason))
    if not field.nullable and array.null_count:
        missing = ("missing_field", f"column '{field.name}' {problem}")
        wrong |= {i: missing for i in _rows(array.is_null()) if i not in wrong}
    return array, wrong


def _rows(mask: Lost) -> list[int]:
    return list(pc.indices_nonzero(mask).to_pylist())


def _row(table: pa.Table, i: int) -> bytes:
    cells = (_cell(column.slice(i, 1).combine_chunks()) for column in table.columns)
    row = dict(zip(table.column_names, cells, strict=True))
    return json.dumps(row, default=str, ensure_ascii=False).encode()


def _cell(array: pa.Array) -> object:
    try:
        return plain_values(array)[0]
    except (pa.ArrowException, ValueError, ArithmeticError):  # a type that streams don't support
        return f"<{array.type}>"
