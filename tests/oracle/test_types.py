"""Values of all types, in any cuts, are what they were at the other end of a flow."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.oracle import ways
from tests.oracle.events import SOME_EXAMPLES, TIMESTAMP
from tests.oracle.rows import rows_of

pytestmark = pytest.mark.slow

SCHEMA = (
    "id BIGINT, text STRING, truth BOOLEAN, small INT, ratio DOUBLE, amount DECIMAL(20, 4), day DATE, "
    "at TIMESTAMP, bytes BINARY, list ARRAY<BIGINT>, pair STRUCT<x: INT, y: STRING>, "
    "map MAP<STRING, DOUBLE>"
)
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("truth", pa.bool_()),
        ("small", pa.int32()),
        ("ratio", pa.float64()),
        ("amount", pa.decimal128(20, 4)),
        ("day", pa.date32()),
        ("at", TIMESTAMP),
        ("bytes", pa.binary()),
        ("list", pa.list_(pa.int64())),
        ("pair", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("map", pa.map_(pa.string(), pa.float64())),
    ]
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LONGS, INTS = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
DAYS, MICROS = st.integers(-25_000, 50_000), st.integers(-(10**15), 4 * 10**15)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ROWS = st.fixed_dictionaries(
    {
        "id": LONGS,
        "text": maybe(TEXT),
        "truth": maybe(st.booleans()),
        "small": maybe(INTS),
        "ratio": maybe(FLOATS),
        "amount": maybe(st.integers(-(10**19), 10**19).map(lambda n: Decimal(n).scaleb(-4))),
        "day": maybe(DAYS),
        "at": maybe(MICROS),
        "bytes": maybe(st.binary(max_size=8)),
        "list": maybe(st.lists(maybe(LONGS), max_size=3)),
        "pair": maybe(st.fixed_dictionaries({"x": maybe(INTS), "y": maybe(TEXT)})),
        "map": maybe(st.dictionaries(TEXT, maybe(FLOATS), max_size=3).map(lambda d: list(d.items()))),
    }
)

STEPS = [
    {"type": "sql", "query": "SELECT * FROM input"},
    {"type": "filter", "where": "id = id"},
    {"type": "javascript", "inline": "function processBatch(events) { return events }"},
]


def varied(rows: list[dict[str, Any]]) -> bool:
    """Whether each field has a value somewhere."""
    return all(any(row[name] is not None for row in rows) for name in ARROW.names)


@given(
    rows=st.lists(ROWS, min_size=10, max_size=40).filter(varied),
    cuts=st.tuples(*[st.integers(0, 40)] * 2),
    data=st.data(),
)
@SOME_EXAMPLES
def test_values_stay_as_they_are(
    spark: SparkSession, rows: list[dict[str, Any]], cuts: tuple[int, int], data: st.DataObject
) -> None:
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in _storage().items()}
    batch = pa.RecordBatch.from_arrays(
        [columns[field.name].cast(field.type) for field in ARROW], schema=ARROW
    )
    job = ways.Job(STEPS, {"in": SCHEMA})
    first, second = sorted(cuts)
    parts = [batch.slice(0, first), batch.slice(first, second - first), batch.slice(second)]
    with tempfile.TemporaryDirectory() as root:
        ways.agree(
            spark,
            job,
            lambda streams: ways.Expected(ARROW.names, rows_of(streams["in"])),
            small={"in": batch},
            parts=[{"in": part} for part in parts],
            root=Path(root),
            max_events=data.draw(st.integers(max(1, len(rows) // 4), len(rows)), "max_events"),
        )


def _storage() -> dict[str, pa.DataType]:
    """The types of what hypothesis draws: days and microseconds are numbers."""
    numbers = {"day": pa.int32(), "at": pa.int64()}
    return {field.name: numbers.get(field.name, field.type) for field in ARROW}
