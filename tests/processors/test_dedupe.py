from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.frames.hidden import EVENT
from penstock.processors.dedupe import DedupeProcessor
from tests.processors.kit import applied, stage, through, with_event

Empty = Callable[[str], DataFrame]

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def judged(events: list[tuple[int, str | None]], within: int) -> tuple[list[int], list[int]]:
    """The rule in plain Python over (second, key) in the order of reading: who passes, and who is late."""
    passed: dict[str | None, list[int]] = {}
    passing, late = [], []
    latest = -(10**9)
    for number, (at, key) in enumerate(events):
        if latest - at > within:
            late.append(number)
        elif all(abs(at - other) > within for other in passed.get(key, [])):
            passing.append(number)
            passed.setdefault(key, []).append(at)
        latest = max(latest, at)
    return passing, late


def frame(spark: SparkSession, events: list[tuple[int | None, str | None]]) -> DataFrame:
    rows = [
        (number, None if at is None else BEGIN + timedelta(seconds=at), key)
        for number, (at, key) in enumerate(events)
    ]
    df = spark.createDataFrame(rows, "n BIGINT, at TIMESTAMP, who STRING")
    return with_event(df.selectExpr("at", "struct(who) AS s", "n"), offset="n", time="at")


def test_what_passes(spark: SparkSession) -> None:
    given_events = [(9, "a"), (1, "a"), (12, "a"), (14, None), (15, "a"), (3, "a"), (13, None), (20, None)]
    passing, late = judged(given_events, 5)
    assert (passing, late) == ([0, 3, 4, 7], [1, 5])
    found, notes = applied(
        DedupeProcessor(keys=["s.who"], within="5s", time="at"), frame(spark, [*given_events, (None, "a")])
    )
    assert sorted(event["n"] for event in found) == passing
    assert list(found[0]) == ["at", "s", "n", EVENT]
    assert {event[EVENT]["offset"] for event in found} == set(passing)
    codes = sorted((note["code"], note["event"]["offset"]) for note in notes)
    assert codes == [("late", 1), ("late", 5), ("no_time", 8)]


EVENTS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["a", "b", None])), min_size=1, max_size=30)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS, within=st.integers(1, 15))
def test_the_rule(spark: SparkSession, events: list[tuple[int, str | None]], within: int) -> None:
    step = DedupeProcessor(keys=["s.who"], within=f"{within}s", time="at")
    found, notes = applied(step, frame(spark, list(events)))
    passing, late = judged(events, within)
    assert sorted(event["n"] for event in found) == passing
    assert len(notes) == len(late)


def test_what_passes_is_as_it_was(spark: SparkSession) -> None:
    """Events go through a class in Java, and every type has to come back."""
    schema = (
        "at TIMESTAMP, id INT, local TIMESTAMP_NTZ, day DATE, price DECIMAL(38,9), raw BINARY, f FLOAT,"
        " list ARRAY<STRUCT<a: INT, b: STRING>>, map MAP<STRING, TIMESTAMP>,"
        " whole STRUCT<x: DOUBLE, y: BIGINT>, penstock_share STRING"
    )
    old, late = datetime(1, 1, 2, 3, 4, 5, 123456), datetime(9999, 12, 31, 23, 59, 59, 999999)
    rows: list[Any] = [
        (
            BEGIN + timedelta(microseconds=number),
            number,
            (old, late)[number],
            (date(1, 1, 1), date(1582, 10, 10))[number],
            Decimal("12345678901234567890123456789.123456789"),
            b"\xff\x00",
            float("nan"),
            [(1, None), None],
            {"x": datetime(1500, 2, 28, 1, 2, 3, 4, tzinfo=UTC), "y": None},
            (-0.0, 2**63 - 1),
            "a name that Penstock uses itself",
        )
        for number in range(2)
    ]
    df = with_event(spark.createDataFrame(rows, schema), offset="id", headers="map('h', 'v')")
    step = DedupeProcessor(keys=["id", "whole", "penstock_share"], within="5s", time="at")
    made = through(step, df, stage(testing=True))
    text = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    both = [sorted(row[0] for row in each.drop(EVENT).selectExpr(text).collect()) for each in (df, made)]
    assert both[0] == both[1]
    assert made.selectExpr(f"`{EVENT}`.headers.h").collect() == [("v",), ("v",)]


@pytest.mark.parametrize(
    ("how", "path", "code"),
    [
        ({"keys": ["nobody"]}, "keys[0]", "unknown_column"),
        ({"keys": ["m"]}, "keys[0]", "sql_type"),
        ({"time": "who"}, "time", "sql_type"),
    ],
)
def test_refusals(empty: Empty, how: dict[str, Any], path: str, code: str) -> None:
    df = with_event(empty("at TIMESTAMP, who STRING, m MAP<STRING, INT>"))
    step = DedupeProcessor(**{"keys": ["who"], "within": "1m", "time": "at", **how})
    with pytest.raises(Invalid) as caught:
        through(step, df, stage())
    assert [(p.path, p.code) for p in caught.value.problems] == [(path, code)]
