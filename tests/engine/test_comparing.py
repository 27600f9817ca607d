from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.trials.differences import Difference, Events
from penstock.frames.hidden import EVENT
from tests.processors.arrow_kit import EVENT_COLUMN

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def events(*rows: dict[str, Any], made: bool = False, **types: pa.DataType) -> Events:
    """Events with columns of some types, `made` from several samples or each from one."""
    known = [{} if made else {"sample": i, "key": f"k{i}", "sinks": ["lake"]} for i in range(len(rows))]
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()}
    return Events(pa.table({**columns, EVENT: pa.array(known, EVENT_COLUMN)}))


def told(differences: Any) -> list[tuple[str, Any, Any]]:
    return [(each.where, each.expected, each.actual) for each in differences]


@pytest.mark.parametrize(
    ("kind", "actual", "expected"),
    [
        (pa.int64(), 5, 5.0),
        (pa.float64(), 5.0, 5),
        (pa.float64(), 0.1 + 0.2, 0.3),
        (pa.float32(), 0.1, 0.1),
        (pa.decimal128(10, 2), Decimal("95.20"), 95.2),
        (pa.decimal128(10, 2), Decimal("95.20"), "95.2"),
        (pa.timestamp("us", tz="UTC"), AT, "2026-01-02T04:04:05+01:00"),
        (pa.timestamp("us", tz="UTC"), AT, "2026-01-02 03:04:05"),
        (pa.binary(), b"\x00\xff", "AP8="),
        (pa.string(), None, None),
        (pa.list_(pa.int64()), [1, 2], [1, 2.0]),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1}, {"a": 1}),
        (pa.map_(pa.string(), pa.int64()), [("x", 1)], {"x": 1}),
    ],
)
def test_values_that_are_the_same(kind: pa.DataType, actual: Any, expected: Any) -> None:
    assert not list(events({"x": actual}, x=kind).equal([{"x": expected}], "output"))


@pytest.mark.parametrize(
    ("kind", "actual", "expected"),
    [
        (pa.int64(), 5, 6),
        (pa.int64(), 5, "5"),
        (pa.string(), "5", 5),
        (pa.int64(), 1, True),
        (pa.string(), None, "x"),
        (pa.string(), "x", None),
        (pa.list_(pa.int64()), [1], [1, 2]),
        (pa.list_(pa.int64()), [1], 1),
        (pa.map_(pa.string(), pa.int64()), [("x", 1)], {}),
        (pa.map_(pa.string(), pa.int64()), [], {"x": 1}),
    ],
)
def test_values_that_are_not(kind: pa.DataType, actual: Any, expected: Any) -> None:
    (difference,) = events({"x": actual}, x=kind).equal([{"x": expected}], "output")
    assert difference.where.startswith("output[0].x")


def test_fields_that_are_missing_and_fields_too_many() -> None:
    have = events({"id": 1, "gross": 2.0}, id=pa.int64(), gross=pa.float64(), note=pa.string())
    missing, extra = have.equal([{"id": 1, "gros": 2.0}], "output")
    assert (missing.where, missing.message) == (
        "output[0].gros",
        "there is no such field (did you mean 'gross'?)",
    )
    assert (extra.where, extra.message, extra.actual) == ("output[0].gross", "is not expected", 2.0)


def test_events_are_paired_to_tell_what_differs() -> None:
    have = events({"id": 1}, {"id": 2}, {"id": 3}, id=pa.int64())
    assert told(have.equal([{"id": 1}, {"id": 5}, {"id": 3}], "output")) == [("output[1].id", 5, 2)]
    assert told(have.equal([{"id": 1}, {"id": 3}], "output")) == [
        ("output[1]", None, {"id": 2, "$meta": {"offset": 1, "key": "k1", "sinks": ["lake"]}})
    ]
    assert told(have.equal([{"id": n} for n in (1, 2, 9, 3)], "output")) == [("output[2]", {"id": 9}, None)]


def test_order_counts_where_there_is_one() -> None:
    turned = [{"id": 2}, {"id": 1}]
    (difference,) = events({"id": 1}, {"id": 2}, id=pa.int64()).equal(turned, "output")
    assert difference.message == "the same events in a different order"
    made = events({"id": 1}, {"id": 2}, id=pa.int64(), made=True)
    assert not list(made.equal(turned, "output"))
    assert told(made.equal([{"id": 2}, {"id": 3}], "output")) == [("output[1].id", 3, 1)]


def test_what_is_known_of_an_event_is_compared_where_it_is_expected() -> None:
    have = events({"id": 1}, id=pa.int64())
    assert not list(have.equal([{"id": 1, "$meta": {"key": "k0", "sinks": ["lake"]}}], "output"))
    assert told(have.equal([{"id": 1, "$meta": {"key": "other"}}], "output")) == [
        ("output[0].$meta.key", "other", "k0")
    ]


def test_contains_looks_at_the_fields_that_are_named() -> None:
    kind = pa.struct([("city", pa.string()), ("zip", pa.string())])
    have = events(
        {"id": 1, "ship": {"city": "Ulm", "zip": "1"}}, {"id": 2, "ship": None}, id=pa.int64(), ship=kind
    )
    assert not list(have.contain([{"ship": {"city": "Ulm"}}, {"id": 2}], "output"))
    assert told(have.contain([{"id": 1, "ship": {"city": "Bonn"}}], "output")) == [
        ("output.contains[0].ship.city", "Bonn", "Ulm")
    ]
    (nothing,) = events(id=pa.int64()).contain([{"id": 1}], "output")
    assert nothing == Difference(
        where="output.contains[0]", message="there are no events", expected={"id": 1}
    )


def test_patterns() -> None:
    kind = pa.struct([("city", pa.string())])
    have = events({"id": 17, "ship": {"city": "Ulm"}, "ok": True}, id=pa.int64(), ship=kind, ok=pa.bool_())
    assert not list(have.match([{"id": "^1[0-9]$", "ship.city": "lm", "ok": "true"}], "output"))
    assert told(have.match([{"id": "^1$"}, {"none": ""}], "output")) == [
        ("output.matches[0]", {"id": "^1$"}, None),
        ("output.matches[1]", {"none": ""}, None),
    ]
