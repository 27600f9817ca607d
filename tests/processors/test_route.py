from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.frames.hidden import EVENT
from penstock.processors.route import RouteProcessor, Rule
from tests.processors.kit import applied, stage, with_event

SINKS = ("lake", "audit", "rest")
RULES = [
    Rule(when="amount >= 1000", sinks=["audit", "lake"]),
    Rule(when="10 / amount > 1", sinks=["lake", "rest"]),
]


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    rows: list[Any] = [(1, 5000.0), (2, 5.0), (3, 50.0), (4, 0.0), (5, None)]
    df = spark.createDataFrame(rows, "id INT, amount DOUBLE")
    return with_event(df, offset="id", key="'k'", sinks="array('old')")


def routed(df: DataFrame, **how: Any) -> tuple[dict[int, Any], list[Any]]:
    events, notes = applied(RouteProcessor(**{"rules": RULES, **how}), df, sinks=SINKS)
    assert all(event[EVENT]["key"] == "k" for event in events)
    return {event["id"]: event[EVENT]["sinks"] for event in events}, notes


def test_the_first_rule_decides_and_what_fits_none_or_fails_is_kept(orders: DataFrame) -> None:
    found, notes = routed(orders)
    assert found == {1: ["audit", "lake"], 2: ["lake", "rest"]}
    assert [(note["event"]["offset"], note["code"], note["kind"]) for note in notes] == [
        (3, "no_route", "fault"),
        (4, "condition_failed", "fault"),
        (5, "no_route", "fault"),
    ]
    assert notes[0]["row"] == '{"id":3,"amount":50.0}'
    assert {note["step"] for note in notes} == {"step"}


def test_all_rules_that_fit_decide_together(orders: DataFrame) -> None:
    rules = [*RULES[:1], Rule(when="id < 3", sinks=["rest", "lake"])]
    found, _ = routed(orders, rules=rules, match="all", default="drop")
    assert found == {1: ["audit", "lake", "rest"], 2: ["rest", "lake"]}


@pytest.mark.parametrize(
    ("default", "rest"), [("all", {3: None, 5: None}), ("drop", {}), (["rest"], {3: ["rest"], 5: ["rest"]})]
)
def test_the_rest_goes_where_the_default_says(orders: DataFrame, default: Any, rest: dict[int, Any]) -> None:
    found, notes = routed(orders, default=default)
    assert found == {1: ["audit", "lake"], 2: ["lake", "rest"], **rest}
    assert [note["event"]["offset"] for note in notes] == [4]


def test_every_mistake_is_told_at_its_place(orders: DataFrame) -> None:
    step = RouteProcessor(
        rules=[
            Rule(when="amont > 0", sinks=["lake", "lakee"]),
            Rule(when="`$event`.offset = 1", sinks=["lake"]),
        ],
        default=["nope"],
    )
    with pytest.raises(Invalid) as caught:
        step.apply(orders, stage(sinks=SINKS))
    assert [(p.path, p.code) for p in caught.value.problems] == [
        ("rules[0].sinks[1]", "unknown_sink"),
        ("default[0]", "unknown_sink"),
        ("rules[0].when", "unknown_column"),
        ("rules[1].when", "unknown_column"),
    ]
    assert caught.value.problems[0].hint == "did you mean 'lake'?"
