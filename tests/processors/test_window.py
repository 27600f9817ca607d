"""Windows over frames that have an end, as in a test run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.frames.hidden import EVENT
from penstock.processors.window import WindowProcessor
from tests.flows import Streams
from tests.processors.kit import applied, stage, through, with_event
from tests.sql.helpers import refusal

Empty = Callable[[str], DataFrame]

SCHEMA = "at TIMESTAMP, who STRING, n INT"


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows: list[Any] = [
        ("00:07", "a", 2),
        ("00:01", "a", 1),
        ("00:19", "b", 3),
        ("00:40", "a", 0),
        (None, "a", 9),
    ]
    df = spark.createDataFrame(rows, "t STRING, who STRING, n INT")
    df = df.selectExpr("to_timestamp(concat('2024-01-01 00:', t)) AS at", "who", "n")
    return with_event(df, offset="if(n = 0, 4, n)", time="at")  # the last but one is the latest


def at(moment: datetime) -> str:
    return f"{moment:%M:%S}"


def windows(df: DataFrame, **how: Any) -> list[tuple[Any, ...]]:
    step = WindowProcessor(**{"time": "at", "aggregates": {"total": "sum(n)"}, **how})
    found, _ = applied(step, df)
    for event in found:
        event.pop(EVENT)
    return [(at(e.pop("window_start")), at(e.pop("window_end")), *e.values()) for e in found]


def test_tumbling(events: DataFrame) -> None:
    assert windows(events, size="10s") == [
        ("00:00", "00:10", 3),
        ("00:10", "00:20", 3),
        ("00:40", "00:50", 0),
    ]
    assert windows(events, size="10s", offset="5s", keys=["WHO"]) == [
        ("59:55", "00:05", "a", 1),
        ("00:05", "00:15", "a", 2),
        ("00:15", "00:25", "b", 3),
        ("00:35", "00:45", "a", 0),
    ]


@pytest.mark.parametrize("kind", ["hopping", "sliding"])
def test_hopping_and_sliding_are_the_same(events: DataFrame, kind: str) -> None:
    assert windows(events, kind=kind, size="20s", slide="10s") == [
        ("59:50", "00:10", 3),
        ("00:00", "00:20", 6),
        ("00:10", "00:30", 3),
        ("00:30", "00:50", 0),
        ("00:40", "01:00", 0),
    ]


def test_sessions(events: DataFrame) -> None:
    assert windows(events, kind="session", gap="15s") == [("00:01", "00:34", 6), ("00:40", "00:55", 0)]
    assert windows(events, kind="session", gap="15s", keys=["who"]) == [
        ("00:01", "00:22", "a", 3),
        ("00:19", "00:34", "b", 3),
        ("00:40", "00:55", "a", 0),
    ]


def test_system_time_is_the_time_of_the_stream(events: DataFrame) -> None:
    assert windows(events.filter("at IS NOT NULL"), time="system", size="1m") == [("00:00", "01:00", 6)]


def test_aggregates_are_spark_sql(events: DataFrame) -> None:
    aggregates = {
        "big": "count(*) FILTER (WHERE n > 1)",
        "who": "array_sort(collect_set(who))",
        "mean": "round(avg(n), 1)",
        "last": "max_by(n, at)",
    }
    assert windows(events, size="1m", aggregates=aggregates) == [("00:00", "01:00", 2, ["a", "b"], 1.5, 0)]


def test_the_key_of_a_window_is_its_group(events: DataFrame) -> None:
    one, _ = applied(WindowProcessor(time="at", size="1m", keys=["n"], aggregates={"c": "count(*)"}), events)
    assert [event[EVENT]["key"] for event in one] == ["0", "1", "2", "3"]
    assert one[0][EVENT]["offset"] is None


def test_the_events_of_a_window_stay_together(events: DataFrame) -> None:
    step = WindowProcessor(time="at", size="20s", keys=["who"], emit="events")
    found, notes = applied(step, events)
    assert list(found[0]) == ["window_start", "window_end", "at", "who", "n", EVENT]
    assert [(event["who"], event["n"], event[EVENT]["offset"]) for event in found] == [
        ("a", 1, 1),
        ("a", 2, 2),
        ("b", 3, 3),
        ("a", 0, 4),
    ]
    batches = [event[EVENT]["batch"] for event in found]
    assert batches[0] == batches[1] == 'step/1704067200000/1704067220000/["a"]'
    assert len(set(batches)) == 3
    assert [note["code"] for note in notes] == ["no_time"]


def test_what_cannot_be_computed_is_noted(events: DataFrame) -> None:
    step = WindowProcessor(
        time="at", size="10s", aggregates={"inverse": "sum(1 / n)", "share": "count(*) / sum(n - 3)"}
    )
    found, notes = applied(step, events)
    assert [(note["code"], note["event"]["offset"], note["row"]) for note in notes] == [
        ("no_time", 9, '{"who":"a","n":9}'),
        ("aggregate_failed", 4, '{"at":"2024-01-01T00:00:40.000000Z","who":"a","n":0}'),
        (
            "aggregate_failed",
            None,
            '{"window_start":"2024-01-01T00:00:10.000000Z","window_end":"2024-01-01T00:00:20.000000Z"}',
        ),
    ]
    assert [(event["inverse"], round(event["share"], 3)) for event in found] == [(1.5, -0.667)]


def test_windows_of_windows(events: DataFrame) -> None:
    first = WindowProcessor(time="at", size="10s", aggregates={"n": "sum(n)"})
    second = WindowProcessor(time="window_end", size="20s", aggregates={"n": "sum(n)"})
    found = through(second, through(first, events, stage()), stage()).drop(EVENT).collect()
    assert [(at(row[0]), at(row[1]), row[2]) for row in found] == [
        ("00:00", "00:20", 6),
        ("00:40", "01:00", 0),
    ]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, "needs 'size'"),
        ({"size": "0s"}, "greater than 0"),
        ({"size": "10"}, "use a number and"),
        ({"size": "10s", "gap": "1s"}, "has no 'gap'"),
        ({"size": "10s", "slide": "1s"}, "has no 'slide'"),
        ({"kind": "sliding", "size": "10s"}, "needs 'slide'"),
        ({"kind": "hopping", "size": "10s", "slide": "11s"}, "in no window"),
        ({"kind": "session", "size": "10s"}, "has no 'size'"),
        ({"kind": "session", "gap": "10s", "offset": "1s"}, "has no 'offset'"),
        ({"size": "10s", "emit": "events"}, "either 'aggregates' or"),
        ({"size": "10s", "aggregates": None}, "either 'aggregates' or"),
    ],
)
def test_fields_belong_to_a_kind(how: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        WindowProcessor.model_validate({"aggregates": {"c": "count(*)"}, **how})


def test_late_events_need_a_raw_stream(events: DataFrame, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.make("typed", schema="id INT")
    for late, code in (("nope", "unknown_reference"), ("typed", "typed_stream")):
        step = WindowProcessor(size="1m", aggregates={"c": "count(*)"}, late=late)
        problem = refusal(step.prepare, events, stage(site=streams.site()))
        assert (problem.path, problem.code) == ("late", code)


@pytest.mark.parametrize(
    ("how", "path", "code"),
    [
        ({"time": "when"}, "time", "unknown_column"),
        ({"time": "n"}, "time", "sql_type"),
        ({"keys": ["nobody"]}, "keys[0]", "unknown_column"),
        ({"keys": ["m"]}, "keys[0]", "sql_type"),
        ({"keys": ["who", "WHO"]}, "keys[1]", "duplicate_column"),
        ({"aggregates": {"x": "n"}}, "aggregates.x", "sql_error"),
        ({"aggregates": {"x": "1"}}, "aggregates.x", "sql_error"),
        ({"aggregates": {"x": "sum(nn)"}}, "aggregates.x", "unknown_column"),
        ({"aggregates": {"x": "sum(n"}}, "aggregates.x", "sql_syntax"),
        ({"aggregates": {"x": "count(DISTINCT n)"}}, "aggregates.x", "stateful_sql"),
        ({"aggregates": {"x": "sum(n) OVER ()"}}, "aggregates.x", "stateful_sql"),
        ({"aggregates": {"x": "max(explode(array(n)))"}}, "aggregates.x", "sql_error"),
        ({"aggregates": {"x": "max(reflect('a', 'b'))"}}, "aggregates.x", "sql_forbidden"),
        ({"aggregates": {"x": "max((SELECT 1))"}}, "aggregates.x", "sql_forbidden"),
        ({"aggregates": {"who": "count(*)"}, "keys": ["who"]}, None, "duplicate_column"),
    ],
)
def test_refusals(empty: Empty, how: dict[str, Any], path: str | None, code: str) -> None:
    step = WindowProcessor(**{"time": "at", "size": "1m", "aggregates": {"c": "count(*)"}, **how})
    df = with_event(empty(SCHEMA + ", m MAP<STRING, INT>"))
    with pytest.raises(Invalid) as caught:
        through(step, df, stage())
    (problem,) = caught.value.problems
    assert (problem.path, problem.code) == (path, code)
