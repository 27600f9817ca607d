from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory, timestamp_pb2, wrappers_pb2

from penstock.processors.decode import DecodeProcessor
from penstock.processors.formats.protobuf import message_type
from penstock.processors.formats.registry import framed
from tests.processors.arrow_kit import raw, refusals, run

Field = descriptor_pb2.FieldDescriptorProto


def descriptors() -> descriptor_pb2.FileDescriptorSet:
    """What protoc writes of a file with a message of many kinds of fields."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    first = file.message_type.add(name="Line")
    first.field.add(name="sku", number=1, type=Field.TYPE_STRING, label=1)
    first.field.add(name="n", number=2, type=Field.TYPE_UINT32, label=1)
    order = file.message_type.add(name="Order")
    order.enum_type.add(name="State").value.add(name="NEW", number=0)
    order.enum_type[0].value.add(name="PAID", number=1)
    order.nested_type.add(name="LabelsEntry").options.map_entry = True
    order.nested_type[0].field.add(name="key", number=1, type=Field.TYPE_STRING, label=1)
    order.nested_type[0].field.add(name="value", number=2, type=Field.TYPE_DOUBLE, label=1)
    order.nested_type.add(name="Inner").field.add(name="b", number=1, type=Field.TYPE_BYTES, label=1)
    simple = {"id": Field.TYPE_INT64, "big": Field.TYPE_UINT64, "ok": Field.TYPE_BOOL}
    for number, (name, kind) in enumerate(simple.items(), 1):
        order.field.add(name=name, number=number, type=kind, label=1)
    order.field.add(name="state", number=4, type=Field.TYPE_ENUM, type_name=".shop.Order.State", label=1)
    order.oneof_decl.add(name="_note")
    order.field.add(
        name="note", number=5, type=Field.TYPE_STRING, label=1, oneof_index=0, proto3_optional=True
    )
    messages = {
        "lines": (".shop.Line", 3),
        "labels": (".shop.Order.LabelsEntry", 3),
        "inner": (".shop.Order.Inner", 1),
        "at": (".google.protobuf.Timestamp", 1),
        "max": (".google.protobuf.Int32Value", 1),
    }
    for number, (name, (kind, label)) in enumerate(messages.items(), 6):
        order.field.add(name=name, number=number, type=Field.TYPE_MESSAGE, type_name=kind, label=label)
    node = file.message_type.add(name="Node")
    node.field.add(name="next", number=1, type=Field.TYPE_MESSAGE, type_name=".shop.Node", label=1)
    made = descriptor_pb2.FileDescriptorSet()
    for module in (timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(made.file.add())
    made.file.append(file)
    return made


ORDER: dict[str, Any] = {
    "id": -(2**60),
    "big": Decimal(2**64 - 1),
    "ok": True,
    "state": "PAID",
    "note": None,
    "lines": [{"sku": "a", "n": 2**32 - 1}],
    "labels": {"x": 0.5},
    "inner": {"b": b"\x00\xff"},
    "at": datetime.datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=datetime.UTC),
    "max": 5,
}
JSON = {
    **{"id": str(-(2**60)), "big": str(2**64 - 1), "ok": True, "state": "PAID", "max": 5},
    **{"lines": [{"sku": "a", "n": 2**32 - 1}], "labels": {"x": 0.5}, "inner": {"b": "AP8="}},
    "at": "2026-01-31T12:00:00.250Z",
}
EMPTY: dict[str, Any] = {
    **{"id": 0, "big": Decimal(0), "ok": False, "state": "NEW", "note": None, "lines": [], "labels": {}},
    **{"inner": None, "at": None, "max": None},
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "shop.desc"
    path.write_bytes(descriptors().SerializeToString())
    return str(path)


def written(name: str, fields: dict[str, Any]) -> bytes:
    made = message_factory.GetMessageClass(message_type(descriptors().SerializeToString(), name))
    return bytes(json_format.ParseDict(fields, made()).SerializeToString())


def test_all_fields_of_the_message_are_columns(file: str) -> None:
    value = written("shop.Order", JSON)
    step = DecodeProcessor(format="protobuf", schema_file=file, message="shop.Order")
    result = run(step, raw(value, b"", None))
    assert result.rows == [ORDER, EMPTY, dict.fromkeys(ORDER)]


def test_columns_can_be_chosen(file: str) -> None:
    step = DecodeProcessor(
        format="protobuf", schema_file=file, message="shop.Order", schema="id BIGINT, state STRING"
    )
    assert run(step, raw(written("shop.Order", JSON))).rows == [{"id": -(2**60), "state": "PAID"}]


def test_what_is_no_message_is_refused_alone(file: str) -> None:
    step = DecodeProcessor(format="protobuf", schema_file=file, message="shop.Order")
    result = run(step, raw(b"\xff\xff", written("shop.Order", JSON)))
    assert result.bad == {0: "malformed_protobuf"}
    assert result.offsets == [1]


@pytest.mark.parametrize(
    ("message", "place"),
    [("shop.Line", b"\x00"), ("shop.Order", b"\x02\x02"), ("shop.Order.Inner", b"\x04\x02\x02")],
)
def test_the_header_of_a_registry_is_passed_over(file: str, message: str, place: bytes) -> None:
    step = DecodeProcessor(format="protobuf", schema_file=file, message=message, framing="registry")
    result = run(step, raw(framed(7, place + written(message, {})), framed(7, b"\x80"), b"\x01"))
    assert len(result.rows) == 1
    assert result.bad == {1: "malformed_protobuf", 2: "not_framed"}


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({"message": "shop.Oder"}, "message", "no message 'shop.Oder'"),
        ({}, "message", "more than one message"),
        ({"message": "shop.Node"}, "message", "is recursive"),
    ],
)
def test_messages_that_give_no_columns(file: str, options: dict[str, Any], path: str, message: str) -> None:
    step = DecodeProcessor(format="protobuf", schema_file=file, **options)
    (problem,) = refusals(step, raw())
    assert (problem.code, problem.path) == ("invalid_schema", path)
    assert message in problem.message


def test_a_file_that_is_no_descriptor_set(tmp_path: Path) -> None:
    path = tmp_path / "x.proto"
    path.write_text('syntax = "proto3";')
    (problem,) = refusals(DecodeProcessor(format="protobuf", schema_file=str(path)), raw())
    assert (problem.code, problem.path) == ("invalid_schema", "schema_file")
    assert "--include_imports" in (problem.hint or "")
