from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.runtime.failures import failure_of
from penstock.errors import Invalid
from penstock.frames.hidden import EVENT
from penstock.processors.support.json_schemas import violations
from penstock.processors.validate import ValidateProcessor
from tests.processors.kit import applied, stage, with_event

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["amount"],
    "properties": {"amount": {"type": "number", "minimum": 0}, "country": {"enum": ["DE", "FR"]}},
}
RULES = [
    {"name": "positive", "where": "amount > 0"},
    {"name": "known", "where": "country IN ('DE', 'FR')"},
    {"name": "number", "where": "CAST(code AS INT) < 5"},
]


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    rows: list[Any] = [
        (1, 5.0, "DE", "1"),
        (2, -5.0, "XX", "1"),
        (3, None, "DE", "1"),
        (4, 5.0, "FR", "x"),
    ]
    df = spark.createDataFrame(rows, "id INT, amount DOUBLE, country STRING, code STRING")
    return with_event(df, offset="id").coalesce(1)


def test_what_fails_conditions_goes_to_the_dead_letters(orders: DataFrame) -> None:
    events, notes = applied(ValidateProcessor(expectations=RULES), orders)
    assert [(event["id"], event[EVENT]["offset"]) for event in events] == [(1, 1)]
    assert [(note["event"]["offset"], note["code"], note["message"]) for note in notes] == [
        (2, "expectation_failed", "failed: positive; known"),
        (3, "expectation_failed", "failed: positive"),
        (4, "expectation_failed", "failed: number"),
    ]
    assert json.loads(notes[0]["row"]) == {"id": 2, "amount": -5.0, "country": "XX", "code": "1"}


def test_failures_may_be_dropped_or_tagged(orders: DataFrame) -> None:
    events, notes = applied(ValidateProcessor(expectations=RULES, on_fail="drop"), orders)
    assert ([event["id"] for event in events], notes) == ([1], [])
    events, notes = applied(ValidateProcessor(expectations=RULES, on_fail="tag"), orders)
    assert [event["_failed"] for event in events] == [[], ["positive", "known"], ["positive"], ["number"]]
    assert not notes
    assert list(events[0]) == ["id", "amount", "country", "code", "_failed", EVENT]


@pytest.mark.parametrize(
    ("step", "code", "message"),
    [
        ({"expectations": RULES}, "expectation_failed", "step 'step', failed: positive; known"),
        ({"json_schema": SCHEMA}, "schema_violated", "step 'step', /amount: -5.0 is less than"),
    ],
)
def test_failures_may_fail_the_pipeline(orders: DataFrame, step: Any, code: str, message: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever Spark makes of it)
        applied(ValidateProcessor(**step, on_fail="fail"), orders)
    failure = failure_of(caught.value)
    assert failure.fatal
    assert failure.problem.code == code
    assert failure.problem.message.startswith(message)
    assert "SQLSTATE" not in failure.problem.message
    events, _ = applied(ValidateProcessor(**step, on_fail="fail"), orders.filter("id = 1"))
    assert len(events) == 1


def test_events_by_a_json_schema(orders: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(SCHEMA))
    for schema in (SCHEMA, str(path)):
        events, notes = applied(ValidateProcessor(json_schema=schema), orders)
        assert [event["id"] for event in events] == [1, 4]
        assert [(note["event"]["offset"], note["code"]) for note in notes] == [
            (2, "schema_violated"),
            (3, "schema_violated"),
        ]
        assert notes[0]["message"].startswith("/amount: -5.0 is less than the minimum of 0; /country:")
        assert notes[1]["message"] == '/: "amount" is a required property'


def test_a_column_by_a_json_schema(spark: SparkSession) -> None:
    rows = [(1, '{"amount": 1}', (2.0,)), (2, "{", (-2.0,)), (3, None, None)]
    df = with_event(spark.createDataFrame(rows, "id INT, value STRING, in STRUCT<amount: DOUBLE>")).coalesce(
        1
    )
    events, notes = applied(ValidateProcessor(json_schema=SCHEMA, field="value"), df)
    assert [event["id"] for event in events] == [1, 3]
    assert notes[0]["message"].startswith("not JSON: EOF")
    events, notes = applied(ValidateProcessor(json_schema=SCHEMA, field="in", on_fail="tag", tag="t"), df)
    assert [len(event["t"]) for event in events] == [0, 1, 0]


def test_texts_need_not_be_utf8() -> None:
    texts = pa.array([b'"\xff"', b"1", None]).view(pa.string())
    assert [len(found) for found in violations("{}", texts).to_pylist()] == [1, 0, 0]


@pytest.mark.parametrize(
    ("step", "code", "path"),
    [
        (
            {"expectations": [RULES[0], {"name": "x", "where": "amont > 0"}]},
            "unknown_column",
            "expectations[1].where",
        ),
        ({"expectations": [{"name": "x", "where": "id"}]}, "sql_type", "expectations[0].where"),
        ({"expectations": RULES, "on_fail": "tag", "tag": "ID"}, "duplicate_column", "tag"),
        ({"json_schema": {"type": "objekt"}}, "invalid_json_schema", "json_schema"),
        ({"json_schema": {"$ref": "http://127.0.0.1:1/x"}}, "invalid_json_schema", "json_schema"),
        ({"json_schema": "/nonexistent"}, "unreadable_file", "json_schema"),
        ({"json_schema": {}, "field": "nope"}, "unknown_column", "field"),
        ({"json_schema": {}, "field": "id"}, "sql_type", "field"),
    ],
)
def test_refusals(orders: DataFrame, step: dict[str, Any], code: str, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        ValidateProcessor(**step).apply(orders, stage())
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == (code, path)


def test_one_of_both() -> None:
    for step in ({}, {"expectations": RULES, "json_schema": {}}, {"expectations": RULES, "field": "id"}):
        with pytest.raises(ValidationError):
            ValidateProcessor(**step)
    with pytest.raises(ValidationError, match="the name 'positive'"):
        ValidateProcessor(expectations=[RULES[0], RULES[0]])
