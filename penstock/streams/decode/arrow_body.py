"""Arrow IPC streams: columns by name, converted where nothing is lost by it."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from penstock.streams.casting import Lost, convert
from penstock.streams.decode.results import Decoded, Misfit, nothing, whole, with_meta
from penstock.streams.events import META, RAW, VALUE
from penstock.streams.rendering import plain_values


def decode_arrow(body: bytes, schema: pa.Schema | None) -> Decoded:
    """The rows as events. A raw stream takes a column `value` of text or bytes.

    Both may have `_key` and `_headers`. Other columns are ignored.
    """
    if not body:
        return Decoded(nothing(schema))
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)  # an offset that points outside would be followed later on
    except (pa.ArrowException, OSError, ValueError) as error:
        return whole(body, schema, "bad_arrow", f"not an Arrow IPC stream: {error}")
    payload = RAW if schema is None else schema
    if not set(payload.names) & set(table.column_names):
        wanted = VALUE if schema is None else ", ".join(schema.names)
        reason = f"the columns are {', '.join(table.column_names)}, not {wanted}"
        return whole(body, schema, "missing_field", reason)
    return _convert(table, payload)


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
    """A column as the stream has it, and what is wrong with it in which row."""
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
    cells = (column.slice(i, 1).combine_chunks() for column in table.columns)
    row = {name: plain_values(cell)[0] for name, cell in zip(table.column_names, cells, strict=True)}
    return json.dumps(row, default=str, ensure_ascii=False).encode()
