from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.processors.base import EVENT
from penstock.processors.dedupe import DedupeProcessor
from tests.processors.kit import applied, stage, with_event

Empty = Callable[[str], DataFrame]


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows: list[Any] = [
        ("00:09", "a", 1),
        ("00:01", "a", 2),
        ("00:12", "a", 3),
        ("00:02", None, 4),
        ("00:03", None, 5),
        (None, "a", 6),
    ]
    df = spark.createDataFrame(rows, "t STRING, who STRING, n INT")
    df = df.selectExpr(
        "to_timestamp(concat('2024-01-01 00:', t)) AS at", "struct(who) AS s", "n", "map(1, n) AS m"
    )
    return with_event(df, offset="n", time="at")


@pytest.mark.parametrize(("within", "kept"), [("5s", [2, 4, 1]), ("11s", [2, 4, 3]), ("20s", [2, 4])])
def test_the_first_of_several_passes(events: DataFrame, within: str, kept: list[int]) -> None:
    found, notes = applied(DedupeProcessor(keys=["s.who"], within=within, time="at"), events)
    assert [event["n"] for event in found] == kept
    assert list(found[0]) == ["at", "s", "n", "m", EVENT]
    assert found[0][EVENT]["offset"] == 2
    assert [(note["code"], note["event"]["offset"]) for note in notes] == [("no_time", 6)]


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
        step.apply(step.prepare(df, stage()).drop("$note"), stage())
    assert [(p.path, p.code) for p in caught.value.problems] == [(path, code)]
