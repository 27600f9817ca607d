"""Expressions of Bloblang and PDL in SQL and JavaScript."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.as_script import filter_script, script_of
from penstock.cli.convert.language.as_sql import ddl_of, to_sql
from penstock.cli.convert.language.bloblang import parse_mapping, parse_query
from penstock.cli.convert.language.pdl import parse_program, split_stages
from penstock.cli.convert.language.steps import Steps


def run(script: str, *events: Any) -> list[Any]:
    """What a script makes of events, on V8."""
    from py_mini_racer import MiniRacer

    given = [{"value": json.dumps(event), "$meta": {"key": None, "headers": {}}} for event in events]
    found = MiniRacer().eval(f"{script}\nJSON.stringify(processBatch({json.dumps(given)}))")
    return json.loads(str(found))  # type: ignore[no-any-return]


def values(script: str, *events: Any) -> list[Any]:
    return [json.loads(event["value"]) for event in run(script, *events)]


@pytest.mark.parametrize(
    ("mapping", "event", "made"),
    [
        ("root.x = this.a.b", {"a": {"b": 1}, "c": 2}, {"x": 1}),
        ("root = this\nroot.x = this.a + 1", {"a": 1}, {"a": 1, "x": 2}),
        ("root = this\nroot.a = deleted()", {"a": 1, "b": 2}, {"b": 2}),
        ("root.a.b.c = this.x.or(\"none\")", {}, {"a": {"b": {"c": "none"}}}),
        ("root.n = this.s.uppercase().trim() + \"!\"", {"s": " a "}, {"n": "A!"}),
        ('root.t = match this.n { this > 5 => "big", 0 => "zero", _ => "small" }', {"n": 0}, {"t": "zero"}),
        ("root.t = match this.n { this > 5 => this * 2, _ => 0 }", {"n": 6}, {"t": 12}),
        ("let p = this.s.split(\"/\")\nroot.f = $p.index(0)", {"s": "a/b"}, {"f": "a"}),
        ("root = this.doc", {"doc": {"q": 1}}, {"q": 1}),
        ("root = {\"a\": this.x, \"b\": [1, this.y]}", {"x": 1, "y": 2}, {"a": 1, "b": [1, 2]}),
        ('root.c = if this.n > 1 { "a" } else if this.n == 1 { "b" } else { "c" }', {"n": 1}, {"c": "b"}),
        ("root.first = this.\"odd name\"", {"odd name": 1}, {"first": 1}),
        ("root.long = this.a.\n  uppercase().\n  lowercase()", {"a": "X"}, {"long": "x"}),
        ("root.or = this.missing | this.b | \"c\"", {"b": "found"}, {"or": "found"}),
        ("x = this.a", {"a": 1}, {"x": 1}),
    ],
)  # fmt: skip
def test_a_mapping_in_javascript(mapping: str, event: Any, made: Any) -> None:
    assert values(script_of(parse_mapping(mapping), keeps=False), event) == [made]


def test_a_mapping_drops_events_and_leaves_those_alone_that_it_does_not_touch() -> None:
    script = script_of(parse_mapping('root = if this.kind == "noise" { deleted() }'), keeps=False)
    assert values(script, {"kind": "noise"}, {"kind": "music", "n": 1}) == [{"kind": "music", "n": 1}]
    dropped = script_of(parse_mapping("root = deleted()\nroot.a = 1"), keeps=False)
    assert values(dropped, {"a": 2}) == []


def test_a_mutation_keeps_what_it_does_not_name() -> None:
    script = script_of(parse_mapping("root.b = this.a\nroot.a = 0"), keeps=True)
    assert values(script, {"a": 1, "c": 3}) == [{"a": 0, "b": 1, "c": 3}]


def test_metadata_goes_to_the_key_and_headers() -> None:
    script = script_of(parse_mapping('meta kafka_key = this.id\nmeta origin = "x"'), keeps=False)
    (event,) = run(script, {"id": 5})
    assert event["$meta"] == {"key": "5", "headers": {"origin": "x"}}
    assert json.loads(event["value"]) == {"id": 5}


def test_an_event_without_a_value_passes() -> None:
    from py_mini_racer import MiniRacer

    script = filter_script(parse_query("this.a == 1"))
    assert MiniRacer().eval(f"{script}\nprocessBatch([{{value: null}}]).length") == 1


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        ("this.a == 1 && this.b != null", "a = 1 AND b IS NOT NULL"),
        ("(this.a + 1) * 2 > this.b", "(a + 1) * 2 > b"),
        ("!(this.a || this.b)", "NOT coalesce(a OR b, false)"),
        ('this.name.lowercase().has_prefix("x\'")', "startswith(lower(name), 'x\\'')"),
        ("this.order.table", "`order`.`table`"),
        ('if this.a { "x" } else { "y" }', "CASE WHEN a THEN 'x' ELSE 'y' END"),
        ("this.a - (this.b - 1)", "a - (b - 1)"),
        ('"a" + this.b', "concat('a', b)"),
    ],
)
def test_a_query_in_sql(query: str, sql: str) -> None:
    assert to_sql(parse_query(query)) == sql


@pytest.mark.parametrize(
    "mapping",
    [
        "root = this.map_each(i -> i)", "map x { root = 1 }", "root.a = this.(b | c)", "root.a = root.b",
        "import \"x\"", "root.a = ", "root = {", "???", "root.a = this.b.catch(0)", "root.a = 1 2",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(mapping: str) -> None:
    with pytest.raises(Unmapped):
        script_of(parse_mapping(mapping), keeps=False)


def test_known_columns_make_sql_and_the_rest_a_script() -> None:
    steps = Steps(["id", "kind"])
    steps.mapping(parse_mapping('root = if this.kind == "x" { deleted() } else { this }'), keeps=False)
    steps.mapping(parse_mapping("root = this\nroot.twice = this.id * 2\nroot.kind = deleted()"), keeps=False)
    assert steps.made == [
        {"type": "filter", "where": "NOT coalesce(kind = 'x', false)"},
        {"type": "map", "set": {"twice": "id * 2"}},
        {"type": "drop_fields", "fields": ["kind"]},
    ]
    assert steps.columns == ["id", "twice"]
    steps.mapping(parse_mapping("root.a.b = this.id"), keeps=False)
    assert [step["type"] for step in steps.made[3:]] == ["encode", "javascript"]
    assert steps.columns is None


def test_stages_of_pdl() -> None:
    text = 'a = "x|y" | eval b = if(a = "x", 1, 2) | c ~= "(p|q)" || d = 1'
    assert split_stages(text) == ['a = "x|y"', 'eval b = if(a = "x", 1, 2)', 'c ~= "(p|q)" || d = 1']


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('a = "active" AND score > 80', [{"type": "filter", "where": "a = 'active' AND score > 80"}]),
        ('action IN ["login", "logout"]', [{"type": "filter", "where": "action IN ('login', 'logout')"}]),
        ("NOT deleted = true", [{"type": "filter", "where": "NOT coalesce(deleted = true, false)"}]),
        ('tags ?= "urgent"', [{"type": "filter", "where": "array_contains(tags, 'urgent')"}]),
        ("rename user_id AS id, a.b AS c", [{"type": "rename", "fields": {"user_id": "id", "a.b": "c"}}]),
        ("fields id, a.b", [{"type": "map", "set": {"id": "id", "b": "a.b"}, "keep": False}]),
        ("fields - a, b", [{"type": "drop_fields", "fields": ["a", "b"]}]),
        (
            "count AS n timespan=5m",
            [{"type": "window", "kind": "tumbling", "size": "5m", "aggregates": {"n": "count(*)"}}],
        ),
        (
            "dc(user) timespan=1h window=sliding slide=5m group_by svc, zone",
            [
                {
                    "type": "window", "kind": "sliding", "size": "1h", "slide": "5m", "keys": ["svc", "zone"],
                    "aggregates": {"dc_user": "count(DISTINCT user)"},
                }
            ],
        ),
    ],
)  # fmt: skip
def test_pdl_as_steps(text: str, steps: list[Any]) -> None:
    program = parse_program(text)
    assert (program.steps, program.refused) == (steps, [])


def test_pdl_knows_the_columns_it_reads() -> None:
    program = parse_program('a > 1 AND b = "x" AND c = true AND d ?= "t" | eval e = f * 2 | g.h = 1 | e > 3')
    assert (
        ddl_of(program.read)
        == "a DOUBLE, b STRING, c BOOLEAN, d ARRAY<STRING>, f DOUBLE, g STRUCT<h: DOUBLE>"
    )


@pytest.mark.parametrize(
    "text", ["parse_kv raw", "a =", "percentile(x, 9) timespan=1m", "eval", "((", "rename a b"]
)
def test_pdl_that_is_not_understood_is_refused(text: str) -> None:
    program = parse_program(text)
    assert (program.steps, len(program.refused)) == ([], 1)
