from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import types as is_

from penstock.streams.ddl import Parser
from tests.processors.scripts import Ran, Script, no_processes_left, run

SCHEMA = pa.schema(
    list(
        Parser(
            """
    flag BOOLEAN, tiny TINYINT, small SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, text STRING, bin BINARY,
    day DATE, t TIMESTAMP, z TIMESTAMP_NTZ, n DECIMAL(38,10), whole DECIMAL(5,0),
    longs ARRAY<BIGINT>, nest ARRAY<ARRAY<DOUBLE>>, m MAP<STRING, BIGINT>, ints MAP<INT, STRING>,
    days MAP<DATE, DOUBLE>, deep ARRAY<STRUCT<m: MAP<STRING, ARRAY<BIGINT>>, b: BINARY>>,
    s STRUCT<a: BIGINT, f: DOUBLE, t: TIMESTAMP, `__proto__`: STRING, d: DECIMAL(10,2)>,
    times MAP<TIMESTAMP, STRUCT<x: FLOAT>>
    """
        ).columns()
    )
)
WIDE = Context(prec=60)


@pytest.fixture(autouse=True, scope="module")
def tidy() -> Iterator[None]:
    with no_processes_left():
        yield


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """All values of a type, as pyarrow gives them."""
    if is_.is_struct(kind):
        return st.fixed_dictionaries({field.name: st.none() | values(field.type) for field in kind})
    if is_.is_map(kind):
        return st.dictionaries(values(kind.key_type), st.none() | values(kind.item_type), max_size=3)
    if is_.is_list(kind):
        return st.lists(st.none() | values(kind.value_type), max_size=3)
    if is_.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        safe = st.sampled_from([0, 1, -limit, limit - 1])
        edges = st.sampled_from([2**53, 2**53 - 1, -(2**53) - 1]) if kind.bit_width == 64 else safe
        return safe | edges | st.integers(-limit, limit - 1)
    if is_.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if is_.is_decimal(kind):
        digits = st.integers(-(10**kind.precision) + 1, 10**kind.precision - 1)
        return digits.map(lambda number: Decimal(number).scaleb(-kind.scale, WIDE))
    if is_.is_date(kind):
        return st.dates()
    if is_.is_timestamp(kind):
        return st.datetimes(timezones=st.just(UTC) if kind.tz else st.none())
    if is_.is_binary(kind):
        return st.binary(max_size=5)
    return st.booleans() if is_.is_boolean(kind) else st.text(max_size=5)


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit; NaN is NaN, and the zeros differ."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


rows = st.fixed_dictionaries({field.name: st.none() | values(field.type) for field in SCHEMA})


@pytest.fixture(scope="module")
def copier() -> Script:
    return Script(SCHEMA, inline="function processBatch(events) { return events.map(e => ({...e})) }")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(events=st.lists(rows, min_size=1, max_size=3))
def test_every_value_comes_back_as_it_went(copier: Script, events: list[dict[str, Any]]) -> None:
    ran = copier(*events)
    assert ran.faults == []
    assert same(ran.rows, events)


@pytest.fixture(scope="module")
def becomes() -> Any:
    """A value, in JavaScript, as it arrives in a column of a type; or the code of the refusal."""
    scripts: dict[str, Script] = {}

    def make(kind: str, value: str) -> Any:
        if kind not in scripts:
            inline = "function processBatch(events) { for (const e of events) e.v = (0, eval)(e.t) }"
            scripts[kind] = Script(f"t STRING, v {kind}", inline=inline)
        ran: Ran = scripts[kind]({"t": value})
        return ran.rows[0]["v"] if ran.rows else ran.faults[0][1]

    return make


@pytest.mark.parametrize(
    ("kind", "cases"),
    [
        (
            "BIGINT",
            {
                "5": 5,
                "5.0": 5,
                "-0": 0,
                "9007199254740993n": 2**53 + 1,
                "-(2n ** 63n)": -(2**63),
                "2n ** 63n": "out_of_range",
                "2 ** 53": "wrong_type",
                "1.5": "wrong_type",
                "NaN": "wrong_type",
                "'5'": "wrong_type",
                "true": "wrong_type",
                "[5]": "wrong_type",
                "undefined": None,
            },
        ),
        ("TINYINT", {"127": 127, "128": "out_of_range", "128n": "out_of_range"}),
        (
            "DOUBLE",
            {"1": 1.0, "0.1": 0.1, "1e300": 1e300, "2 ** 53": 2.0**53, "7n": 7.0, "'1'": "wrong_type"},
        ),
        ("FLOAT", {"0.5": 0.5, "1e39": "out_of_range", "Infinity": math.inf}),
        ("STRING", {"'ä😀\\0'": "ä😀\0", "'\\ud800'": "bad_text", "5": "wrong_type", "({})": "wrong_type"}),
        ("BOOLEAN", {"true": True, "0": "wrong_type"}),
        (
            "DECIMAL(10,2)",
            {"'1.50'": Decimal("1.50"), "0.1": Decimal("0.10"), "3n": Decimal(3), "0.125": "out_of_range"},
        ),
        (
            "DATE",
            {
                "'2026-02-03'": date(2026, 2, 3),
                "new Date(Date.UTC(2026, 1, 3, 23))": date(2026, 2, 3),
                "0": date(1970, 1, 1),
                "'2026-02-30'": "out_of_range",
                "new Date(NaN)": "wrong_type",
            },
        ),
        (
            "TIMESTAMP",
            {
                "'2026-02-03T04:05:06.000007Z'": datetime(2026, 2, 3, 4, 5, 6, 7, UTC),
                "'2026-02-03T06:05:06+02:00'": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
                "new Date(1500)": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
                "1500": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
                "'soon'": "wrong_type",
                "1e15": "wrong_type",
            },
        ),
        ("TIMESTAMP_NTZ", {"new Date(1500)": datetime(1970, 1, 1, 0, 0, 1, 500_000)}),
        ("BINARY", {"'AQI='": b"\1\2", "new Uint8Array([1, 2])": b"\1\2", "'!'": "wrong_type"}),
        ("ARRAY<BIGINT>", {"[1, 2n, null]": [1, 2, None], "({})": "wrong_type", "[0.5]": "wrong_type"}),
        (
            "MAP<STRING, DOUBLE>",
            {"({a: 1})": {"a": 1.0}, "new Map([['a', 1]])": {"a": 1.0}, "[]": "wrong_type"},
        ),
        ("STRUCT<a: INT>", {"({a: 1})": {"a": 1}, "({})": {"a": None}, "({b: 1})": "extra_property"}),
    ],
)
def test_what_a_script_may_give(becomes: Any, kind: str, cases: dict[str, Any]) -> None:
    for text, expected in cases.items():
        assert becomes(kind, text) == expected, text


def test_what_a_script_is_given() -> None:
    given = "i INT, l BIGINT, d DOUBLE, n DECIMAL(5,2), t TIMESTAMP, z TIMESTAMP_NTZ, y DATE, b BINARY"
    row = {
        "i": 1,
        "l": 2**60 + 1,
        "d": math.nan,
        "n": Decimal("1.50"),
        "t": datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC),
        "z": datetime(2026, 1, 2, 3, 4),
        "y": date(2026, 1, 2),
        "b": b"\1\2",
    }
    ran = run("console.log(...Object.values(events[0]).map(v => typeof v + ' ' + v))", row, given=given)
    assert ran.logs == [
        "number 1 bigint 1152921504606846977 number NaN string 1.50 string 2026-01-02T03:04:05.6Z"
        " string 2026-01-02T03:04:00 string 2026-01-02 string AQI="
    ]
    assert same(ran.rows, [row])
