"""Test runs: what steps make of sample events, on a real Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import offline
from penstock.engine.trials.result import StepResult, TestResult
from penstock.engine.trials.samples import META, MOST_EVENTS, Given, Text
from penstock.engine.trials.trial import Bench, try_out
from penstock.errors import Invalid, Problem
from tests.flows import pipeline

TestResult.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test

ORDERS = {
    "type": "file",
    "path": "nowhere",
    "format": "json",
    "schema": "id BIGINT, amount INT, at TIMESTAMP",
}
SAMPLES = [
    {"id": 1, "amount": 2, "at": "2026-01-01T00:00:01Z"},
    {"id": 2, "amount": 0, "at": "2026-01-01T00:00:02Z"},
    {"id": 3, "amount": 5, "at": "2026-01-01T00:01:02Z"},
]


def tried(spark: SparkSession, raw: Any, samples: Given, *others: Any, **given: Any) -> TestResult:
    lookup, known = offline([raw, *others])
    return try_out(Bench(spark, lookup, known), raw, samples, given).result


def plain(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if name != META} for event in events]


def refused(spark: SparkSession, raw: Any, samples: Given, **given: Any) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        tried(spark, raw, samples, **given)
    return caught.value.problems


def test_every_step_tells_what_it_made_dropped_and_failed_on(spark: SparkSession) -> None:
    steps = [
        {"id": "some", "type": "filter", "where": "id <> 3"},
        {"id": "ratio", "type": "sql", "query": "SELECT id, 100 / amount AS ratio FROM input"},
        {"id": "named", "type": "map", "set": {"name": "concat('o', id)"}},
    ]
    result = tried(spark, pipeline(source=ORDERS, processors=steps), SAMPLES)
    assert (result.ok, result.errors, result.warnings) == (True, [], [])
    some, ratio, named = result.steps
    assert [(step.id, step.type) for step in result.steps] == [
        ("some", "filter"),
        ("ratio", "sql"),
        ("named", "map"),
    ]
    assert plain(some.output) == SAMPLES[:2]
    assert (some.dropped, plain(some.dropped_events)) == (1, SAMPLES[2:])
    assert [event[META]["offset"] for event in some.output] == [0, 1]
    assert plain(ratio.output) == [{"id": 1, "ratio": 50.0}]
    assert ratio.dropped == 0
    (error,) = ratio.errors
    assert error.code == "divide_by_zero"
    assert (error.event["id"], error.event[META]) == (2, {"offset": 1})
    assert [(column.name, column.type) for column in named.columns] == [
        ("id", "bigint"),
        ("ratio", "double"),
        ("name", "string"),
    ]
    assert result.output == {"drop": named.output}
    assert all(step.ms > 0 for step in result.steps)


def test_a_problem_of_a_step_is_told_after_the_steps_before_it(spark: SparkSession) -> None:
    steps = [
        {"type": "filter", "where": "id > 1"},
        {"type": "map", "set": {"x": "amuont + 1"}},
    ]
    result = tried(spark, pipeline(source=ORDERS, processors=steps), SAMPLES)
    assert not result.ok
    assert [step.id for step in result.steps] == ["filter"]
    assert [(p.code, p.path) for p in result.errors] == [("unknown_column", "spec.processors[1].set.x")]
    assert result.output == {}


def test_a_document_with_mistakes_is_answered_with_them(spark: SparkSession) -> None:
    raw = pipeline(source=ORDERS, processors=[{"type": "fliter"}], sinks=[{"ref": "nobody"}])
    result = tried(spark, raw, SAMPLES)
    assert (result.ok, result.steps) == (False, [])
    assert {p.path for p in result.errors} == {"spec.processors[0].type", "spec.sinks[0].ref"}


def test_sinks_get_what_they_are_chosen_for_and_are_checked(spark: SparkSession) -> None:
    routed = {
        "type": "route",
        "rules": [{"when": "amount > 1", "sinks": ["big"]}],
        "default": ["small"],
    }
    sinks = [{"id": "big", "type": "drop"}, {"id": "small", "type": "drop"}]
    result = tried(spark, pipeline(source=ORDERS, processors=[routed], sinks=sinks), SAMPLES)
    assert {name: [e["id"] for e in events] for name, events in result.output.items()} == {
        "big": [1, 3],
        "small": [2],
    }
    wrong = {"id": "file", "type": "file", "path": "out", "format": "csv", "partition_by": ["nothing"]}
    result = tried(spark, pipeline(source=ORDERS, sinks=[wrong]), SAMPLES)
    assert [(p.code, p.path) for p in result.errors] == [("unknown_column", "spec.sinks[0].partition_by[0]")]


def test_a_row_of_a_query_that_is_of_no_event_goes_to_all_sinks(spark: SparkSession) -> None:
    query = "SELECT id FROM input UNION ALL SELECT k FROM VALUES (7L) t(k)"
    result = tried(spark, pipeline(source=ORDERS, processors=[{"type": "sql", "query": query}]), SAMPLES)
    assert sorted(event["id"] for event in result.output["drop"]) == [1, 2, 3, 7]


def test_a_task_between_streams(spark: SparkSession) -> None:
    streams = [
        {"kind": "Stream", "metadata": {"name": "in"}, "spec": {"schema": "id BIGINT NOT NULL, amount INT"}},
        {"kind": "Stream", "metadata": {"name": "out"}, "spec": {}},
    ]
    spec: dict[str, Any] = {
        "input": "in",
        "processors": [{"type": "filter", "where": "id > 1"}],
        "outputs": [{"stream": "out", "when": "amount > 3"}, {"stream": "out"}],
    }
    task = {"kind": "Task", "metadata": {"name": "t"}, "spec": spec}
    result = tried(spark, task, [{"id": n, "amount": n} for n in (1, 3, 5)], *streams)
    assert {name: [e["id"] for e in events] for name, events in result.output.items()} == {
        "out": [5],
        "out:2": [3, 5],
    }
    # A task that only lends its steps to pipelines has the columns of the samples.
    del spec["input"], spec["outputs"]
    result = tried(spark, task, [{"id": 1}, {"id": 4, "tags": ["x"]}])
    assert plain(result.output["output"]) == [{"id": 4, "tags": ["x"]}]


def test_windows_give_what_they_would_give_in_the_end(spark: SparkSession) -> None:
    steps = [
        {"type": "window", "time": "at", "size": "1m", "aggregates": {"n": "count(*)", "sum": "sum(amount)"}},
        {"type": "filter", "where": "n > 1"},
    ]
    samples = [*SAMPLES, {"id": 4, "at": None}]
    window, few = tried(spark, pipeline(source=ORDERS, processors=steps), samples).steps
    assert [(event["n"], event["sum"]) for event in window.output] == [(2, 2), (1, 5)]
    assert [(error.code, error.event["id"]) for error in window.errors] == [("no_time", 4)]
    assert (window.dropped, few.dropped) == (0, 1)


def test_steps_in_python_get_all_samples_as_one_batch(spark: SparkSession) -> None:
    step = {"type": "javascript", "schema": "n INT", "inline": SCRIPT}
    result = tried(spark, pipeline(source=ORDERS, processors=[step]), SAMPLES)
    assert result.ok, result.errors
    assert plain(result.steps[0].output) == [{"n": 3}]
    assert result.steps[0].logs == ["3 events"]


SCRIPT = (
    "function processBatch(events) { console.log(`${events.length} events`); return [{n: events.length}] }"
)


def test_what_asks_outside_needs_answers(spark: SparkSession) -> None:
    steps = [
        {"type": "filter", "where": "id < 3"},
        {"id": "user", "type": "http", "url": "http://127.0.0.1:1/{id}", "schema": "name STRING"},
    ]
    raw = pipeline(source=ORDERS, processors=steps)
    result = tried(spark, raw, SAMPLES)
    assert [(p.code, p.path) for p in result.errors] == [("needs_answer", "spec.processors[1]")]
    assert len(result.steps) == 1
    answers = {"http://127.0.0.1:1/1": {"name": "ada"}}
    (_, user) = tried(spark, raw, SAMPLES, user=answers).steps
    assert [event["response"] for event in user.output] == [{"name": "ada"}]
    assert [error.code for error in user.errors] == ["no_answer"]
    assert [(p.code, p.path) for p in refused(spark, raw, SAMPLES, usr=[])] == [("unknown_step", "given.usr")]


def test_a_step_must_not_make_too_much(spark: SparkSession) -> None:
    step = {"type": "sql", "query": "SELECT explode(sequence(1, 20000)) AS n FROM input"}
    result = tried(spark, pipeline(source=ORDERS, processors=[step]), SAMPLES)
    assert [(p.code, p.path) for p in result.errors] == [("too_many_events", "spec.processors[0]")]


def test_events_of_types_that_only_spark_has(spark: SparkSession) -> None:
    steps = [
        {"type": "sql", "query": "SELECT parse_json(value) AS v, INTERVAL 1 DAY AS day FROM input"},
        {"type": "sql", "query": "SELECT v:a::INT AS a FROM input"},
    ]
    first, second = tried(spark, pipeline(source={"type": "http"}, processors=steps), ['{"a": 1}']).steps
    assert [column.type for column in first.columns] == ["variant", "interval day"]
    assert plain(first.output)[0]["v"] == '{"a":1}'
    assert plain(second.output) == [{"a": 1}]


def test_a_struct_that_may_be_null_while_its_fields_may_not(spark: SparkSession) -> None:
    steps = [{"type": "map", "keep": False, "set": {"s": "CASE WHEN id > 2 THEN named_struct('a', 1) END"}}]
    result = tried(spark, pipeline(source=ORDERS, processors=steps), SAMPLES)
    assert plain(result.steps[0].output) == [{"s": None}, {"s": None}, {"s": {"a": 1}}]


def test_what_is_dropped_of_events_that_come_from_one_sample(spark: SparkSession) -> None:
    steps = [
        {"id": "two", "type": "sql", "query": "SELECT id, explode(array(id, 5)) AS n FROM input"},
        {"id": "some", "type": "filter", "where": "n < 3 AND id < 3"},
    ]
    two, some = tried(spark, pipeline(source=ORDERS, processors=steps), SAMPLES).steps
    assert (two.dropped, len(two.output)) == (0, 6)
    assert (some.dropped, plain(some.output)) == (4, [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    assert plain(some.dropped_events) == [{"id": 3, "n": 3}, {"id": 3, "n": 5}]


def test_steps_after_one_that_lets_nothing_pass(spark: SparkSession) -> None:
    steps = [
        {"id": "bad", "type": "map", "set": {"x": "1 / 0"}},
        {"id": "none", "type": "filter", "where": "id > 1"},
        {"id": "last", "type": "window", "time": "at", "size": "1m", "aggregates": {"n": "count(*)"}},
    ]
    result = tried(spark, pipeline(source=ORDERS, processors=steps), SAMPLES)
    assert (result.ok, result.output) == (True, {"drop": []}), result.errors
    assert [(len(step.errors), step.dropped, step.output) for step in result.steps] == [
        (3, 0, []),
        (0, 0, []),
        (0, 0, []),
    ]


def test_no_events_at_all(spark: SparkSession) -> None:
    (step,) = tried(spark, pipeline(processors=[{"type": "filter", "where": "seq > 1"}]), []).steps
    assert (step.output, step.dropped) == ([], 0)


# The form of samples


def source_output(spark: SparkSession, source: dict[str, Any], samples: Given) -> StepResult:
    raw = pipeline(source=source, processors=[{"type": "filter", "where": "true"}])
    result = tried(spark, raw, samples)
    assert result.ok, result.errors
    return result.steps[0]


def test_what_is_known_of_an_event_stands_in_meta(spark: SparkSession) -> None:
    meta = {"key": "k", "headers": {"h": "1"}, "time": "2026-01-02T03:04:05+01:00", "offset": 77}
    sent = {"type": "http", "schema": ORDERS["schema"]}
    step = source_output(spark, sent, [{"id": 1, META: meta}])
    assert step.output[0][META] == {**meta, "offset": 0, "time": "2026-01-02T02:04:05Z"}
    again = source_output(spark, sent, step.output)  # what comes out can go in
    assert again.output == step.output


def test_a_source_that_is_no_stream_knows_nothing_but_the_columns(spark: SparkSession) -> None:
    script = """
function processBatch(events) {
  for (const event of events) {
    const {headers, ...others} = event.$meta
    event.seen = others
  }
}
"""
    shows = {"type": "javascript", "inline": script}
    shows["schema"] = "id BIGINT, seen STRUCT<key STRING, offset BIGINT, time TIMESTAMP, sink STRING>"
    samples = [{"id": 1}, {"id": 2, META: {"key": "k", "headers": {"h": "1"}}}]
    result = tried(spark, pipeline(source={**ORDERS, "schema": "id BIGINT"}, processors=[shows]), samples)
    nothing = {"key": None, "offset": None, "time": None, "sink": None}
    assert [event["seen"] for event in result.steps[0].output] == [nothing, nothing]
    assert [event[META]["offset"] for event in result.output["drop"]] == [0, 1]  # of the samples
    assert [(p.code, p.path, p.message) for p in result.warnings] == [
        ("unknown_member", "events[1]", f"events of this source have no {name}: '{name}' is ignored")
        for name in ("key", "headers")
    ]
    named = "_key STRING, _time STRING, key STRING"  # these are columns like any other
    source = {**ORDERS, "schema": named}
    sample = {"_key": "a", "_time": "b", "key": "c"}
    assert plain(tried(spark, pipeline(source=source), [sample]).output["drop"]) == [sample]


def test_events_of_a_raw_source(spark: SparkSession) -> None:
    samples = ["text", {"value": {"a": 1}, "key": "k", "headers": {"h": "1"}}]
    step = source_output(spark, {"type": "http"}, samples)
    assert plain(step.output) == [
        {"value": "text", "key": None, "headers": None},
        {"value": '{"a": 1}', "key": "k", "headers": {"h": "1"}},
    ]
    assert step.output[1][META] == {"offset": 1, "key": "k", "headers": {"h": "1"}}
    lines = {"type": "file", "path": "nowhere", "format": "text"}
    assert plain(source_output(spark, lines, ["a", "b"]).output) == [{"value": "a"}, {"value": "b"}]


def test_text_is_read_as_a_source_would_read_it(spark: SparkSession) -> None:
    csv = Text(b"id,amount\n1,2\n3,\n", "text/csv")
    typed = source_output(spark, ORDERS, csv).output
    assert [(event["id"], event["amount"]) for event in typed] == [(1, 2), (3, None)]
    given = tried(spark, pipeline(source=ORDERS), csv).input
    assert [(event["id"], event["amount"], event[META]) for event in given] == [
        (1, 2, {"offset": 0}),
        (3, None, {"offset": 1}),
    ]
    raw = source_output(spark, {"type": "http"}, Text(b'[{"a": 1}, {"a": 2}]', "application/json")).output
    assert [event["value"] for event in raw] == ['{"a": 1}', '{"a": 2}']
    unknown = {"type": "file", "path": "nowhere", "format": "csv"}
    found = source_output(spark, unknown, Text(b"a,b\n1,x\n2,y\n", "text/csv"))
    assert [(column.name, column.type) for column in found.columns] == [("a", "bigint"), ("b", "string")]


def test_every_sample_that_does_not_fit_is_told(spark: SparkSession) -> None:
    samples = [
        {"id": 1},
        {"id": "one"},
        5,
        {"id": 1, META: {"colour": "red"}},
        {"id": 2, META: {"time": "x"}},
    ]
    problems = refused(spark, pipeline(source=ORDERS), samples)
    assert [(p.code, p.path) for p in problems] == [
        ("wrong_type", "events[1]"),
        ("not_an_object", "events[2]"),
        ("unknown_member", "events[3]"),
        ("wrong_type", "events[4]"),
    ]
    assert "column 'id' is \"one\", not an integer (BIGINT)" in problems[0].message
    (problem,) = refused(
        spark, pipeline(source=ORDERS), Text(b'{"id": 1}\n{"id": 1.5}\n', "application/x-ndjson")
    )
    assert (problem.code, problem.message.startswith("line 2:")) == ("wrong_type", True)
    (problem,) = refused(spark, pipeline(source={"type": "http"}), [{"id": 1}])
    assert "no 'value'" in problem.message
    (problem,) = refused(spark, pipeline(source=ORDERS), [{}] * (MOST_EVENTS + 1))
    assert problem.code == "too_many_events"
    (problem,) = refused(spark, pipeline(source={**ORDERS, "schema": None}), ["text"])
    assert problem.code == "schema_unknown"
    (problem,) = refused(spark, pipeline(source={**ORDERS, "schema": "v VARIANT"}), [{"v": 1}])
    assert problem.code == "unsupported_type"


def test_a_field_that_no_column_takes_is_warned_of(spark: SparkSession) -> None:
    result = tried(spark, pipeline(source=ORDERS), [{"id": 1, "amuont": 2}])
    (warning,) = result.warnings
    assert (warning.path, warning.hint) == ("events[0]", "did you mean 'amount'?")


def test_structs_that_are_null_and_have_fields_that_are_not(spark: SparkSession) -> None:
    source = {**ORDERS, "schema": "id BIGINT, who STRUCT<name: STRING NOT NULL>"}
    query = "SELECT id, who, named_struct('n', id) AS made FROM input"
    steps = [{"id": "both", "type": "sql", "query": query}]
    samples = [{"id": 1, "who": None}, {"id": 2, "who": {"name": "Ada"}}]
    (both,) = tried(spark, pipeline(source=source, processors=steps), samples).steps
    assert [event["who"] for event in plain(both.output)] == [None, {"name": "Ada"}]
