"""The physical form of events: record batches as the log stores them, and conversions for readers.

A stored batch has the payload (`value` of a raw stream, the columns of a typed stream) and, only if one of
its events has them, `_key` and `_headers`. The stream's schema may have changed since: `conform` converts old
events to the current schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa

from penstock.streams.casting import convert
from penstock.streams.rendering import plain_values, text_or_base64
from penstock.streams.schema import arrow_schema

VALUE = "value"
KEY = "_key"
HEADERS = "_headers"

RAW = pa.schema([(VALUE, pa.binary())])
"""The payload of a raw stream."""

META = pa.schema([(KEY, pa.binary()), (HEADERS, pa.map_(pa.string(), pa.string()))])
"""The metadata columns of an event."""


class Form(Protocol):
    """Reads the events of a stream from JSON, and makes record batches of them."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""

    def load(self, text: bytes) -> Any:
        """The event in a JSON text; raises `Mismatch` if it does not fit the stream."""

    def batch(self, events: list[Any]) -> pa.RecordBatch:
        """Loaded events as a record batch."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event that fits the schema of its stream, and is not a record batch yet.

    A batch of one event costs as much as a batch of dozens, so concurrent appends share a batch.
    """

    form: Form
    value: Any
    bytes: int
    """The size of its JSON text."""


def payload_schema(ddl: str | None) -> pa.Schema:
    """The payload columns of a stream that is declared with this schema."""
    return RAW if ddl is None else arrow_schema(ddl)


def stored_schema(ddl: str | None) -> pa.Schema:
    """The payload with key and headers."""
    return pa.schema([*payload_schema(ddl), *META])


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the fields of `schema`, in its order.

    Missing values, and values that cannot be converted without loss, are null. Never raises because of data.
    """
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(convert(batch.column(at), field.type)[0])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def to_json(
    batch: pa.RecordBatch, first_offset: int, time_us: int, schema: pa.Schema
) -> list[dict[str, Any]]:
    """Events in the API's format, as plain JSON; `schema` is that of the payload."""
    time = datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds")
    time = time.removesuffix("+00:00") + "Z"
    whole = conform(batch, pa.schema([*schema, *META]))
    keys = whole.column(KEY).to_pylist()
    headers = whole.column(HEADERS).to_pylist()
    if schema.equals(RAW):
        name, payloads = "value", [text_or_base64(value) for value in whole.column(VALUE).to_pylist()]
    else:
        values = zip(*(plain_values(column) for column in whole.columns[: len(schema)]), strict=True)
        name, payloads = "columns", [dict(zip(schema.names, row, strict=True)) for row in values]
    return [
        {
            "offset": first_offset + i,
            "time": time,
            "key": text_or_base64(keys[i]),
            "headers": dict(headers[i] or ()),
            name: payload,
        }
        for i, payload in enumerate(payloads)
    ]
