from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.cli.output import Usage
from penstock.cli.samples import read_events, read_file
from penstock.engine.trials.samples import Text
from tests.cli.commands import Penstock
from tests.cli.conftest import Command

ORDERS = """\
kind: Pipeline
metadata: {name: orders}
spec:
  source: {type: http, schema: "id BIGINT, amount DOUBLE"}
  processors:
    - {id: big, type: filter, where: amount > 50}
    - {id: ratio, type: map, set: {ratio: "100 / (amount - 60)"}}
  sinks: [{type: drop}]
  tests:
    - name: small ones are left out
      input: samples/orders.csv
      expect:
        output: [{id: 1, amount: 80, ratio: 5}]
        steps: {big: {dropped: 1}}
    - name: a ratio that is wrong
      input: [{id: 1, amount: 80}]
      expect: {output: [{id: 1, amount: 80, ratio: 6}]}
"""


@pytest.mark.slow
def test_tests_of_documents_and_a_look_at_each_step(penstock: Penstock, with_spark: Command) -> None:
    penstock.write("docs/orders.yaml", ORDERS)
    penstock.write("docs/samples/orders.csv", "id,amount\n1,80\n2,20\n")
    done = penstock("test", "docs", "--junit", "out/report.xml")
    assert (done.returncode, "2 tests, 1 failed" in done.stderr) == (1, True), done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "docs/orders.yaml: Pipeline 'orders'"
    assert lines[1].startswith("  passed small ones are left out")
    assert lines[2].startswith("  failed a ratio that is wrong")
    assert lines[3:] == [
        "    output[0].ratio: differs",
        "      expected  6",
        "      actual    5.0",
    ]
    (suite,) = ElementTree.parse(penstock.directory / "out/report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    passed, failed = suite
    assert (passed.get("name"), len(passed)) == ("small ones are left out", 0)
    assert (failed[0].get("message") or "").startswith("output[0].ratio: differs")

    # A look at what each step makes of some events
    penstock.write(
        "some.ndjson", '{"id": 1, "amount": 80}\n{"id": 2, "amount": 20}\n{"id": 3, "amount": 60}\n'
    )
    seen = with_spark("test", "docs/orders.yaml", "--events", "@some.ndjson")
    assert seen.exit_code == 0, seen.stderr
    words = [line.split() for line in seen.stdout.splitlines()]
    assert words[0][:5] == ["big", "(filter):", "2", "events,", "1"]
    assert ["id", "amount"] in words
    assert ["1", "80.0", "5.0"] in words
    assert any("[divide_by_zero]" in line for line in seen.stdout.splitlines())
    assert "→ drop: 1 event" in seen.stdout


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["test", *arguments])


@pytest.mark.parametrize(
    "options",
    [
        ("--only", "nothing"),
        ("--given", "{}"),
        ("--events", "[]", "--only", "x"),
        ("--events", "[]", "--junit", "x"),
        ("--events", "[]", "--name", "nobody"),
        ("--events", "[", "--name", "orders"),
        ("--events", "@nowhere.json"),
        ("--events", "[]", "--given", "[1, 2]"),
    ],
)
def test_wrong_usage(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "orders.yaml").write_text(ORDERS)
    assert run(str(tmp_path / "orders.yaml"), "--home", str(tmp_path), *options).exit_code == 2


def test_documents_without_tests_and_documents_that_are_wrong(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS[: ORDERS.index("  tests:")])
    none = run(str(file), "--home", str(tmp_path))
    assert (none.exit_code, "no_tests" in none.stderr) == (2, True)
    file.write_text(ORDERS.replace("expect:", "expects:"))
    wrong = run(str(file), "--home", str(tmp_path))
    assert (wrong.exit_code, "spec.tests[0].expects" in wrong.stderr) == (3, True)


@pytest.mark.parametrize(
    ("name", "content", "events"),
    [
        ("a.json", '[{"a": 1}]', [{"a": 1}]),
        ("a.json", '{"a": 1}', [{"a": 1}]),
        ("a.ndjson", '{"a": 1}\n\n"text"\n', [{"a": 1}, "text"]),
        ("a.csv", "a\n1\n", Text(b"a\n1\n", "text/csv")),
        ("a.txt", "one\n", Text(b"one\n", "text/plain")),
    ],
)
def test_files_of_events(tmp_path: Path, name: str, content: str, events: Any) -> None:
    (tmp_path / name).write_text(content)
    assert read_file(tmp_path / name) == read_events(f"@{tmp_path / name}") == events


@pytest.mark.parametrize(("name", "content"), [("a.ndjson", "{}\n{"), ("a.json", ""), ("a.xml", "<a/>")])
def test_files_of_something_else(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Usage) as caught:
        read_file(tmp_path / name)
    assert name in caught.value.problems[0].message
