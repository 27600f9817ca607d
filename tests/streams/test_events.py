from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.streams.casting import convert
from penstock.streams.events import HEADERS, KEY, RAW, VALUE, conform, payload_schema, stored_schema, to_json

WIDE = "id BIGINT, s STRUCT<x: INT, y: ARRAY<DATE>>, m MAP<INT, FLOAT>, l ARRAY<BIGINT>, t STRING"


def batch(ddl: str, *rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=payload_schema(ddl))


def moved(rows: list[Any], have: pa.DataType, to: pa.DataType) -> tuple[list[Any], list[bool]]:
    """What becomes of values in another type, and which of them were lost."""
    made, lost = convert(pa.array(rows, have), to)
    made.validate(full=True)
    assert made.type == to
    return made.to_pylist(), [False] * len(rows) if lost is None else lost.to_pylist()


def test_schemas() -> None:
    assert payload_schema(None) is RAW
    assert payload_schema("id INT").names == ["id"]
    assert stored_schema(None).names == [VALUE, KEY, HEADERS]
    assert stored_schema("id INT").names == ["id", KEY, HEADERS]


def test_a_batch_that_fits_is_not_copied() -> None:
    events = batch(WIDE, {"id": 1})
    assert conform(events, payload_schema(WIDE)) is events


def test_columns_are_ordered_added_left_out_and_widened() -> None:
    events = batch("a INT, b STRING, c INT", {"a": 1, "b": "x", "c": 3}, {"a": None, "b": None, "c": 4})
    schema = payload_schema("c BIGINT, d STRING, a DOUBLE")
    made = conform(events, schema)
    assert made.schema.equals(schema)
    assert made.to_pylist() == [{"c": 3, "d": None, "a": 1.0}, {"c": 4, "d": None, "a": None}]


def test_nested_columns_follow_too() -> None:
    events = batch(
        WIDE,
        {"id": 0},
        {"id": 1, "s": {"x": 1, "y": [date(2026, 1, 2)]}, "m": [(1, 0.5)], "l": [1, None], "t": "t"},
        {"id": 2, "s": {"x": None, "y": None}, "m": [], "l": [2**40], "t": None},
    )
    schema = payload_schema(
        "l ARRAY<INT>, s STRUCT<y: ARRAY<TIMESTAMP_NTZ>, z: INT>, m MAP<BIGINT, DOUBLE>, id STRING, t BINARY"
    )
    expected = [
        {"l": None, "s": None, "m": None, "id": None, "t": None},
        {
            "l": [1, None],
            "s": {"y": [datetime(2026, 1, 2)], "z": None},
            "m": [(1, 0.5)],
            "id": None,
            "t": b"t",
        },
        {"l": [None], "s": {"y": None, "z": None}, "m": [], "id": None, "t": None},
    ]
    made = conform(events, schema)
    made.validate(full=True)
    assert made.to_pylist() == expected
    assert conform(events.slice(1, 1), schema).to_pylist() == expected[1:2]
    assert conform(events.slice(0, 0), schema).num_rows == 0


@pytest.mark.parametrize(
    ("have", "rows", "to", "kept"),
    [
        (pa.int64(), [1, 2**40, None, -1], pa.int32(), [1, None, None, -1]),
        (pa.uint64(), [1, 2**63], pa.int64(), [1, None]),
        (pa.int64(), [1, 2**53 + 1], pa.float64(), [1.0, None]),
        (pa.float64(), [1.0, 1.5, float("inf")], pa.int32(), [1, None, None]),
        (pa.float64(), [0.5, 1e300, float("inf")], pa.float32(), [0.5, None, float("inf")]),
        (pa.int64(), [12, 10**9], pa.decimal128(5, 2), [Decimal("12.00"), None]),
        (
            pa.decimal128(5, 3),
            [Decimal("1.250"), Decimal("1.125")],
            pa.decimal128(5, 2),
            [Decimal("1.25"), None],
        ),
        (pa.decimal128(38, 0), [Decimal(3164626012681190311477502880264)], pa.decimal128(38, 10), [None]),
        (pa.decimal256(76, 0), [Decimal(10**60), Decimal(1)], pa.decimal128(38, 38), [None, None]),
        (pa.decimal256(76, 2), [Decimal("1.25")], pa.decimal128(5, 2), [Decimal("1.25")]),
        (pa.float64(), [1.5], pa.decimal128(5, 2), [None]),
        (pa.binary(), [b"a", b"\xff"], pa.string(), ["a", None]),
        (pa.large_string(), ["a"], pa.string(), ["a"]),
        (pa.string_view(), ["a"], pa.binary(), [b"a"]),
        (pa.binary(2), [b"ab"], pa.binary(), [b"ab"]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "a", None], pa.string(), ["a", "a", None]),
        (pa.string(), ["1"], pa.int32(), [None]),
        (pa.int32(), [1], pa.string(), [None]),
        (pa.bool_(), [True], pa.int32(), [None]),
        (pa.int64(), [1], pa.timestamp("us"), [None]),
        (pa.timestamp("ns"), [1_000, 1_001], pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 0, 1), None]),
        (pa.timestamp("s"), [0], pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, tzinfo=UTC)]),
        (
            pa.timestamp("s", "Europe/Berlin"),
            [0],
            pa.timestamp("us", "UTC"),
            [datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        (pa.timestamp("s", "UTC"), [0], pa.timestamp("us"), [None]),
        (pa.timestamp("s"), [0], pa.date32(), [None]),
        (pa.date64(), [0], pa.date32(), [date(1970, 1, 1)]),
        (pa.null(), [None], pa.int32(), [None]),
        (pa.list_(pa.int64()), [[1], [2**40, 1], None, []], pa.list_(pa.int8()), [[1], [None, 1], None, []]),
        (pa.large_list(pa.int64()), [[1], None], pa.list_(pa.int8()), [[1], None]),
        (pa.list_(pa.int64(), 1), [[1], None, [2]], pa.list_(pa.int64()), [[1], None, [2]]),
        (pa.map_("string", "int64"), [[("a", 2**40)]], pa.map_("string", "int8"), [[("a", None)]]),
        (pa.map_("string", "int64"), [[("1", 1)], None], pa.map_("int64", "int64"), [None, None]),
        (pa.struct({"a": "int64"}), [{"a": 2**40}, None], pa.struct({"a": "int8"}), [{"a": None}, None]),
        (pa.struct({"a": "int64"}), [{"a": 1}], pa.int64(), [None]),
    ],
)
def test_values_come_along_or_are_marked(
    have: pa.DataType, rows: list[Any], to: pa.DataType, kept: list[Any]
) -> None:
    made, lost = moved(rows, have, to)
    assert made == kept
    for before, after, gone in zip(rows, made, lost, strict=True):
        assert gone == (before is not None and (after is None or "None" in repr(after)))


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_only_what_does_not_fit_becomes_null(numbers: list[int | None]) -> None:
    made, lost = moved(numbers, pa.int64(), pa.int16())
    assert made == [n if n is not None and -(2**15) <= n < 2**15 else None for n in numbers]
    assert lost == [n is not None and n != m for n, m in zip(numbers, made, strict=True)]


def test_raw_events_as_json() -> None:
    events = pa.record_batch(
        {
            VALUE: pa.array([b"text", b"\xff", None]),
            HEADERS: pa.array([[("a", "b")], None, []], pa.map_(pa.string(), pa.string())),
        }
    )
    time = "2026-01-02T03:04:05.678Z"
    time_us = int(datetime.fromisoformat(time).timestamp() * 1_000_000) + 321
    assert to_json(events, 7, time_us, RAW) == [
        {"offset": 7, "time": time, "key": None, "headers": {"a": "b"}, "value": "text"},
        {"offset": 8, "time": time, "key": None, "headers": {}, "value": {"base64": "/w=="}},
        {"offset": 9, "time": time, "key": None, "headers": {}, "value": None},
    ]


def test_typed_events_as_json() -> None:
    schema = payload_schema(
        "i BIGINT, f FLOAT, d DOUBLE, c DECIMAL(20,8), t TIMESTAMP, n TIMESTAMP_NTZ, da DATE, b BINARY,"
        " ok BOOLEAN, s STRUCT<x: INT, y: ARRAY<DATE>>, m MAP<INT, FLOAT>, k MAP<BOOLEAN, STRING>"
    )
    row = {
        "i": 2**60 + 1,
        "f": 0.1,
        "d": float("-inf"),
        "c": Decimal("0.00000001"),
        "t": datetime(2026, 1, 2, 3, 4, 5, 120_000, tzinfo=UTC),
        "n": datetime(2026, 1, 2),
        "da": date(2026, 1, 2),
        "b": b"\x00\xff",
        "ok": True,
        "s": {"x": 1, "y": [date(1, 1, 1), None]},
        "m": [(-1, float("nan"))],
        "k": [(True, "yes")],
    }
    events = pa.RecordBatch.from_pylist([row, {}], schema=schema)
    events = events.append_column(KEY, pa.array([b"k", b"\xff"]))
    first, second = to_json(events, 0, 0, schema)
    assert first["key"] == "k"
    assert first["columns"] == {
        "i": 2**60 + 1,
        "f": 0.1,
        "d": "-Infinity",
        "c": "0.00000001",
        "t": "2026-01-02T03:04:05.12Z",
        "n": "2026-01-02T00:00:00",
        "da": "2026-01-02",
        "b": "AP8=",
        "ok": True,
        "s": {"x": 1, "y": ["0001-01-01", None]},
        "m": {"-1": "NaN"},
        "k": {"true": "yes"},
    }
    assert second["key"] == {"base64": "/w=="}
    assert second["columns"] == dict.fromkeys(schema.names)
    json.dumps([first, second], allow_nan=False)
