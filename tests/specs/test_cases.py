"""`tests:` of documents."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import Invalid, Problem
from penstock.specs.cases import EventsExpectation, StepExpectation
from penstock.specs.documents import PipelineDocument, what_runs
from penstock.specs.validation import parse
from tests.flows import flow_of, pipeline

ONE = {"name": "one", "input": [{"seq": 1}], "expect": {"output": [{"seq": 1}]}}


def problems(*cases: Any) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        parse(pipeline(tests=list(cases)))
    return caught.value.problems


def case(**expect: Any) -> dict[str, Any]:
    return {**ONE, "expect": expect}


def test_a_list_is_short_for_equals() -> None:
    document = parse(
        pipeline(tests=[case(output=[{"a": 1}], sinks={"s": []}, steps={"x": [], "y": {"dropped": 0}})])
    )
    assert isinstance(document, PipelineDocument)
    expect = document.spec.tests[0].expect
    assert expect.output == EventsExpectation(equals=[{"a": 1}])
    assert expect.sinks == {"s": EventsExpectation(equals=[])}
    assert expect.steps == {"x": StepExpectation(equals=[]), "y": StepExpectation(dropped=0)}


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({**ONE, "input": 5}, "spec.tests[0].input"),
        ({**ONE, "inputs": []}, "spec.tests[0].inputs"),
        ({"input": [], "expect": {}}, "spec.tests[0].name"),
        (case(output={}), "spec.tests[0].expect.output"),
        (case(output={"count": -1}), "spec.tests[0].expect.output.count"),
        (case(output={"dropped": 1}), "spec.tests[0].expect.output.dropped"),
        (case(output={"matches": [{"a": "("}]}), "spec.tests[0].expect.output.matches"),
        (case(sinks={"s": 5}), "spec.tests[0].expect.sinks.s"),
        (case(errors=[{"cod": "x"}]), "spec.tests[0].expect.errors[0].cod"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(wrong: Any, path: str) -> None:
    assert [problem.path for problem in problems(wrong)] == [path]


def test_names_are_unique() -> None:
    (problem,) = problems(ONE, ONE)
    assert (problem.code, problem.path, problem.hint) == (
        "duplicate_id",
        "spec.tests[1].name",
        "give each test its own 'name'",
    )


def test_tests_are_no_part_of_what_runs() -> None:
    plain, tested = pipeline(), pipeline(tests=[ONE])
    assert what_runs(tested) == what_runs(plain) == plain
    assert what_runs({"kind": "Pipeline", "spec": None}) == {"kind": "Pipeline", "spec": None}
    # What looks like a variable in a sample is none.
    flow_of(pipeline(tests=[{**ONE, "input": [{"seq": "${NOT_SET_ANYWHERE}"}]}]))
