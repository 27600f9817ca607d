from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.streams.decode import Decoded, columns, decode
from penstock.streams.decode.results import Mismatch
from penstock.streams.decode.values import text_reader
from penstock.streams.events import VALUE, payload_schema
from tests.streams.decode.strategies import ODD_TEXTS, times

CSV = "text/csv"


def typed(ddl: str, body: str | bytes, content_type: str = CSV) -> Decoded:
    return decode(body.encode() if isinstance(body, str) else body, content_type, payload_schema(ddl))


def raw(body: bytes, content_type: str = CSV) -> list[Any]:
    found = decode(body, content_type, None)
    assert found.misfits == []
    return [json.loads(value) for value in found.batch.column(VALUE).to_pylist()]


def faults(found: Decoded) -> list[tuple[int, bytes, str]]:
    return [(misfit.line, misfit.value, misfit.code) for misfit in found.misfits]


def test_the_header_names_the_columns() -> None:
    found = typed("id BIGINT, name STRING, at DATE", 'other,name,id\r\nx,"a, ""b""\r\nc",1\r\n,,2\n')
    assert found.misfits == []
    assert found.batch.to_pylist() == [
        {"id": 1, "name": 'a, "b"\r\nc', "at": None},
        {"id": 2, "name": None, "at": None},
    ]


def test_an_empty_field_is_null_and_an_empty_text_is_quoted() -> None:
    found = typed("a STRING, b STRING", 'a,b\n,""\n')
    assert found.batch.to_pylist() == [{"a": None, "b": ""}]


def test_without_a_header_the_columns_come_in_order() -> None:
    found = typed("id BIGINT, name STRING", "1,a\n2\n3,b,c\n4,d", "text/csv; header=absent")
    assert found.batch.to_pylist() == [{"id": 1, "name": "a"}, {"id": 4, "name": "d"}]
    assert faults(found) == [(2, b"2", "wrong_length"), (3, b"3,b,c", "wrong_length")]


def test_values_are_parsed_and_misfits_named() -> None:
    found = typed(
        "i INT NOT NULL, d DOUBLE, c DECIMAL(5,2), ok BOOLEAN, t TIMESTAMP, tags ARRAY<INT>",
        "i,d,c,ok,t,tags\n"
        '1,1e3,1.5,TRUE,2026-01-31T12:00:00Z,"[1,2]"\n'
        "x,,,,,\n"
        ",1,,,,\n"
        "4,NaN,1,false,2026-01-31,\n"
        "5,1e999,,,,\n"
        "6,,1.255,,,\n"
        "7,,,1,,\n"
        '8,,,,,"[""a"", 1]"\n'
        "9,,,,,{\n"
        "0x1F,,,,,\n"
        "11,,\n",
    )
    assert found.batch.column("i").to_pylist() == [1, 4]
    assert [(m.line, m.code, m.reason) for m in found.misfits] == [
        (3, "wrong_type", "column 'i' is \"x\", not an integer (INT)"),
        (4, "missing_field", "column 'i' is null"),
        (6, "out_of_range", "column 'd' is Infinity, beyond DOUBLE"),
        (7, "out_of_range", "column 'c' is \"1.255\", which does not fit DECIMAL(5,2) exactly"),
        (8, "wrong_type", "column 'ok' is \"1\", not true or false (BOOLEAN)"),
        (9, "wrong_type", "column 'tags[0]' is \"a\", not an integer (INT)"),
        (10, "not_json", "column 'tags' not JSON: EOF while parsing an object at line 1 column 1"),
        (11, "wrong_type", "column 'i' is \"0x1F\", not an integer (INT)"),
        (12, "wrong_length", "the record has 3 fields, not 6"),
    ]
    assert found.misfits[5].value == b'8,,,,,"[""a"", 1]"'


def test_a_required_column_that_the_header_lacks() -> None:
    found = typed("id BIGINT, name STRING NOT NULL", "id\n1\n")
    assert found.batch.num_rows == 0
    assert found.misfits[0].reason == "column 'name' is missing"


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ('id,name\n1,"x\n2,y\n', "bad_csv", 3),
        ('id,name\n1,"x"y\n', "bad_csv", 2),
        ("name_of,who\n1,2\n", "bad_header", 1),
        ("id,id\n1,2\n", "bad_header", 1),
    ],
)
def test_bodies_of_which_nothing_can_be_read(body: str, code: str, line: int) -> None:
    found = typed("id BIGINT, name STRING", body)
    assert found.batch.num_rows == 0
    assert faults(found) == [(line, body.encode(), code)]


@pytest.mark.parametrize("body", [b"", b"\r\n\n", b"\xef\xbb\xbf", b"id,name", b"id,name\n"])
@pytest.mark.parametrize("ddl", [None, "id BIGINT, name STRING"])
def test_nothing_gives_no_events(body: bytes, ddl: str | None) -> None:
    found = decode(body, CSV, ddl and payload_schema(ddl))
    assert found.misfits == []
    assert found.batch.num_rows == 0
    assert found.batch.schema.equals(payload_schema(ddl))


def test_text_that_is_not_utf8_is_a_misfit_of_its_record() -> None:
    body = b"id,name\n1,a\n2,\xff\n3,c\n"
    found = typed("id BIGINT, name STRING", body)
    assert found.batch.column("id").to_pylist() == [1, 3]
    assert faults(found) == [(3, b"2,\xff", "invalid_utf8")]
    assert faults(decode(body, CSV, None)) == [(3, b"2,\xff", "invalid_utf8")]
    uneven = typed("id BIGINT, name STRING", body + b'4,"d\xc3\xa4"\n5,e,\xff\n')
    assert uneven.batch.column("name").to_pylist() == ["a", "c", "dä"]
    assert faults(uneven) == [(3, b"2,\xff", "invalid_utf8"), (6, b"5,e,\xff", "wrong_length")]


def test_raw_events_are_objects_of_strings() -> None:
    assert raw(b'a,"b,c"\n1,\n"",\xc3\xa4\n') == [{"a": "1", "b,c": None}, {"a": "", "b,c": "ä"}]
    assert raw(b"1,\n2,x\n", "text/csv;header=absent") == [["1", None], ["2", "x"]]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@given(st.lists(st.tuples(texts, texts, texts), max_size=5))
def test_what_a_csv_writer_writes_is_read_again(rows: list[tuple[str, str, str]]) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("a", "b", "c"), *rows])
    found = typed("a STRING, b STRING, c STRING", out.getvalue().encode())
    assert found.misfits == []
    assert [tuple(row.values()) for row in found.batch.to_pylist()] == rows


KINDS = [
    *(pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(5, 2), pa.decimal128(38, 10)),
]
fields = st.one_of(
    st.sampled_from([text.strip('"') for text in ODD_TEXTS.split()]),
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False).map(str),
    st.dates().map(str),
    times,
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.text(max_size=4),
)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(found=st.lists(st.none() | fields, min_size=1, max_size=3))
def test_columns_are_what_the_fields_one_by_one_give(kind: pa.DataType, found: list[str | None]) -> None:
    try:
        fast = columns.parse_texts(pa.array(found, pa.string()), kind)
    except columns.Unsure:
        return
    read = text_reader(kind)
    try:
        exact = [None if text is None else read(text) for text in found]
    except Mismatch as mismatch:
        pytest.fail(f"{found} taken as {fast}: {mismatch}")
    fast.validate(full=True)
    assert fast.equals(pa.array(exact, kind))
