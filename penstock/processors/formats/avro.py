"""Avro: single records, as in messages, without a file container."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import fastavro
import pyarrow as pa

from penstock.errors import Invalid, Problem
from penstock.processors.formats.registry import Registry, framed, unframed
from penstock.processors.formats.text import Decode
from penstock.processors.support.records import batch_of
from penstock.streams.ddl import TIMESTAMP, TIMESTAMP_NTZ
from penstock.streams.decode.results import Decoded, Mismatch

PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP_NTZ,
    "local-timestamp-micros": TIMESTAMP_NTZ,
}


def parse(text: str | bytes, path: str = "schema_file") -> Any:
    """A schema parsed by fastavro; raises `Invalid` at `path` if it is not a record schema."""
    try:
        schema = _with_known_types(json.loads(text))
        parsed = fastavro.parse_schema(schema)
    except (ValueError, KeyError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise _refusal(f"not a valid Avro schema: {error or type(error).__name__}", path) from None
    if not isinstance(parsed, dict) or parsed.get("type") != "record" or not parsed.get("fields"):
        raise _refusal("the schema must be a record with fields", path)
    return parsed


def columns(parsed: Any, path: str = "schema_file") -> pa.Schema:
    """The columns of a record."""
    return pa.schema(list(_Types(path).type(parsed)))


def avro_decoder(schema: pa.Schema, reader: Any | None, registry: Registry | None, *, header: bool) -> Decode:
    """A function that decodes records.

    With a registry, each value names its writer's schema, and `reader`, if given, is the schema for reading.
    Without a registry, values were written with `reader`.
    """
    writers: dict[int, Any] = {}

    def writer(schema_id: int) -> Any:
        if registry is None:
            return reader
        if schema_id not in writers:
            try:
                writers[schema_id] = parse(registry.schema(schema_id))
            except Invalid as error:
                raise Mismatch("unknown_schema", f"schema {schema_id}: {error.problems[0].message}") from None
        return writers[schema_id]

    def read(value: bytes) -> Any:
        schema_id, body = unframed(value) if header else (0, value)
        written = writer(schema_id)
        stream = io.BytesIO(body)
        try:
            record = fastavro.schemaless_reader(stream, written, None if reader is written else reader)
        except Exception as error:  # any exception, depending on the bytes
            what = str(error) or type(error).__name__
            raise Mismatch(
                "malformed_avro", f"not a record of the schema: {what}, at byte {stream.tell()}"
            ) from None
        if (left := len(body) - stream.tell()) > 0:
            raise Mismatch("malformed_avro", f"{left} bytes follow the record")
        return record

    def decode(values: list[bytes]) -> Decoded:
        return batch_of([_tried(read, value) for value in values], schema)

    return decode


def avro_encoder(
    parsed: Any, schema_id: int | None
) -> Callable[[pa.RecordBatch], Sequence[bytes | Mismatch]]:
    """A function that encodes records; with `schema_id`, they are preceded by the header of a registry."""

    def encode(batch: pa.RecordBatch) -> Sequence[bytes | Mismatch]:
        return [_tried(write, record) for record in batch.to_pylist(maps_as_pydicts="strict")]

    def write(record: Any) -> bytes:
        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, parsed, record, strict_allow_default=True)
        except Exception as error:  # any exception, depending on the value
            raise Mismatch("cannot_encode", f"the event doesn't match the schema: {error}") from None
        return stream.getvalue() if schema_id is None else framed(schema_id, stream.getvalue())

    return encode


def _tried(function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except Mismatch as mismatch:
        return mismatch


class _Types:
    """Conversion of Avro types to column types."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.named: dict[str, Any] = {}
        self.open: list[str] = []

    def type(self, schema: Any) -> pa.DataType:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return PRIMITIVES[schema]
            if schema in self.open:
                raise _refusal(f"the type '{schema}' is recursive, which columns can't represent", self.path)
            return self.type(self.named[schema])
        kind = schema["type"]
        if isinstance(kind, list | dict):
            return self.type(kind)
        if "name" in schema:
            self.named[schema["name"]] = schema
        logical = schema.get("logicalType")
        if logical == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        if logical in LOGICAL:
            return LOGICAL[logical]
        if kind == "record":
            self.open.append(schema["name"])
            fields = [self._field(field) for field in schema["fields"]]
            self.open.pop()
            return pa.struct(fields)
        if kind == "array":
            return pa.list_(pa.field("element", self.type(schema["items"])))
        if kind == "map":
            return pa.map_(pa.string(), self.type(schema["values"]))
        return self.type(kind) if kind not in PRIMITIVES else PRIMITIVES[kind]

    def _field(self, field: Any) -> pa.Field:
        # Always nullable: an event with a null value has nulls in all columns.
        return pa.field(field["name"], self.type(field["type"]))

    def _union(self, members: list[Any]) -> pa.DataType:
        kinds = [self.type(member) for member in members if member != "null"]
        if len(kinds) != 1:
            raise _refusal("a union of several types can't be a column", self.path)
        return kinds[0]


def _with_known_types(schema: Any) -> Any:
    """The schema without unsupported logical types: a UUID becomes text, a time of day a number."""
    if isinstance(schema, list):
        return [_with_known_types(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _with_known_types(value) for name, value in schema.items()}
    if made.get("logicalType") not in (None, "decimal", *LOGICAL):
        del made["logicalType"]
    return cast(Any, made)


def _refusal(message: str, path: str) -> Invalid:
    hint = "set 'schema' to the columns you need" if "column" in message else None
    return Invalid(Problem(code="invalid_schema", message=message, path=path, hint=hint))
