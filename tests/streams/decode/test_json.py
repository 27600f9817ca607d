from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.streams.decode import Decoded, decode
from penstock.streams.events import RAW, VALUE, payload_schema

NDJSON = "application/x-ndjson"
JSON = "application/json"


def typed(ddl: str, body: str | bytes, content_type: str = NDJSON) -> Decoded:
    return decode(body.encode() if isinstance(body, str) else body, content_type, payload_schema(ddl))


def raw(body: bytes, content_type: str = NDJSON) -> list[bytes]:
    found = decode(body, content_type, None)
    assert found.misfits == []
    assert found.batch.schema.equals(RAW)
    return found.batch.column(VALUE).to_pylist()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("TINYINT", "-128", -128),
        ("DOUBLE", "1", 1.0),
        ("DOUBLE", "1e3", 1000.0),
        ("DOUBLE", '"-Infinity"', float("-inf")),
        ("FLOAT", "0.1", 0.10000000149011612),
        ("DECIMAL(20,2)", "123456789012345678.9", Decimal("123456789012345678.90")),
        ("DECIMAL(5,2)", '"1.50"', Decimal("1.50")),
        ("DECIMAL(5,2)", "1.250", Decimal("1.25")),
        ("DECIMAL(5,2)", "1e2", Decimal("100.00")),
        ("STRING", '"\\u00e4\\n"', "ä\n"),
        ("STRING", '""', ""),
        ("BINARY", '"AP8="', b"\x00\xff"),
        ("BOOLEAN", "true", True),
        ("DATE", '"2026-01-31"', date(2026, 1, 31)),
        ("TIMESTAMP", '"2026-01-31T12:00:00.5+02:00"', datetime(2026, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("TIMESTAMP", '"2026-01-31 12:00"', datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (
            "TIMESTAMP",
            '"2026-01-31T12:00:00.123456000Z"',
            datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
        ),
        ("TIMESTAMP_NTZ", '"2026-01-31"', datetime(2026, 1, 31)),
        ("ARRAY<INT>", "[1,null]", [1, None]),
        ("MAP<STRING, INT>", '{"a":1,"b":null}', [("a", 1), ("b", None)]),
        ("MAP<INT, STRING>", '{"1":"x"}', [(1, "x")]),
        ("MAP<BOOLEAN, STRING>", '{"true":"x"}', [(True, "x")]),
        ("MAP<DATE, INT>", '{"2026-01-31":1}', [(date(2026, 1, 31), 1)]),
        ("STRUCT<x: INT, y: ARRAY<STRING>>", '{"x":1,"z":2}', {"x": 1, "y": None}),
        ("INT", "null", None),
    ],
)
def test_values_that_fit(kind: str, text: str, value: Any) -> None:
    found = typed(f"c {kind}", f'{{"c": {text}}}\n' * 40)
    assert found.misfits == []
    assert found.batch.column("c").to_pylist() == [value] * 40
    assert typed(f"c {kind}", f'{{"c": {text}}}').batch.column("c").to_pylist() == [value]


@pytest.mark.parametrize(
    ("kind", "text", "code", "reason"),
    [
        ("BIGINT", '"12"', "wrong_type", "column 'c' is \"12\", not an integer (BIGINT)"),
        ("BIGINT", "12.0", "wrong_type", "column 'c' is 12.0, not an integer (BIGINT)"),
        ("BIGINT", "1e3", "wrong_type", "column 'c' is 1000.0, not an integer (BIGINT)"),
        ("BIGINT", "true", "wrong_type", "column 'c' is true, not an integer (BIGINT)"),
        ("BIGINT", "9223372036854775808", "out_of_range", "column 'c' is 9223372036854775808, beyond BIGINT"),
        ("TINYINT", "128", "out_of_range", "column 'c' is 128, beyond TINYINT"),
        ("DOUBLE", '"1"', "wrong_type", "column 'c' is \"1\", not a number (DOUBLE)"),
        ("DOUBLE", "1e400", "out_of_range", "column 'c' is Infinity, beyond DOUBLE"),
        ("DOUBLE", "20e307", "out_of_range", "column 'c' is Infinity, beyond DOUBLE"),
        ("ARRAY<FLOAT>", "[-20e307]", "out_of_range", "column 'c[0]' is -Infinity, beyond FLOAT"),
        ("FLOAT", "1e39", "out_of_range", "column 'c' is 1e+39, beyond FLOAT"),
        ("DOUBLE", "NaN", "not_json", "not JSON: expected value at line 1 column 7"),
        (
            "DECIMAL(5,2)",
            "1.255",
            "out_of_range",
            "column 'c' is \"1.255\", which does not fit DECIMAL(5,2) exactly",
        ),
        (
            "DECIMAL(5,2)",
            "1000",
            "out_of_range",
            "column 'c' is 1000, which does not fit DECIMAL(5,2) exactly",
        ),
        ("DECIMAL(5,2)", '"1_0"', "wrong_type", "column 'c' is \"1_0\", not a number (DECIMAL(5,2))"),
        ("DECIMAL(5,2)", "1e99999999999999999999", "out_of_range", None),
        ("STRING", "1", "wrong_type", "column 'c' is 1, not a string (STRING)"),
        ("STRING", '{"a":1}', "wrong_type", "column 'c' is {\"a\": 1}, not a string (STRING)"),
        ("STRING", '"\\ud800"', "not_json", None),
        ("BOOLEAN", "0", "wrong_type", "column 'c' is 0, not true or false (BOOLEAN)"),
        ("BINARY", '"AAA"', "wrong_type", "column 'c' is \"AAA\", not a string in base64 (BINARY)"),
        ("DATE", '"2026-02-30"', "out_of_range", "column 'c' is \"2026-02-30\", a date that does not exist"),
        ("DATE", "20484", "wrong_type", "column 'c' is 20484, not a date such as 2026-01-31 (DATE)"),
        ("TIMESTAMP", "1769860800", "wrong_type", None),
        ("TIMESTAMP", '"2026-01-31T12:00:00.1234567Z"', "out_of_range", None),
        ("TIMESTAMP", '"0001-01-01T00:00:00+02:00"', "out_of_range", None),
        ("TIMESTAMP_NTZ", '"2026-01-31T12:00:00Z"', "wrong_type", None),
        ("ARRAY<INT>", "[1,[2]]", "wrong_type", "column 'c[1]' is [2], not an integer (INT)"),
        (
            "ARRAY<STRUCT<x: INT>>",
            '[{"x":"a"}]',
            "wrong_type",
            "column 'c[0].x' is \"a\", not an integer (INT)",
        ),
        (
            "STRUCT<x: STRUCT<y: INT>>",
            '{"x":{"y":1.5}}',
            "wrong_type",
            "column 'c.x.y' is 1.5, not an integer (INT)",
        ),
        ("STRUCT<x: INT NOT NULL>", "{}", "missing_field", "column 'c.x' is missing"),
        ("STRUCT<x: INT>", "[]", "wrong_type", "column 'c' is [], not an object (STRUCT)"),
        ("MAP<INT, INT>", '{"a":1}', "wrong_type", 'column \'c["a"]\' is "a", not an integer (INT)'),
        ("MAP<STRING, INT>", "[]", "wrong_type", "column 'c' is [], not an object (MAP)"),
        ("ARRAY<INT>", "1", "wrong_type", "column 'c' is 1, not an array (ARRAY)"),
    ],
)
def test_values_that_do_not_fit(kind: str, text: str, code: str, reason: str | None) -> None:
    line = f'{{"c": {text}}}'
    for body in (line, "\n".join(["{}"] * 40 + [line])):
        found = typed(f"c {kind}", body)
        (misfit,) = found.misfits
        assert misfit.line == body.count("\n") + 1
        assert misfit.value == line.encode()
        assert misfit.code == code
        assert reason is None or misfit.reason == reason
        assert found.batch.num_rows == body.count("\n")


def test_required_columns() -> None:
    found = typed("id BIGINT NOT NULL, n INT", '{"id":1}\n{"n":2}\n{"id":null}\n{"id":4,"n":4}')
    assert found.batch.to_pylist() == [{"id": 1, "n": None}, {"id": 4, "n": 4}]
    assert [(m.line, m.code, m.reason) for m in found.misfits] == [
        (2, "missing_field", "column 'id' is missing"),
        (3, "missing_field", "column 'id' is null"),
    ]


def test_every_line_stands_for_itself() -> None:
    body = (
        b'\n{"id":1}\r\n\n  {"id":2} \n[1]\n{"id":3}{"id":4}\n{"id":\n5}\n{"id":6,"id":7}\n{"x":"\xff"}\n""'
    )
    found = typed("id BIGINT", body)
    assert found.batch.column("id").to_pylist() == [1, 2, 7]
    assert [(m.line, m.code) for m in found.misfits] == [
        (5, "not_an_object"),
        (6, "not_json"),
        (7, "not_json"),
        (8, "not_json"),
        (10, "invalid_utf8"),
        (11, "not_an_object"),
    ]
    assert found.misfits[0].value == b"[1]"
    assert found.misfits[4].reason == "byte 7 is not UTF-8"


def test_names_are_exact_and_others_are_ignored() -> None:
    assert typed("id BIGINT", '{"ID":1,"x":[{}]}').batch.to_pylist() == [{"id": None}]


def test_members_that_stand_in_each_others_place() -> None:
    """As many objects as lines, but not one in each."""
    lines = ['{"id":1}{"id":2}', '{"id":', "3}"] * 20
    found = typed("id BIGINT", "\n".join(lines))
    assert found.batch.num_rows == 0
    assert len(found.misfits) == 60


def test_depth_has_a_limit_that_does_not_depend_on_the_way() -> None:
    deep = '{"id":1,"x":' + "[" * 250 + "]" * 250 + "}"
    wide = '{"id":2,"x":[' + ",".join(["[]"] * 250) + "]}"
    for repeat in (1, 40):
        found = typed("id BIGINT", "\n".join([deep, wide] * repeat))
        assert found.batch.column("id").to_pylist() == [2] * repeat
        assert [m.code for m in found.misfits] == ["not_json"] * repeat


def test_numbers_with_thousands_of_digits() -> None:
    line = '{"id":1,"x":' + "1" * 5000 + "}"
    for repeat in (1, 40):
        assert len(typed("id BIGINT, d DECIMAL(5,2)", "\n".join([line] * repeat)).misfits) == repeat


def test_raw_lines_are_kept_as_they_are() -> None:
    body = b'{"a": 1.10}\r\n\n [1, 2]\n"text"\n12345678901234567890.00\nnull\n'
    assert raw(body) == [b'{"a": 1.10}', b"[1, 2]", b'"text"', b"12345678901234567890.00", b"null"]


def test_raw_lines_must_be_json() -> None:
    found = decode(b'{"a":1}\n{"a":1\nNaN\n{"a":2}', NDJSON, None)
    assert found.batch.column(VALUE).to_pylist() == [b'{"a":1}', b'{"a":2}']
    assert [(m.line, m.value, m.code) for m in found.misfits] == [
        (2, b'{"a":1', "not_json"),
        (3, b"NaN", "not_json"),
    ]


@pytest.mark.parametrize("content_type", [NDJSON, "application/jsonl", "application/ndjson", JSON])
@pytest.mark.parametrize("body", [b"", b"\n \r\n\t", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("ddl", [None, "id BIGINT, s STRUCT<m: MAP<INT, INT>>"])
def test_nothing_gives_no_events(content_type: str, body: bytes, ddl: str | None) -> None:
    found = decode(body, content_type, ddl and payload_schema(ddl))
    assert found.misfits == []
    assert found.batch.num_rows == 0
    assert found.batch.schema.equals(payload_schema(ddl))


def test_a_document_is_an_event_or_an_array_of_them() -> None:
    assert raw(b' {"a": 1}\n', JSON) == [b'{"a": 1}']
    assert raw(b'"text"', JSON) == [b'"text"']
    assert raw(b"[]", JSON) == []
    assert raw(b'[ {"a": 1.10},\n [1, 2] , "},{", null]', JSON) == [
        b'{"a": 1.10}',
        b"[1, 2]",
        b'"},{"',
        b"null",
    ]
    assert typed("a INT", '{"a":1}', JSON).batch.to_pylist() == [{"a": 1}]
    assert typed("a INT", '[{"a":1},\n {"a":2}]', JSON).batch.to_pylist() == [{"a": 1}, {"a": 2}]


def test_large_arrays_are_taken_apart_exactly() -> None:
    plain = [f'{{"a": {i}}}' for i in range(100)]
    assert raw(f"[{', '.join(plain)}]".encode(), JSON) == [text.encode() for text in plain]
    assert typed("a INT", f"[{','.join(plain)}]", JSON).batch.column("a").to_pylist() == list(range(100))
    tricky = ['{"a":1,"b":[{},{}]}', '{"a":2,"b":"},{"}', '{"a":3}'] * 20
    assert raw(f"[{','.join(tricky)}]".encode(), JSON) == [text.encode() for text in tricky]
    assert typed("a INT", f"[{','.join(tricky)}]", JSON).batch.column("a").to_pylist() == [1, 2, 3] * 20


def test_misfits_of_an_array_are_counted_by_element() -> None:
    found = typed("a INT", '[{"a":1},{"a":"x"},3]', JSON)
    assert found.batch.to_pylist() == [{"a": 1}]
    assert [(m.line, m.value, m.code) for m in found.misfits] == [
        (2, b'{"a":"x"}', "wrong_type"),
        (3, b"3", "not_an_object"),
    ]


@pytest.mark.parametrize("ddl", [None, "a INT"])
def test_a_broken_document_is_one_misfit(ddl: str | None) -> None:
    body = b'[{"a":1},\n{"a":2}'
    found = decode(body, JSON, ddl and payload_schema(ddl))
    assert found.batch.num_rows == 0
    (misfit,) = found.misfits
    assert (misfit.line, misfit.value, misfit.code) == (2, body, "not_json")
    assert misfit.reason == "not JSON: EOF while parsing a list at line 2 column 7"


def test_lines_sent_as_a_document_get_a_hint() -> None:
    (misfit,) = typed("a INT", '{"a":1}\n{"a":2}', JSON).misfits
    assert "application/x-ndjson" in misfit.reason


def test_a_key_for_all_events() -> None:
    found = decode(b"1\n2", NDJSON, None, key=b"k")
    assert found.batch.to_pylist() == [{"value": b"1", "_key": b"k"}, {"value": b"2", "_key": b"k"}]
    assert decode(b"", NDJSON, None, key=b"k").batch.schema.equals(RAW)
