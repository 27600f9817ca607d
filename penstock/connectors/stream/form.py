"""The mapping of a frame's columns to the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.base import Rejected
from penstock.errors import Problem, did_you_mean
from penstock.frames.hidden import EVENT, visible
from penstock.sql.names import quote
from penstock.streams.casting import is_wider
from penstock.streams.events import HEADERS, KEY, META, VALUE, conform, payload_schema
from penstock.streams.frames import Body, encode_body, slices
from penstock.streams.rendering import plain_values

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

BESIDE = {KEY: KEY, HEADERS: HEADERS}
RAW_BESIDE = {"key": KEY, "headers": HEADERS, **BESIDE}
"""Columns that become the key and the headers of an event."""


@dataclass(frozen=True)
class Form:
    """The mapping of a frame's columns to the stored events of a stream."""

    payload: dict[str, str]
    """Column of the stream → column of the frame."""
    beside: dict[str, str]
    """`_key` or `_headers` → column of the frame."""
    as_json: bool = False
    """Whether the columns of `payload` become one JSON object, the value of a raw event."""

    def select(self, df: DataFrame, *, event: bool = False) -> DataFrame:
        """The frame with the columns of the stored events and, with `event`, the hidden column `$event`.

        Without a column for them, key and headers are those the event arrived with.
        """
        from pyspark.sql import functions as f

        def named(columns: dict[str, str]) -> list[Column]:
            return [f.col(quote(source)).alias(target) for target, source in columns.items()]

        payload = named(self.payload)
        if self.as_json:
            payload = [f.to_json(f.struct(*payload)).alias(VALUE)]
        hidden: list[Column] = []
        if EVENT in df.columns:
            known = f.col(quote(EVENT))
            travels = {KEY: known["key"], HEADERS: known["headers"]}
            hidden = [column.alias(name) for name, column in travels.items() if name not in self.beside]
            hidden += [known] if event else []
        return df.select(*payload, *named(self.beside), *hidden)


def form_of(schema: StructType, ddl: str | None) -> Form:
    """The form in which events of `schema` enter a stream with the schema `ddl`; see `misfits`."""
    names = visible(schema.names)
    if ddl is None:
        beside = _beside(schema, RAW_BESIDE)
        if _has_value(schema):
            return Form({VALUE: VALUE}, beside)
        own = {name: name for name in names if name not in BESIDE}
        return Form(own, {k: v for k, v in beside.items() if v in BESIDE}, as_json=True)
    named = {name.lower(): name for name in names}
    wanted = payload_schema(ddl).names
    own = {name: named[name.lower()] for name in wanted if name.lower() in named}
    return Form(own, _beside(schema, BESIDE))


def misfits(schema: StructType, ddl: str | None) -> Iterator[Problem]:
    """The problems with storing events of `schema` in a stream; paths are relative to the sink."""
    form = form_of(schema, ddl)
    used = {*form.payload.values(), *form.beside.values()}
    wanted = payload_schema(ddl)
    for name in visible(schema.names):
        if name not in used:
            raw = "a raw stream accepts only 'value', 'key' and 'headers', or columns without a 'value'"
            hint = raw if ddl is None else did_you_mean(name, wanted.names)
            yield _misfit("extra_column", f"the stream has no column '{name}'", hint)
    types = _arrow(schema, {*form.beside.values(), *(form.payload.values() if ddl is not None else ())})
    for target, source in form.beside.items():
        to = META.field(target).type
        if not is_wider(types.field(source).type, to):
            what = "a MAP<STRING, STRING>" if target == HEADERS else "a STRING or BINARY"
            yield _misfit("wrong_type", f"'{source}' must be {what} to be stored with the event")
    if ddl is not None:
        yield from _typed_misfits(form, types, wanted)


def _typed_misfits(form: Form, have: pa.Schema, wanted: pa.Schema) -> Iterator[Problem]:
    if not form.payload:
        yield _misfit("missing_column", "none of the columns of the stream are present")
    for field in wanted:
        source = form.payload.get(field.name)
        if source is None:
            if not field.nullable:
                yield _misfit("missing_column", f"there is no column '{field.name}', which is NOT NULL")
        elif not is_wider(have.field(source).type, field.type):
            yield _misfit(
                "wrong_type",
                f"the stream has '{field.name}' as {field.type}, which can't hold {have.field(source).type}",
                "cast it in a processor",
            )


def demands(ddl: str | None) -> list[str]:
    """The NOT NULL columns of a stream, which every event must have."""
    return [field.name for field in payload_schema(ddl) if not field.nullable]


def sift(batch: pa.RecordBatch, ddl: str | None) -> tuple[pa.RecordBatch, list[Rejected]]:
    """The selected events without `$event`, and separately the events with NULL in a NOT NULL column."""
    lacking = {name: batch.column(name) for name in demands(ddl) if batch.column(name).null_count}
    plain = [name for name in batch.schema.names if name != EVENT]
    if not lacking:
        return batch.select(plain), []
    missing = {name: column.is_null() for name, column in lacking.items()}
    bad = reduce(pc.or_, missing.values())
    rejected = []
    apart = batch.filter(bad)
    rows = plain_values(apart.select([name for name in plain if name not in BESIDE]).to_struct_array())
    events = apart.column(EVENT).to_pylist() if EVENT in batch.schema.names else [None] * len(rows)
    for row, event in zip(rows, events, strict=True):
        name = next(name for name in missing if row[name] is None)
        message = f"an event has no '{name}', which the stream declares NOT NULL"
        rejected.append(Rejected(json.dumps(row, ensure_ascii=False), "null_value", message, event))
    return batch.filter(pc.invert(bad)).select(plain), rejected


def encode(
    batch: pa.RecordBatch, ddl: str | None, compression: str, max_events: int, max_bytes: int
) -> Iterator[Body]:
    """Events as the stream stores them. Key and headers are omitted if no event has them."""
    if not batch.num_rows:
        return
    payload = payload_schema(ddl)
    beside = [
        field
        for field in META
        if (at := batch.schema.get_field_index(field.name)) >= 0
        and batch.column(at).null_count < batch.num_rows
    ]
    stored = conform(batch, pa.schema([*payload, *beside]))
    for part in slices(stored, max_events, max_bytes):
        yield encode_body(part, compression)


def _has_value(schema: StructType) -> bool:
    from pyspark.sql.types import BinaryType, StringType

    return VALUE in schema.names and isinstance(schema[VALUE].dataType, StringType | BinaryType)


def _beside(schema: StructType, names: dict[str, str]) -> dict[str, str]:
    return {target: name for name, target in names.items() if name in schema.names}


def _arrow(schema: StructType, names: set[str]) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return to_arrow_schema(StructType([f for f in schema.fields if f.name in names]), timezone="UTC")


def _misfit(code: str, message: str, hint: str | None = None) -> Problem:
    return Problem(code=code, message=message, path="stream", hint=hint)
