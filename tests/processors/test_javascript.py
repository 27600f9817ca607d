from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import ValidationError

from penstock.frames.hidden import EVENT
from penstock.policy import UNRESTRICTED
from penstock.processors.base import Desk, Refused
from penstock.processors.javascript import JavascriptProcessor
from tests.processors.scripts import EVENT_FIELD, Script, ids, no_processes_left, refusals, run


@pytest.fixture(autouse=True, scope="module")
def tidy() -> Iterator[None]:
    with no_processes_left():
        yield


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return events.filter(e => e.id > 1)", [2, 3]),
        ("return events.map(e => ({...e, id: e.id * 10}))", [10, 20, 30]),
        ("return events[1]", [2]),
        ("return {id: events.length}", [3]),
        ("for (const e of events) e.id++", [2, 3, 4]),
        ("events.pop(); return null", [1, 2]),
        ("return []", []),
        ("return events.flatMap(e => [e, e])", [1, 1, 2, 2, 3, 3]),
    ],
)
def test_what_a_script_returns_goes_on(body: str, expected: list[int]) -> None:
    ran = run(body, *ids(1, 2, 3))
    assert [row["id"] for row in ran.rows] == expected
    assert ran.faults == []


@pytest.mark.parametrize(
    "script",
    [
        "export function processBatch(e) { return twice(e) }\nexport const twice = e => [...e, ...e]",
        "const processBatch = events => [...events, ...events]",
        "module.exports = {processBatch: events => [...events, ...events]}",
        "exports.processBatch = events => [...events, ...events]  // and a comment",
        "'use strict'\nexport default function processBatch(events) { return [...events, ...events] }",
    ],
)
def test_the_function_is_found_however_it_is_declared(script: str) -> None:
    assert len(Script("id BIGINT", inline=script)(*ids(1, 2)).rows) == 4


def test_an_exception_sends_only_its_event_to_the_dead_letters_and_names_the_line() -> None:
    script = """
function processBatch(events) {
  return events.map(event => {
    if (event.id === 5) event.user.name
    return event
  })
}"""
    ran = Script("id BIGINT", inline=script)(*ids(*range(9)))
    assert [row["id"] for row in ran.rows] == [0, 1, 2, 3, 4, 6, 7, 8]
    assert ran.faults == [(5, "js_error")]
    assert ran.message == "line 4: TypeError: Cannot read properties of undefined (reading 'name')"
    assert [note["row"] for note in ran.notes if note["kind"] == "fault"] == ['{"id": 5}']


def test_anything_can_be_thrown() -> None:
    assert run("throw {reason: 7n}", *ids(1)).message == '{"reason":"7n"} was thrown'
    assert run("throw new RangeError('far')", *ids(1)).message == "line 1: RangeError: far"
    assert run("return (function f() { return f() })()", *ids(1)).faults == [(0, "js_error")]


def test_a_property_without_a_column_is_an_error_of_its_event() -> None:
    ran = run("for (const e of events) if (e.id === 2) e.gros = 1", *ids(1, 2, 3))
    assert [row["id"] for row in ran.rows] == [1, 3]
    assert ran.faults == [(1, "extra_property")]
    assert ran.message == "the event has an unexpected column 'gros'; there are: id"
    nested = run("events[0].at = {x: 1, z: 2}", {"id": 1}, given="id INT, at STRUCT<x: INT, y: INT>")
    assert nested.faults == [(0, "extra_property")]
    assert "'at.z'" in nested.message
    assert run("events[0].more = undefined", *ids(1)).rows == ids(1)


def test_an_event_goes_on_with_all_it_gave_or_with_none() -> None:
    ran = run("return events.flatMap(e => [{...e}, {...e, id: e.id === 2 ? 'x' : 0}])", *ids(1, 2, 3))
    assert [row["id"] for row in ran.rows] == [1, 0, 3, 0]
    assert ran.faults == [(1, "wrong_type")]
    assert ran.message == "column 'id' is \"x\", not an integer (BIGINT)"


def test_a_new_object_that_does_not_fit_is_traced_to_its_event() -> None:
    ran = run("return events.map(e => ({id: e.id === 3 ? 0.5 : e.id}))", *ids(1, 2, 3, 4, 5))
    assert [row["id"] for row in ran.rows] == [1, 2, 4, 5]
    assert ran.faults == [(2, "wrong_type")]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("return 7", "wrong_type", "processBatch returned a number in place of an event"),
        (
            "return [null]",
            "wrong_type",
            "processBatch returned an array with null in place of an event; use filter to drop events",
        ),
        ("return [[]]", "wrong_type", "processBatch returned an array with an array in place of an event"),
        (
            "return Promise.resolve([])",
            "js_async",
            "processBatch returned a Promise: nothing in it may be async",
        ),
    ],
)
def test_what_is_no_event_is_refused(body: str, code: str, message: str) -> None:
    ran = run(body, *ids(1))
    assert ran.faults == [(0, code)]
    assert ran.message == message


def test_schema_decides_the_columns() -> None:
    ran = run(
        "return events.map(e => ({gross: e.amount * 2, id: e.id}))",
        {"id": 1, "amount": 1.5, "note": "x"},
        given="id BIGINT, amount DOUBLE, note STRING",
        schema="id BIGINT NOT NULL, gross DOUBLE, missing STRING",
    )
    assert ran.rows == [{"id": 1, "gross": 3.0, "missing": None}]


def test_a_required_column_must_have_a_value() -> None:
    ran = run("for (const e of events) if (e.id === 2) delete e.id", *ids(1, 2), given="id BIGINT NOT NULL")
    assert ran.rows == ids(1)
    assert ran.faults == [(1, "missing_field")]


def test_names_that_mean_something_in_javascript_are_only_names() -> None:
    given = "`__proto__` INT, `constructor` INT, `a b` INT, `0` INT"
    row = {"__proto__": 1, "constructor": 2, "a b": 3, "0": None}
    assert run("return events.map(e => ({...e}))", row, given=given).rows == [row]
    assert run("return {}", row, given=given).rows == [dict.fromkeys(row)]


def test_the_console_writes_to_the_log() -> None:
    ran = run("console.log('a', 1, 2n, {b: [null]}); console.warn('w'); console.error('e')", *ids(1))
    assert ran.logs == ['a 1 2n {"b":[null]}', "warning: w", "error: e"]
    many = run("for (let i = 0; i < 250; i++) console.info(i); console.log('x'.repeat(9999))", *ids(1))
    assert len(many.logs) == 101
    assert many.logs[-1] == "151 more lines of this batch were omitted"
    assert run("const a = {}; a.a = a; console.log(a, '\\ud800')", *ids(1)).logs == ["[object Object] \ufffd"]


def test_what_a_failing_event_printed_is_kept_and_nothing_is_printed_twice() -> None:
    ran = run(
        "for (const e of events) { console.log(e.id); if (e.id == 2) throw Error('no') }", *ids(1, 2, 3)
    )
    assert sorted(ran.logs) == ["1", "2", "3"]
    assert ran.faults == [(1, "js_error")]


def test_bytes_that_are_not_text_are_refused() -> None:
    script = Script("value STRING", inline="function processBatch(events) {}")
    values = pa.array([b"good", b"\xff"], pa.binary()).view(pa.string())
    events = pa.array([{"offset": 0}, {"offset": 1}], EVENT_FIELD.type)
    batch = pa.RecordBatch.from_arrays([values, events], names=["value", EVENT])
    work = script.steps.steps[0].processor.open(Desk("step", "flow", policy=UNRESTRICTED))
    assert work(batch.slice(0, 1)).batch.column("value").to_pylist() == ["good"]
    assert [(bad.row, bad.code) for bad in work(batch.slice(1)).bad] == [(0, "invalid_utf8")]
    with pytest.raises(Refused):
        work(batch)


def test_a_window_is_given_as_a_whole_and_fails_as_a_whole() -> None:
    body = """
      if (events.some(e => e.id === 3)) throw Error('no')
      return {id: events.reduce((sum, e) => sum + e.id, 0)}"""
    script = Script("id BIGINT", inline=f"function processBatch(events) {{ {body} }}")
    ran = script(*ids(1, 2, 3, 4, 5), batch=["a", "a", "b", "b", "c"])
    assert [row["id"] for row in ran.rows] == [3, 5]
    assert [event["batch"] for event in ran.events] == ["a", "c"]
    assert ran.faults == [(2, "js_error"), (3, "js_error")]


def test_modules_are_required_by_name(tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text(
        "const {twice} = require('math')\nfunction processBatch(e) { e[0].id = twice(e[0].id) }"
    )
    (tmp_path / "math.js").write_text("const base = require('base')\nexports.twice = n => n * base.two()")
    (tmp_path / "base.js").write_text("export function two() { return 2 }")
    modules = {"math": str(tmp_path / "math.js"), "base": str(tmp_path / "base.js")}
    script = Script("id BIGINT", file=str(tmp_path / "main.js"), modules=modules)
    (tmp_path / "base.js").write_text("no longer looked at")
    assert script(*ids(21)).rows == ids(42)
    assert run("require('fs')", *ids(1)).message == (
        "line 1: Error: there is no module 'fs'; under modules: none"
    )


def test_a_fault_in_a_module_names_it(tmp_path: Path) -> None:
    (tmp_path / "lib.js").write_text("exports.check = event => {\n  throw new TypeError('bad')\n}")
    script = Script(
        "id BIGINT",
        inline="function processBatch(events) { events.forEach(require('lib').check) }",
        modules={"lib": str(tmp_path / "lib.js")},
    )
    assert script(*ids(1)).message == "lib, line 2: TypeError: bad"


def test_what_cannot_run_is_refused_when_it_is_planned(tmp_path: Path) -> None:
    def refusal(inline: str, **spec: object) -> tuple[str, str | None, str]:
        (problem,) = refusals("id BIGINT", inline=inline, **spec)
        return problem.code, problem.path, problem.message

    assert refusal("function processBatch(events) {\n  let x = ;\n}") == (
        "js_load",
        "inline",
        "line 2: SyntaxError: Unexpected token ';'",
    )
    assert refusal("const a = 1")[2] == "there is no function processBatch(events)"
    assert refusal("async function processBatch() {}")[2].startswith("processBatch is async")
    assert refusal("\nmissing()\nfunction processBatch() {}")[2] == (
        "line 2: ReferenceError: missing is not defined"
    )
    assert "js_cpu_limit" in refusal("while (true) {}", limits={"cpu_ms": 50})[2]
    (tmp_path / "lib.js").write_text("exports.x = 1\nfunction (")
    assert refusal("function processBatch() {}", modules={"lib": str(tmp_path / "lib.js")}) == (
        "js_load",
        "modules.lib",
        "line 2: SyntaxError: Function statements require a function name",
    )
    missing = {"a": str(tmp_path / "a.js"), "b": str(tmp_path / "b.js")}
    problems = refusals("id BIGINT", inline="function processBatch() {}", modules=missing)
    assert [(p.code, p.path) for p in problems] == [
        ("unreadable_file", "modules.a"),
        ("unreadable_file", "modules.b"),
    ]
    assert refusal("function processBatch() {}", schema="id NUMBER")[:2] == ("invalid_schema", "schema")
    assert refusal("function processBatch() {}", schema="`$meta` INT")[:2] == ("reserved_column", "schema")


def test_a_script_is_either_inline_or_a_file() -> None:
    for spec in ({}, {"inline": "x", "file": "y"}):
        with pytest.raises(ValidationError, match="either 'inline' or 'file'"):
            JavascriptProcessor.model_validate(spec)
