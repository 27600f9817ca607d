from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.processors.decode import DecodeProcessor
from penstock.processors.formats.registry import framed
from tests.processors.arrow_kit import opened, raw, refusals, run, stage
from tests.processors.registry_server import registry_server

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "last", "type": "State"},
        {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}],
                },
            },
        },
        {"name": "labels", "type": {"type": "map", "values": "double"}},
    ],
}
ORDER: dict[str, Any] = {
    "id": 2**60,
    "user": None,
    "at": datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC),
    "price": Decimal("12.50"),
    "state": "PAID",
    "last": "NEW",
    "ref": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "lines": [{"sku": "a", "n": 1}],
    "labels": {"x": 0.5},
}


def written(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return stream.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def test_all_fields_of_the_schema_are_columns(file: str) -> None:
    value = written(SCHEMA, ORDER)
    result = run(DecodeProcessor(format="avro", schema_file=file), raw(value, None, value))
    assert result.rows == [ORDER, dict.fromkeys(ORDER), ORDER]


def test_the_file_travels_with_the_step(file: str) -> None:
    work = opened(DecodeProcessor(format="avro", schema_file=file), raw())
    Path(file).unlink()
    assert work(raw(written(SCHEMA, ORDER))).rows == [ORDER]


def test_columns_can_be_chosen_and_widened(file: str) -> None:
    step = DecodeProcessor(format="avro", schema_file=file, schema="id DECIMAL(20,0), state STRING, new INT")
    result = run(step, raw(written(SCHEMA, ORDER)))
    assert result.rows == [{"id": Decimal(2**60), "state": "PAID", "new": None}]


def test_what_is_no_record_is_refused_alone(file: str) -> None:
    value = written(SCHEMA, ORDER)
    result = run(DecodeProcessor(format="avro", schema_file=file), raw(value[:-3], value, value + b"x", ""))
    assert result.bad == {0: "malformed_avro", 2: "malformed_avro", 3: "malformed_avro"}
    assert "1 bytes follow" in result.message(2)
    assert result.offsets == [1]
    narrow = DecodeProcessor(format="avro", schema_file=file, schema="id INT")
    assert run(narrow, raw(value)).bad == {0: "wrong_type"}


def test_the_registry_tells_the_schema_of_each_event(tmp_path: Path) -> None:
    old = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}
    new = {**old, "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": "string", "default": "?"}]}
    path = tmp_path / "reader.avsc"
    path.write_text(json.dumps(new))
    with registry_server() as server:
        server.schemas = {1: json.dumps(old), 2: json.dumps(new)}
        events = raw(
            framed(1, written(old, {"id": 7})),
            framed(2, written(new, {"id": 8, "x": "y"})),
            framed(3, b""),
            b"\x00\x01",
            b"\x07" + framed(1, b""),
        )
        plain = DecodeProcessor(format="avro", registry={"url": server.url}, schema="id BIGINT, x STRING")
        result = run(plain, events)
        assert result.rows == [{"id": 7, "x": None}, {"id": 8, "x": "y"}]
        assert result.bad == {2: "unknown_schema", 3: "not_framed", 4: "not_framed"}
        evolved = DecodeProcessor(format="avro", registry={"url": server.url}, schema_file=str(path))
        assert run(evolved, events).rows == [{"id": 7, "x": "?"}, {"id": 8, "x": "y"}]
        assert server.asked.count("/schemas/ids/1") == 1  # once per process

        only_file = DecodeProcessor(format="avro", schema_file=str(path), framing="registry")
        assert run(only_file, raw(framed(9, written(new, {"id": 8, "x": "y"})))).rows == [{"id": 8, "x": "y"}]


def test_an_outage_of_the_registry_is_no_fault_of_the_event() -> None:
    with registry_server() as server:
        step = DecodeProcessor(format="avro", registry={"url": server.url}, schema="id BIGINT")
        server.status = 503
        with pytest.raises(Retryable, match="503"):
            run(step, raw(framed(1, b"")))
        server.status = 401
        with pytest.raises(Fault, match="registry_refused"):
            run(step, raw(framed(1, b"")))
    with pytest.raises(Retryable, match="can't be reached"):
        run(step, raw(framed(1, b"")))


def test_a_test_run_asks_nobody() -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}
    step = DecodeProcessor(format="avro", registry={"url": "http://127.0.0.1:1"}, schema="id INT")
    events = raw(framed(1, written(schema, {"id": 7})), framed(2, b""))
    result = run(step, events, stage(testing=True, given={1: schema}))
    assert result.rows == [{"id": 7}]
    assert result.bad == {1: "no_answer"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a valid Avro schema"),
        ('{"type": "record", "name": "A"}', "must be a record"),
        ('"string"', "must be a record"),
        (
            '{"type":"record","name":"A","fields":[{"name":"a","type":["int","string"]}]}',
            "a union of several types",
        ),
        ('{"type":"record","name":"A","fields":[{"name":"a","type":["null","A"]}]}', "is recursive"),
    ],
)
def test_schemas_that_give_no_columns(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.avsc"
    path.write_text(text)
    (problem,) = refusals(DecodeProcessor(format="avro", schema_file=str(path)), raw())
    assert (problem.code, problem.path) == ("invalid_schema", "schema_file")
    assert message in problem.message
