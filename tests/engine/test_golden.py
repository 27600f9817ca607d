from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.trials.declared_tests import CaseResult, cases_of, run_case
from penstock.engine.trials.samples import Text
from penstock.engine.trials.trial import Bench
from penstock.errors import Invalid
from tests.flows import pipeline

STEPS = [
    {"id": "some", "type": "filter", "where": "amount > 1"},
    {"id": "ratio", "type": "sql", "query": "SELECT id, 100 / (amount - 5) AS ratio FROM input"},
]
SOURCE = {"type": "http", "schema": "id BIGINT, amount INT"}
INPUT = [{"id": 1, "amount": 1}, {"id": 2, "amount": 15}]


def ran(spark: SparkSession, expect: dict[str, Any], input: Any = INPUT) -> CaseResult:
    case = {"name": "one", "input": input, "expect": expect}
    raw = pipeline(source=SOURCE, processors=STEPS, tests=[case])
    bench = Bench(spark, lambda kind, name: None, lambda kind: set())
    (found,) = cases_of(raw)
    return run_case(bench, raw, found, lambda path: Text(b"id,amount\n7,6\n", "text/csv"))


def test_what_is_as_expected_passes(spark: SparkSession) -> None:
    one = [{"id": 2, "ratio": 10.0}]
    expect = {
        "output": one,
        "sinks": {"drop": {"equals": one, "count": 1}},
        "steps": {"some": {"contains": [{"amount": 15}], "dropped": 1, "errors": []}, "ratio": one},
        "errors": [],
    }
    result = ran(spark, expect)
    assert (result.passed, result.differences, result.errors) == (True, [], [])


def test_what_is_not_is_told_field_by_field(spark: SparkSession) -> None:
    expect = {
        "output": [{"id": 2, "ratio": 11}],
        "sinks": {"drop": {"count": 2}, "lake": {"count": 0}},
        "steps": {"some": {"dropped": 0, "matches": [{"id": "x"}]}, "rato": {"count": 1}},
    }
    result = ran(spark, expect)
    assert not result.passed
    assert [(d.where, d.expected, d.actual) for d in result.differences] == [
        ("output[0].ratio", 11, 10.0),
        ("sinks.drop.count", 2, 1),
        ("sinks.lake", None, None),
        ("steps.some.matches[0]", {"id": "x"}, None),
        ("steps.some.dropped", 0, 1),
        ("steps.rato", None, None),
    ]
    assert result.differences[-1].message == "there is no step 'rato' (did you mean 'ratio'?)"


def test_an_error_has_to_be_expected(spark: SparkSession) -> None:
    bad = [*INPUT, {"id": 3, "amount": 5}]
    (unexpected,) = ran(spark, {"output": {"count": 1}}, bad).differences
    assert unexpected.where == "errors"
    assert unexpected.message.startswith("an event failed in step 'ratio': [divide_by_zero]")
    error = {"code": "divide_by_zero", "step": "ratio"}
    assert ran(spark, {"errors": [error]}, bad).passed
    assert ran(spark, {"steps": {"ratio": {"errors": [{"message": "Division by zero"}]}}}, bad).passed
    (missing,) = ran(spark, {"errors": [error]}).differences
    assert (missing.where, missing.expected) == ("errors[0]", error)


def test_the_events_may_be_in_a_file(spark: SparkSession) -> None:
    assert ran(spark, {"output": [{"id": 7, "ratio": 100.0}]}, "samples.csv").passed


def test_a_test_that_cannot_come_to_its_end_fails(spark: SparkSession) -> None:
    result = ran(spark, {"output": []}, [{"id": "x"}])
    assert (result.passed, [p.path for p in result.errors]) == (False, ["input[0]"])


def test_tests_by_name() -> None:
    cases = [{"name": name, "input": [], "expect": {}} for name in ("one", "two")]
    raw = pipeline(tests=cases)
    assert [case.name for case in cases_of(raw, ["two"])] == ["two"]
    with pytest.raises(Invalid) as caught:
        cases_of(raw, ["tow"])
    assert (caught.value.problems[0].code, caught.value.problems[0].hint) == (
        "unknown_test",
        "did you mean 'two'?",
    )
    assert cases_of({"kind": "Stream", "metadata": {"name": "s"}}) == []
