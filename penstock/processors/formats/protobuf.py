"""Protobuf messages, with a descriptor set written by `protoc --descriptor_set_out --include_imports`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

from penstock.errors import Invalid, Problem, did_you_mean
from penstock.processors.formats.indexes import behind_indexes, indexes_of
from penstock.processors.formats.registry import framed, unframed
from penstock.processors.formats.text import Decode
from penstock.processors.support.records import batch_of
from penstock.streams.ddl import TIMESTAMP
from penstock.streams.decode.results import Decoded, Mismatch
from penstock.streams.rendering import plain_values

SCALARS = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
    FieldDescriptor.CPPTYPE_STRING: pa.string(),
}
TIME = "google.protobuf.Timestamp"
WRAPPERS = "google/protobuf/wrappers.proto"
HOW = "create it with protoc --include_imports --descriptor_set_out=FILE"

Read = Callable[[Any], Any]


def message_type(descriptors: bytes, name: str | None) -> Descriptor:
    """The type of a message; raises `Invalid` if the set has no message with that name."""
    try:
        return _find(descriptors, name)
    except (DecodeError, TypeError, KeyError) as error:
        raise _refusal("schema_file", f"not a valid descriptor set: {error}", HOW) from None


@lru_cache(maxsize=32)
def _find(descriptors: bytes, name: str | None) -> Descriptor:
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    found = [pool.FindFileByName(file.name) for file in files]
    names = [message.full_name for file in found for message in file.message_types_by_name.values()]
    if not names:
        raise _refusal("schema_file", "the descriptor set has no message", HOW)
    if name is None and len(names) > 1:
        raise _refusal(
            "message", "the descriptor set has more than one message", f"one of: {', '.join(names)}"
        )
    try:
        return pool.FindMessageTypeByName(name or names[0])
    except KeyError:
        raise _refusal("message", f"there is no message '{name}'", did_you_mean(name, names)) from None


def columns(message: Descriptor) -> pa.Schema:
    """The columns of a message."""
    return pa.schema([pa.field(field.name, _type(field, ())) for field in message.fields])


def protobuf_decoder(schema: pa.Schema, message: Descriptor, *, header: bool) -> Decode:
    """A function that decodes messages, with or without the header of a schema registry."""
    made = message_factory.GetMessageClass(message)
    read = _struct(message, only=schema.names)

    def one(value: bytes) -> dict[str, Any] | Mismatch:
        try:
            body = behind_indexes(unframed(value)[1]) if header else value
            record: dict[str, Any] = read(made.FromString(body))
            return record
        except DecodeError as error:
            return Mismatch("malformed_protobuf", f"not a message {message.full_name}: {error}")
        except Mismatch as mismatch:
            return mismatch

    def decode(values: list[bytes]) -> Decoded:
        return batch_of([one(value) for value in values], schema)

    return decode


def protobuf_encoder(
    message: Descriptor, schema_id: int | None
) -> Callable[[pa.RecordBatch], Sequence[bytes | Mismatch]]:
    """A function that encodes messages; with `schema_id`, they are preceded by the header of a registry."""
    made = message_factory.GetMessageClass(message)
    place = indexes_of(message)

    def one(event: dict[str, Any]) -> bytes | Mismatch:
        given = {name: value for name, value in event.items() if value is not None}
        try:
            body = json_format.ParseDict(given, made()).SerializeToString(deterministic=True)
        except (json_format.ParseError, EncodeError, ValueError, TypeError) as error:
            return Mismatch("cannot_encode", f"the event is not a message {message.full_name}: {error}")
        return bytes(body) if schema_id is None else framed(schema_id, place + body)

    def encode(batch: pa.RecordBatch) -> Sequence[bytes | Mismatch]:
        rows = zip(*(plain_values(column) for column in batch.columns), strict=True)
        return [one(dict(zip(batch.schema.names, row, strict=True))) for row in rows]

    return encode


def _type(field: FieldDescriptor, inside: tuple[str, ...]) -> pa.DataType:
    if (entry := _entry(field)) is not None:
        key, value = entry.fields
        return pa.map_(_type(key, inside), _type(value, inside))
    one = _single_type(field, inside)
    return pa.list_(pa.field("element", one)) if field.is_repeated else one


def _single_type(field: FieldDescriptor, inside: tuple[str, ...]) -> pa.DataType:
    message = field.message_type
    if message is None:
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        return pa.binary() if is_bytes else SCALARS[field.cpp_type]
    if message.full_name == TIME:
        return TIMESTAMP
    if _is_wrapper(message):
        return _type(message.fields[0], inside)
    if message.full_name in inside:
        text = f"the message '{message.full_name}' is recursive, which columns can't represent"
        raise _refusal("message", text, "set 'schema' to the columns you need")
    below = (*inside, message.full_name)
    return pa.struct([pa.field(each.name, _type(each, below)) for each in message.fields])


def _struct(message: Descriptor, only: Sequence[str] | None = None) -> Read:
    """A function that reads the fields of a message; an absent field with presence is null."""
    fields = [field for field in message.fields if only is None or field.name in only]
    plan = [(field.name, _reader(field), field.has_presence) for field in fields]

    def read(value: Any) -> dict[str, Any]:
        return {
            name: None if presence and not value.HasField(name) else convert(getattr(value, name))
            for name, convert, presence in plan
        }

    return read


def _reader(field: FieldDescriptor) -> Read:
    if (entry := _entry(field)) is not None:
        item = _single(entry.fields[1])
        return lambda value: [(key, item(value[key])) for key in value]
    one = _single(field)
    return (lambda value: [one(item) for item in value]) if field.is_repeated else one


def _single(field: FieldDescriptor) -> Read:
    message = field.message_type
    if message is None:
        if field.enum_type is not None:
            names = field.enum_type.values_by_number
            return lambda number: names[number].name if number in names else str(number)
        return lambda value: value
    if message.full_name == TIME:
        return lambda value: value.seconds * 1_000_000 + value.nanos // 1_000
    if _is_wrapper(message):
        return lambda value: value.value
    later: list[Read] = []  # avoids endless recursion for a message that contains itself

    def read(value: Any) -> Any:
        if not later:
            later.append(_struct(message))
        return later[0](value)

    return read


def _entry(field: FieldDescriptor) -> Descriptor | None:
    """The message with a key and a value, if the field is a map."""
    message = field.message_type
    return message if message is not None and message.GetOptions().map_entry else None


def _is_wrapper(message: Descriptor) -> bool:
    return bool(message.file.name == WRAPPERS)


def _refusal(path: str, message: str, hint: str) -> Invalid:
    return Invalid(Problem(code="invalid_schema", message=message, path=path, hint=hint))
