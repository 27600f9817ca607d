from __future__ import annotations

import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.processors.decode import DecodeProcessor
from tests.processors.arrow_kit import batch_of, raw, refusals, run

MOMENT = datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC)
FORMATS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"format": "json", "schema": "id BIGINT, tags ARRAY<STRING>"},
        ' {"id": 9007199254740993, "tags": ["a", null], "more": 1}\n',
        {"id": 9007199254740993, "tags": ["a", None]},
    ),
    (
        {"format": "csv", "schema": "id BIGINT, name STRING, at DATE, in STRUCT<x: INT>"},
        '7,"a, ""b""\nc",2026-01-31,"{""x"": 1}"\n',
        {"id": 7, "name": 'a, "b"\nc', "at": datetime.date(2026, 1, 31), "in": {"x": 1}},
    ),
    (
        {"format": "json", "schema": "at TIMESTAMP, all ARRAY<TIMESTAMP>", "timestamps": "epoch_ms"},
        '{"at": 1700000000123, "all": [0]}',
        {"at": MOMENT, "all": [datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)]},
    ),
    (
        {"format": "csv", "schema": "at TIMESTAMP", "timestamps": "epoch_us"},
        "1700000000123000",
        {"at": MOMENT},
    ),
    (
        {"format": "kv", "schema": "at TIMESTAMP", "timestamps": "epoch_ms"},
        "at=1700000000123",
        {"at": MOMENT},
    ),
    (
        {"format": "csv", "schema": "a STRING, b INT", "delimiter": ";", "null_text": "NULL"},
        ";NULL",
        {"a": "", "b": None},
    ),
    (
        {"format": "kv", "schema": "level STRING, msg STRING, ms DOUBLE, gone INT"},
        'level=info  msg="it is \\"done\\"\\n" other=x ms=1.5',
        {"level": "info", "msg": 'it is "done"\n', "ms": 1.5, "gone": None},
    ),
    (
        {"format": "kv", "schema": "a STRING, b STRING", "pair_separator": ";", "key_separator": ":"},
        "a: x y ; b:u:v",
        {"a": " x y ", "b": "u:v"},
    ),
    (
        {"format": "regex", "pattern": r"^(?<user>\w+)@(?P<host>[^:]+)(?::(?P<port>\d+))?$"},
        "ann@example.org",
        {"user": "ann", "host": "example.org", "port": None},
    ),
    (
        {"format": "regex", "pattern": r"(?P<n>\d+) (?P<rest>.*)", "schema": "n INT NOT NULL"},
        "number 12 of many",
        {"n": 12},
    ),
    (
        {
            "format": "grok",
            "pattern": "%{IP:ip} took %{NUMBER:ms:float} ms, %{INT:n:int} %{CODE:[a][b]}",
            "patterns": {"CODE": "[A-Z]+-%{INT}"},
        },
        "at ::1 took 3.5 ms, 4 AB-17",
        {"ip": "::1", "ms": 3.5, "n": 4, "a.b": "AB-17"},
    ),
    (
        {
            "format": "grok",
            "pattern": "%{COMMONAPACHELOG}",
            "schema": "clientip STRING, verb STRING, response INT, bytes BIGINT",
        },
        '10.0.0.1 - ann [10/Oct/2026:13:55:36 +0000] "GET /a?b=c HTTP/1.1" 200 2326',
        {"clientip": "10.0.0.1", "verb": "GET", "response": 200, "bytes": 2326},
    ),
]


@pytest.mark.parametrize(("options", "text", "row"), FORMATS)
def test_formats(options: dict[str, Any], text: str, row: dict[str, Any]) -> None:
    result = run(DecodeProcessor(**options), raw(text, None, text))
    if "NOT NULL" in options.get("schema", ""):
        assert result.bad == {1: "missing_field"}
        assert result.rows == [row, row]
    else:
        assert not result.bad
        assert result.rows == [row, dict.fromkeys(row), row]


FAULTS: list[tuple[dict[str, Any], str | bytes, str, str]] = [
    ({"format": "json", "schema": "id INT"}, '{"id": 1', "malformed_json", "line 1 column 8"),
    ({"format": "json", "schema": "id INT"}, "", "malformed_json", "not JSON"),
    ({"format": "json", "schema": "id INT"}, b'{"id": "\xff"}', "invalid_utf8", "byte 9"),
    (
        {"format": "json", "schema": "a STRUCT<b: ARRAY<INT>>"},
        '{"a": {"b": [1, "x"]}}',
        "wrong_type",
        "'a.b[1]'",
    ),
    (
        {"format": "json", "schema": "id INT, at TIMESTAMP", "timestamps": "epoch_s"},
        '{"id": 2, "at": "2026-01-31T12:00:00Z"}',
        "wrong_type",
        "not an integer, the seconds since 1970",
    ),
    ({"format": "json", "schema": "id TINYINT"}, '{"id": 200}', "out_of_range", "beyond TINYINT"),
    ({"format": "csv", "schema": "a INT, b INT"}, "1", "malformed_csv", "has 1 fields, not 2"),
    ({"format": "csv", "schema": "a INT"}, "1\n2", "malformed_csv", "contains 2 CSV records"),
    ({"format": "csv", "schema": "a STRING"}, '"x', "malformed_csv", "end of"),
    ({"format": "csv", "schema": "a STRING, b INT"}, "x,1.5", "wrong_type", "column 'b' is \"1.5\""),
    ({"format": "kv", "schema": "a INT"}, "a=1 oops b=2", "malformed_kv", "character 5"),
    ({"format": "kv", "schema": "a INT"}, 'a="1"b', "malformed_kv", "character 6"),
    ({"format": "kv", "schema": "a INT"}, b"a=\xff", "invalid_utf8", "byte 3"),
    ({"format": "kv", "schema": "a INT NOT NULL"}, "b=1", "missing_field", "column 'a'"),
    ({"format": "regex", "pattern": "(?P<a>x)"}, "yyy", "no_match", '"yyy"'),
    ({"format": "grok", "pattern": "%{WORD:a:int}"}, "abc", "wrong_type", "column 'a'"),
]


@pytest.mark.parametrize(("options", "text", "code", "message"), FAULTS)
@pytest.mark.parametrize("many", [1, 100])
def test_what_does_not_fit_is_refused_alone(
    options: dict[str, Any], text: str | bytes, code: str, message: str, many: int
) -> None:
    record = ",".join("1" for _ in options.get("schema", "").split(","))
    good = {"json": '{"id": 1}', "csv": record, "kv": "a=1", "regex": "x", "grok": "12"}
    fine = good[options["format"]]
    result = run(DecodeProcessor(**options), raw(*[fine] * many, text, *[fine] * many))
    assert result.bad == {many: code}
    assert message in result.message(many)
    assert result.offsets == [*range(many), *range(many + 1, 2 * many + 1)]


def test_other_columns_stay_and_the_result_may_be_a_struct() -> None:
    events = batch_of(
        "id INT, body BINARY, x STRING",
        [{"id": 1, "body": b'{"y": 2}', "x": "a"}, {"id": 2, "body": None, "x": "b"}],
    )
    step = {"format": "json", "field": "BODY", "schema": "y INT"}
    assert run(DecodeProcessor(**step), events).rows == [
        {"id": 1, "x": "a", "y": 2},
        {"id": 2, "x": "b", "y": None},
    ]
    assert run(DecodeProcessor(**step, keep=False), events).rows == [{"y": 2}, {"y": None}]
    inside = run(DecodeProcessor(**step, into="body"), events)
    assert inside.rows == [{"id": 1, "x": "a", "body": {"y": 2}}, {"id": 2, "x": "b", "body": {"y": None}}]
    assert inside.offsets == [0, 1]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"format": "json"}, "missing_field", "schema"),
    ({"format": "json", "schema": "id TEXT"}, "invalid_schema", "schema"),
    ({"format": "json", "schema": "id INT", "field": "vlaue"}, "unknown_column", "field"),
    ({"format": "json", "schema": "Other INT"}, "duplicate_column", "into"),
    ({"format": "json", "schema": "x INT", "field": "other"}, "sql_type", "field"),
    ({"format": "regex"}, "missing_field", "pattern"),
    ({"format": "regex", "pattern": "(?P<a>"}, "invalid_pattern", "pattern"),
    ({"format": "regex", "pattern": "abc"}, "invalid_pattern", "pattern"),
    ({"format": "regex", "pattern": "(?P<a>x)", "schema": "b INT"}, "unknown_column", "schema"),
    ({"format": "grok", "pattern": "%{NUMBR:a}"}, "invalid_pattern", "pattern"),
    ({"format": "grok", "pattern": "%{NUMBER:a:date}"}, "invalid_pattern", "pattern"),
    (
        {"format": "grok", "pattern": "%{A:a}", "patterns": {"A": "%{B}", "B": "%{A}"}},
        "invalid_pattern",
        "pattern",
    ),
    ({"format": "avro"}, "missing_field", "schema_file"),
    ({"format": "avro", "registry": {"url": "http://nowhere"}}, "missing_field", "schema"),
    ({"format": "avro", "schema_file": "/nonexistent/x.avsc"}, "unreadable_file", "schema_file"),
    ({"format": "protobuf"}, "missing_field", "schema_file"),
]


@pytest.mark.parametrize(("options", "code", "path"), REFUSED)
def test_a_step_that_cannot_work_is_refused_at_its_place(
    options: dict[str, Any], code: str, path: str
) -> None:
    (problem,) = refusals(DecodeProcessor(**options), batch_of("value STRING, other INT", []))
    assert (problem.code, problem.path) == (code, path)


def test_an_option_of_another_format_is_refused() -> None:
    with pytest.raises(ValidationError) as error:
        DecodeProcessor(format="json", schema="a INT", delimiter=";", pattern="x")
    assert [(e["loc"], e["msg"]) for e in error.value.errors()] == [
        (("delimiter",), "Value error, can't be used with format 'json'"),
        (("pattern",), "Value error, can't be used with format 'json'"),
    ]


def test_every_usual_pattern_is_a_regular_expression() -> None:
    from penstock.processors.formats.grok_patterns import PATTERNS
    from penstock.processors.formats.patterns import grok

    for name in PATTERNS:
        assert "found" in grok(f"%{{{name}:found}}", {}).schema.names


@pytest.mark.parametrize("text", ['"' + "a" * 50_000, "x" * 50_000 + ":", "1" * 5_000 + "z"])
def test_hostile_text_does_not_keep_the_usual_patterns_busy(text: str) -> None:
    step = DecodeProcessor(format="grok", pattern="^%{QS:q}$|^%{URI:u}$|^%{IP:i}$")
    assert run(step, raw(text)).bad == {0: "no_match"}
