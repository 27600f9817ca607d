from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.processors.decode import DecodeProcessor
from penstock.processors.encode import EncodeProcessor
from tests.processors.arrow_kit import batch_of, refusals, run, stage
from tests.processors.registry_server import registry_server
from tests.processors.test_decode_avro import ORDER, SCHEMA
from tests.processors.test_decode_protobuf import ORDER as MESSAGE
from tests.processors.test_decode_protobuf import descriptors

COLUMNS = "id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(9,2), ok BOOLEAN, in STRUCT<x: INT>"
EVENTS: list[dict[str, Any]] = [
    {
        **{"id": 7, "name": 'a, "b" c', "price": Decimal("1.50"), "ok": True, "in": {"x": None}},
        "at": datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC),
    },
    dict.fromkeys(["id", "name", "at", "price", "ok", "in"]),
]
TEXTS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"format": "json"},
        [
            '{"id":7,"name":"a, \\"b\\" c","at":"2026-01-31T12:00:00Z","price":"1.50","ok":true,'
            '"in":{"x":null}}',
            '{"id":null,"name":null,"at":null,"price":null,"ok":null,"in":null}',
        ],
    ),
    (
        {"format": "csv"},
        ['7,"a, ""b"" c",2026-01-31T12:00:00Z,1.50,true,"{""x"":null}"', ",,,,,"],
    ),
    (
        {"format": "kv"},
        ['id=7 name="a, \\"b\\" c" at=2026-01-31T12:00:00Z price=1.50 ok=true in="{\\"x\\":null}"', ""],
    ),
]


@pytest.mark.parametrize(("options", "texts"), TEXTS)
def test_text(options: dict[str, Any], texts: list[str]) -> None:
    events = batch_of(COLUMNS, EVENTS)
    result = run(EncodeProcessor(**options), events)
    assert [row["value"] for row in result.rows] == texts
    back = run(DecodeProcessor(schema=COLUMNS, **options), result.outcome.batch)
    assert back.rows == EVENTS


def test_columns_are_chosen_and_others_stay() -> None:
    events = batch_of("id INT, x STRING, y INT", [{"id": 1, "x": "a", "y": 2}])
    step = EncodeProcessor(format="csv", fields=["Y", "id"], into="line", keep=True, delimiter=";")
    assert run(step, events).rows == [{"x": "a", "line": "2;1"}]
    assert run(EncodeProcessor(format="json", fields=["x"]), events).rows == [{"value": '{"x":"a"}'}]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TEXT, st.none() | TEXT, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=4))
@pytest.mark.parametrize(
    "options",
    [
        {"format": "json"},
        {"format": "csv", "null_text": "\\N"},
        {"format": "csv", "null_text": "\\N", "delimiter": "\t"},
        {"format": "kv"},
        {"format": "kv", "pair_separator": "|"},
    ],
)
def test_what_is_written_reads_back(options: dict[str, Any], rows: list[tuple[Any, ...]]) -> None:
    ddl = "a STRING, b STRING, c BIGINT"
    events = [dict(zip("abc", row, strict=True)) for row in rows]
    written = run(EncodeProcessor(**options), batch_of(ddl, events)).outcome.batch
    read = run(DecodeProcessor(schema=ddl, **options), written)
    assert not read.bad
    assert read.rows == events


def test_avro(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(SCHEMA))
    ddl = (
        "id BIGINT, user STRING, at TIMESTAMP, price DECIMAL(9,2), state STRING, last STRING, ref STRING,"
        " lines ARRAY<STRUCT<sku: STRING, n: INT>>, labels MAP<STRING, DOUBLE>"
    )
    events = batch_of(ddl, [ORDER, {**ORDER, "state": "LOST"}, {**ORDER, "id": None}])
    result = run(EncodeProcessor(format="avro", schema_file=str(path)), events)
    assert result.bad == {1: "cannot_encode", 2: "cannot_encode"}
    assert result.outcome.batch.schema.field("value").type == pa.binary()
    assert run(DecodeProcessor(format="avro", schema_file=str(path)), result.outcome.batch).rows == [ORDER]


def test_avro_by_the_latest_schema_of_a_subject() -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "long"}]}
    events = batch_of("id BIGINT, x INT", [{"id": 7, "x": 1}])
    with registry_server() as server:
        server.schemas, server.subjects = {5: json.dumps(schema)}, {"orders-value": 5}
        there = {"url": server.url, "subject": "orders-value"}
        result = run(EncodeProcessor(format="avro", registry=there, fields=["id"]), events)
        assert result.rows == [{"value": b"\x00\x00\x00\x00\x05\x0e"}]
        back = DecodeProcessor(format="avro", registry={"url": server.url}, schema="id BIGINT")
        assert run(back, result.outcome.batch).rows == [{"id": 7}]
        bare = EncodeProcessor(format="avro", registry=there, fields=["id"], framing="none")
        assert run(bare, events).rows == [{"value": b"\x0e"}]
    testing = stage(testing=True, given={"orders-value": schema})
    there = {"url": "http://127.0.0.1:1", "subject": "orders-value"}
    assert run(EncodeProcessor(format="avro", registry=there, fields=["id"]), events, testing).rows


def test_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "shop.desc"
    path.write_bytes(descriptors().SerializeToString())
    ddl = (
        "id BIGINT, big DECIMAL(20,0), ok BOOLEAN, state STRING, note STRING,"
        " lines ARRAY<STRUCT<sku: STRING, n: BIGINT>>, labels MAP<STRING, DOUBLE>, inner STRUCT<b: BINARY>,"
        " at TIMESTAMP, max INT"
    )
    events = batch_of(ddl, [MESSAGE, {**MESSAGE, "state": "LOST"}])
    kind: dict[str, Any] = {"format": "protobuf", "schema_file": str(path), "message": "shop.Order"}
    result = run(EncodeProcessor(**kind), events)
    assert result.bad == {1: "cannot_encode"}
    assert run(DecodeProcessor(**kind), result.outcome.batch).rows == [MESSAGE]
    with registry_server() as server:
        server.schemas, server.subjects = {9: "syntax…"}, {"orders": 9}
        there = {"url": server.url, "subject": "orders"}
        headed = run(EncodeProcessor(**kind, registry=there), events)
    assert headed.rows[0]["value"].startswith(b"\x00\x00\x00\x00\x09\x02\x02")
    back = run(DecodeProcessor(**kind, framing="registry"), headed.outcome.batch)
    assert back.rows == [MESSAGE]


@pytest.mark.parametrize(
    ("options", "code", "path"),
    [
        ({"format": "json", "fields": ["id", "nme"]}, "unknown_column", "fields[1]"),
        ({"format": "json", "fields": ["id"], "keep": True, "into": "NAME"}, "duplicate_column", "into"),
        ({"format": "avro"}, "missing_field", "schema_file"),
        ({"format": "avro", "registry": {"url": "http://x"}}, "missing_field", "registry.subject"),
        ({"format": "protobuf"}, "missing_field", "schema_file"),
        ({"format": "kv", "key_separator": "a"}, "invalid_value", "fields"),
    ],
)
def test_refusals(options: dict[str, Any], code: str, path: str) -> None:
    (problem,) = refusals(EncodeProcessor(**options), batch_of("id INT, name STRING", []))
    assert (problem.code, problem.path) == (code, path)
