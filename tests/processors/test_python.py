from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT
from penstock.processors.base import Refused
from penstock.processors.python import PythonProcessor
from tests.processors.arrow_kit import batch_of, opened, refusals, run, stage

ALLOWED = stage(allow_python=True)
EVENTS = batch_of("id INT, name STRING", [{"id": i, "name": n} for i, n in enumerate(["a", "b", None, "d"])])


def step(code: str, **options: Any) -> PythonProcessor:
    return PythonProcessor(inline=code, **options)


def test_it_is_off_unless_somebody_turns_it_on() -> None:
    (problem,) = refusals(step("def process(table): return table"), EVENTS)
    assert (problem.code, problem.path) == ("python_not_allowed", "type")
    assert "PENSTOCK_ALLOW_PYTHON" in (problem.hint or "")


def test_rows() -> None:
    code = """
def process_row(event):
    if event["id"] == 3:
        return None
    if event["id"] == 1:
        return [event, {"id": 10}]
    return {"name": event["name"].upper(), "id": event["id"]}
"""
    result = run(step(code), EVENTS, ALLOWED)
    assert result.rows == [{"id": 0, "name": "A"}, {"id": 1, "name": "b"}, {"id": 10, "name": None}]
    assert result.offsets == [0, 1, 1]
    assert result.bad == {2: "python_error"}
    assert result.message(2) == "AttributeError: 'NoneType' object has no attribute 'upper' (line 7)"


def test_what_does_not_fit_takes_its_event_with_it() -> None:
    code = """
def process_row(event):
    return [[{"n": 1}], [{"n": 2}, {"n": "x"}], {"n": None}, 7][event["id"]]
"""
    result = run(step(code, schema="n INT NOT NULL"), EVENTS, ALLOWED)
    assert result.rows == [{"n": 1}]
    assert result.bad == {1: "wrong_type", 2: "missing_field", 3: "python_error"}
    extra = run(step("def process_row(event): return {'nme': 1}"), EVENTS.slice(0, 1), ALLOWED)
    assert extra.bad == {0: "extra_property"}


def test_values_are_those_of_python() -> None:
    ddl = "at TIMESTAMP, day DATE, price DECIMAL(9,2), m MAP<STRING, INT>, s STRUCT<a: ARRAY<INT>>, b BINARY"
    code = """
import datetime, decimal
def process_row(event):
    assert isinstance(event["at"], datetime.datetime) and isinstance(event["price"], decimal.Decimal)
    event["at"] += datetime.timedelta(days=1)
    event["m"]["x"] += 1
    return event
"""
    at = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    row = {"at": at, "day": None, "price": 1, "m": {"x": 1}, "s": {"a": [1]}, "b": b"\xff"}
    (made,) = run(step(code), batch_of(ddl, [row]), ALLOWED).rows
    assert made["at"] == at + datetime.timedelta(days=1)
    assert (made["m"], made["s"], made["b"]) == ({"x": 2}, {"a": [1]}, b"\xff")


def test_tables() -> None:
    code = """
import pyarrow.compute as pc
def process(table):
    print(table.num_rows)
    return table.filter(pc.greater(table["id"], 1)).append_column("twice", pc.multiply(table["id"], 2)[2:])
"""
    result = run(step(code, schema="twice BIGINT, name STRING, id INT"), EVENTS, ALLOWED)
    assert result.rows == [{"twice": 4, "name": None, "id": 2}, {"twice": 6, "name": "d", "id": 3}]
    assert result.offsets == [2, 3]
    assert result.outcome.logs == ["4"]


@pytest.mark.parametrize(("keep", "offsets"), [("table.num_rows", [0, 1, 2, 3]), ("2", [None, None])])
def test_a_table_without_the_hidden_column(keep: str, offsets: list[int | None]) -> None:
    result = run(step(f"def process(table): return table.drop(['$event'])[:{keep}]"), EVENTS, ALLOWED)
    events = result.outcome.batch.column(EVENT).to_pylist()
    assert [event and event["offset"] for event in events] == offsets


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("1 / 0", "python_error"),
        ("exit()", "python_error"),
        ("table.to_pylist()", "python_error"),
        ("table.rename_columns(['id', 'x', '$event'])", "extra_property"),
        ("table.drop(['id'])", "missing_field"),
        ("table.set_column(0, 'id', table['name'])", "wrong_type"),
    ],
)
def test_a_table_that_fails_is_divided_by_the_engine(result: str, code: str) -> None:
    work = opened(step(f"def process(table): return {result}"), EVENTS, ALLOWED)
    with pytest.raises(Refused) as refused:
        work(EVENTS)
    assert refused.value.code == code
    assert work(EVENTS.slice(1, 1)).bad == {0: code}


def test_a_window_is_a_table() -> None:
    code = """
import pyarrow as pa
def process(table):
    if table["id"][0].as_py() == 2:
        raise ValueError("no")
    return pa.table({"id": [sum(table["id"].to_pylist())]})
"""
    windows = ["w1", "w1", "w2", "w2", "w3"]
    events = batch_of("id INT", [{"id": i} for i in range(5)], windows)
    result = run(step(code), events, ALLOWED)
    assert result.rows == [{"id": 1}, {"id": 4}]
    assert result.bad == {2: "python_error", 3: "python_error"}


def test_what_is_printed_is_bounded() -> None:
    code = "def process_row(event):\n    for i in range(60): print(i)"
    result = run(step(code), EVENTS, ALLOWED)
    assert len(result.outcome.logs) == 101
    assert result.outcome.logs[-1] == "140 more lines of this batch were left out"


def test_code_is_loaded_once_and_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "step.py"
    path.write_text("n = []\ndef process_row(event):\n    n.append(1)\n    return {'n': len(n)}")
    processor = PythonProcessor(file=str(path), schema="n INT")
    one = opened(processor, EVENTS, ALLOWED)
    path.unlink()
    assert one(EVENTS).rows[-1] == {"n": 4}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def process(table:", "python_syntax"),
        ("x = 1", "python_function"),
        ("def process(t): pass\ndef process_row(e): pass", "python_function"),
        ("def process(t): return\n\x00", "python_syntax"),
    ],
)
def test_code_that_cannot_work_is_refused_without_running_it(code: str, problem: str) -> None:
    (found,) = refusals(step("raise SystemExit\n" + code), EVENTS, ALLOWED)
    assert (found.code, found.path) == (problem, "inline")


def test_code_that_does_not_load_fails_the_flow() -> None:
    with pytest.raises(Fault, match=r"\[python_load\] ModuleNotFoundError: .* \(line 1\)"):
        opened(step("import nowhere_at_all\ndef process(table): return table"), EVENTS, ALLOWED)


def test_either_inline_or_file() -> None:
    for options in ({}, {"inline": "x", "file": "y"}):
        with pytest.raises(ValidationError, match="either"):
            PythonProcessor(**options)
