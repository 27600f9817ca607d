from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError, TooLarge, UnsupportedMediaType
from penstock.streams.decode import Decoded, decode
from penstock.streams.decode.compression import decompress
from penstock.streams.events import HEADERS, KEY, META, RAW, VALUE, payload_schema, to_json

ARROW = "application/vnd.apache.arrow.stream"
EVENTS = "application/vnd.penstock.events+json"
HEADERS_TYPE = META.field(HEADERS).type


def values(found: Decoded) -> list[bytes]:
    return found.batch.column(VALUE).to_pylist()


def faults(found: Decoded) -> list[tuple[int, str]]:
    return [(misfit.line, misfit.code) for misfit in found.misfits]


# Text and bytes


def test_text_is_an_event_per_line() -> None:
    assert values(decode(b"a\r\n\n b \nc", "text/plain; charset=UTF-8", None)) == [b"a", b"", b" b ", b"c"]
    assert values(decode(b"a\n", "text/plain", None)) == [b"a"]
    assert values(decode(b"", "text/plain", None)) == []


def test_text_that_is_not_utf8_is_a_misfit_of_its_line() -> None:
    found = decode(b"a\nb\xff\nc\n", "text/plain", None)
    assert values(found) == [b"a", b"c"]
    assert faults(found) == [(2, "invalid_utf8")]


def test_bytes_are_one_event() -> None:
    assert values(decode(b"\xff\n\x00", "application/octet-stream", None)) == [b"\xff\n\x00"]
    assert values(decode(b"\xef\xbb\xbf", "application/octet-stream", None)) == [b"\xef\xbb\xbf"]
    assert values(decode(b"", "application/octet-stream", None)) == []


# Content types


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded"])
def test_without_a_content_type_the_body_tells(content_type: str | None) -> None:
    assert values(decode(b' [1, {"a": 2}]', content_type, None)) == [b"1", b'{"a": 2}']
    assert values(decode(b"hello\n1", content_type, None)) == [b"hello", b"1"]
    assert decode(b'{"a": 1}', None, payload_schema("a INT")).batch.to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(
    ("content_type", "ddl", "says"),
    [
        ("application/xml", None, "'application/xml' is not accepted"),
        ("nonsense", None, "'nonsense' is not accepted"),
        ("application/json; charset=latin-1", None, "the charset 'latin-1' is not UTF-8"),
        ("text/plain", "a INT", "has no columns"),
        ("application/octet-stream", "a INT", "has no columns"),
        (None, "a INT", "has no columns"),
    ],
)
def test_types_that_are_refused(content_type: str | None, ddl: str | None, says: str) -> None:
    with pytest.raises(UnsupportedMediaType, match=says) as caught:
        decode(b"hello", content_type, ddl and payload_schema(ddl))
    assert caught.value.status == 415
    hint = caught.value.problems[0].hint or ""
    assert "application/x-ndjson" in hint
    assert ("text/plain" in hint) == (ddl is None)


def test_names_of_types_are_case_insensitive() -> None:
    assert values(decode(b"1", 'Application/JSON; Charset="utf-8"', None)) == [b"1"]


# Arrow


def ipc(table: pa.Table, chunk: int | None = None, codec: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, chunk)
    return sink.getvalue().to_pybytes()


def test_arrow_columns_go_by_name() -> None:
    table = pa.table(
        {
            "extra": [1, 2, 3],
            "name": pa.array(["a", None, "a"]).dictionary_encode(),
            "id": pa.array([1, 2, 3], pa.int16()),
            KEY: ["k", None, None],
        }
    )
    schema = payload_schema("id BIGINT, name STRING, at DATE")
    found = decode(ipc(table, 2), ARROW, schema, key=b"default")
    assert found.misfits == []
    assert found.batch.to_pylist() == [
        {"id": 1, "name": "a", "at": None, KEY: b"k"},
        {"id": 2, "name": None, "at": None, KEY: b"default"},
        {"id": 3, "name": "a", "at": None, KEY: b"default"},
    ]
    assert found.batch.schema.names == ["id", "name", "at", KEY]


def test_arrow_values_that_do_not_fit() -> None:
    table = pa.table({"id": [1, 2**40, 3, None], "l": [[1], [1], [300], [1]]})
    found = decode(ipc(table), ARROW, payload_schema("id INT NOT NULL, l ARRAY<TINYINT>"))
    assert found.batch.to_pylist() == [{"id": 1, "l": [1]}]
    assert faults(found) == [(2, "wrong_type"), (3, "wrong_type"), (4, "missing_field")]
    assert found.misfits[0].reason == "column 'id' has a value of int64 that is not one of int32"
    assert json.loads(found.misfits[1].value) == {"id": 3, "l": [300]}


def test_raw_arrow_has_values_of_text_or_bytes() -> None:
    for kind in (pa.string(), pa.large_binary()):
        table = pa.table(
            {VALUE: pa.array(["a", None], kind), HEADERS: pa.array([[("h", "1")], []], HEADERS_TYPE)}
        )
        found = decode(ipc(table), ARROW, None)
        assert found.batch.to_pylist() == [{VALUE: b"a", HEADERS: [("h", "1")]}, {VALUE: None, HEADERS: []}]
    assert faults(decode(ipc(pa.table({VALUE: [1]})), ARROW, None)) == [(1, "wrong_type")]
    assert faults(decode(ipc(pa.table({"x": [1]})), ARROW, None)) == [(1, "missing_field")]


def test_arrow_that_cannot_be_read_is_one_misfit() -> None:
    whole = ipc(pa.table({"id": list(range(100))}))
    schema = payload_schema("id BIGINT")
    for cut in (1, 50, len(whole) // 2, len(whole) - 100):
        assert faults(decode(whole[:cut], ARROW, schema)) == [(1, "bad_arrow")]
    assert decode(b"", ARROW, schema).batch.num_rows == 0


def test_arrow_of_any_writer_is_read() -> None:
    names = ["a", None, "b" * 20] * 100
    plain = pa.table({"id": list(range(300)), "name": names, "tags": [[name] for name in names]})
    views = plain.set_column(1, "name", pa.array(names, pa.string_view()))
    views = views.set_column(2, "tags", pa.array([[name] for name in names], pa.list_(pa.string_view())))
    small = plain.set_column(1, "name", plain["name"].dictionary_encode())
    schema = payload_schema("id BIGINT, name STRING, tags ARRAY<STRING>")
    for table in (plain, views, small, views.slice(7, 100)):
        for codec in (None, "zstd", "lz4"):
            found = decode(ipc(table, 50, codec), ARROW, schema)
            assert found.misfits == []
            assert found.batch.to_pylist() == plain.slice(300 - len(table) and 7, len(table)).to_pylist()


def one_value_for_many(rows: int) -> pa.Array:
    """Views of one long value."""
    kind = pa.binary_view()
    none, views, *data = pa.array([b"x" * 1_000_000], kind).buffers()
    return pa.Array.from_buffers(kind, rows, [none, pa.py_buffer(views.to_pybytes()[:16] * rows), *data])


@pytest.mark.parametrize(
    "column",
    [
        lambda: pa.nulls(50_000_000),
        lambda: pa.array([b"x" * 1_000_000]).dictionary_encode().take(pa.array([0] * 100)),
        lambda: one_value_for_many(100),
        lambda: pa.array([b"\0" * 100_000_000]),
    ],
    ids=["nulls", "dictionary", "views", "compressed"],
)
def test_arrow_that_takes_all_the_memory_is_refused(column: Callable[[], pa.Array]) -> None:
    body = ipc(pa.table({VALUE: column()}), codec="zstd")
    assert len(body) < 100_000
    assert faults(decode(body, ARROW, None)) == [(1, "too_large")]


def test_a_view_of_a_null_row_points_anywhere() -> None:
    """Arrow does not check it, and its cast follows it."""
    names = pa.array(["a", None], pa.string_view())
    valid, views, *data = names.buffers()
    broken = pa.py_buffer(views.to_pybytes()[:16] + b"\xff\xff\xff\x7f" * 4)
    table = pa.table({VALUE: pa.Array.from_buffers(pa.string_view(), 2, [valid, broken, *data])})
    table.validate(full=True)
    assert values(decode(ipc(table), ARROW, None)) == [b"a", None]


def test_a_decimal_of_an_impossible_scale() -> None:
    """Arrow makes one, and its cast reads outside of its tables."""
    table = pa.table({"a": pa.nulls(1, pa.decimal256(50, 16_777_219))})
    assert faults(decode(ipc(table), ARROW, payload_schema("a DECIMAL(5,2)"))) == [(1, "bad_arrow")]


NAMES = ["a", None, "b" * 20]
TABLE = pa.table(
    {
        "id": [1, 2, 3],
        "name": pa.array(NAMES).dictionary_encode(),
        "v": pa.array(NAMES, pa.string_view()),
        "l": pa.array([["x"], None, []], pa.large_list(pa.large_string())),
        "m": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "d": pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal256(50, 3)),
        "t": pa.array([1000, None, 3], pa.timestamp("ns", "Europe/Berlin")),
        KEY: NAMES,
    }
)
DDL = "id INT, name STRING, v BINARY, l ARRAY<STRING>, m MAP<STRING, INT>, d DECIMAL(20,2), t TIMESTAMP"


@given(data=st.data(), codec=st.sampled_from([None, "zstd"]))
def test_damaged_arrow_never_raises(data: st.DataObject, codec: str | None) -> None:
    body = bytearray(ipc(TABLE, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = decode(bytes(body), ARROW, payload_schema(DDL))
    found.batch.validate(full=True)


# Events as the API shows them


def test_what_was_read_can_be_sent_again() -> None:
    schema = payload_schema(
        "i BIGINT, f FLOAT, d DOUBLE, c DECIMAL(38,10), t TIMESTAMP, n TIMESTAMP_NTZ, da DATE, b BINARY,"
        " s STRUCT<x: INT, y: ARRAY<DATE>>, m MAP<TIMESTAMP, BINARY>, k MAP<DOUBLE, DECIMAL(3,1)>"
    )
    lines = (
        '{"i":9007199254740993,"f":0.1,"d":"NaN","c":"1234567890123456789012345678.0123456789",'
        '"t":"2026-01-31T12:00:00.123456Z","n":"0001-01-01T00:00:00.1","da":"9999-12-31","b":"AP8=",'
        '"s":{"x":null,"y":["2026-01-31",null]},"m":{"2026-01-31T12:00:00Z":"AA=="},"k":{"0.1":"9.9","NaN":1}}\n{}'
    )
    first = decode(lines.encode(), "application/x-ndjson", schema, key=b"\xff")
    assert first.misfits == []
    shown = json.dumps(to_json(first.batch, 0, 0, schema), allow_nan=False)
    again = decode(shown.encode(), EVENTS, schema)
    assert again.misfits == []
    assert json.dumps(to_json(again.batch, 0, 0, schema), allow_nan=False) == shown
    assert str(again.batch.to_pylist()) == str(first.batch.to_pylist())


@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=4),
            st.none() | st.binary(max_size=4),
            st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
        ),
        max_size=4,
    )
)
def test_raw_events_can_be_sent_again(rows: list[tuple[Any, Any, Any]]) -> None:
    batch = pa.record_batch(
        [
            pa.array([row[0] for row in rows], pa.binary()),
            pa.array([row[1] for row in rows], pa.binary()),
            pa.array([list(row[2].items()) for row in rows], HEADERS_TYPE),
        ],
        names=[VALUE, KEY, HEADERS],
    )
    shown = to_json(batch, 0, 0, RAW)
    again = decode(json.dumps(shown).encode(), EVENTS, None)
    assert again.misfits == []
    assert to_json(again.batch, 0, 0, RAW) == shown


def test_columns_that_no_event_has_are_left_out() -> None:
    assert decode(b'{"value":"a","headers":{}}', EVENTS, None).batch.schema.names == [VALUE]
    found = decode(b'[{"value":"a","key":"k"},{"value":"b","headers":{"h":"1"}}]', EVENTS, None, key=b"d")
    assert found.batch.to_pylist() == [
        {VALUE: b"a", KEY: b"k", HEADERS: None},
        {VALUE: b"b", KEY: b"d", HEADERS: [("h", "1")]},
    ]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("1", "not_an_object"),
        ("{}", "missing_field"),
        ('{"columns":{}}', "missing_field"),
        ('{"value":"a","columns":{}}', "unknown_member"),
        ('{"value":"a","Key":"k"}', "unknown_member"),
        ('{"value":1}', "wrong_type"),
        ('{"value":{"base64":"AAA"}}', "wrong_type"),
        ('{"value":{"base64":"AAA=","x":1}}', "wrong_type"),
        ('{"value":"a","key":1}', "wrong_type"),
        ('{"value":"a","headers":[]}', "wrong_type"),
        ('{"value":"a","headers":{"h":1}}', "wrong_type"),
    ],
)
def test_events_that_do_not_fit(event: str, code: str) -> None:
    found = decode(f'[{{"value":"good"}},{event}]'.encode(), EVENTS, None)
    assert values(found) == [b"good"]
    assert faults(found) == [(2, code)]
    assert found.misfits[0].value == event.encode()


def test_events_of_a_typed_stream_need_columns() -> None:
    schema = payload_schema("a INT")
    body = b'[{"columns":{"a":1},"offset":3,"time":"x"},{"columns":{"a":"x"}},{"value":"a"},{"columns":1}]'
    found = decode(body, EVENTS, schema)
    assert found.batch.to_pylist() == [{"a": 1}]
    assert faults(found) == [(2, "wrong_type"), (3, "missing_field"), (4, "not_an_object")]
    assert faults(decode(b"[{", EVENTS, schema)) == [(1, "not_json")]
    assert decode(b" ", EVENTS, schema).batch.num_rows == 0


# Encodings


def zstd(body: bytes) -> bytes:
    return pa.compress(body, "zstd", asbytes=True)


@pytest.mark.parametrize("encoding", [None, "identity", "gzip", "x-gzip", "ZSTD"])
@pytest.mark.parametrize("body", [b"", b"hello", b"x" * 3_000_000])
def test_bodies_are_inflated(encoding: str | None, body: bytes) -> None:
    sent = zstd(body) if encoding == "ZSTD" else gzip.compress(body) if "gzip" in (encoding or "") else body
    assert decompress(sent, encoding, 3_000_000) == body


def test_several_members_are_one_body() -> None:
    assert decompress(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", 10) == b"ab"


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_nothing_is_inflated_beyond_the_limit(encoding: str) -> None:
    body = b"\0" * 10_000_000
    sent = {"identity": body, "gzip": gzip.compress(body), "zstd": zstd(body)}[encoding]
    with pytest.raises(TooLarge) as caught:
        decompress(sent, encoding, 1000)
    assert caught.value.status == 413


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", [1, 5, -3])
def test_broken_encodings_are_refused(encoding: str, cut: int) -> None:
    body = bytes(range(256))
    sent = gzip.compress(body) if encoding == "gzip" else zstd(body)
    for broken in (b"hello world", sent[:cut]):
        with pytest.raises(PenstockError) as caught:
            decompress(broken, encoding, 1000)
        assert caught.value.status == 400
        assert caught.value.problems[0].code == "bad_encoding"


def test_unknown_encodings_are_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="'br' is not accepted") as caught:
        decompress(b"", "br", 10)
    assert caught.value.status == 415
