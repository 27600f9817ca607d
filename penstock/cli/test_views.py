"""Output of tests and test runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from penstock.cli.output import note, say, show_problems, show_table
from penstock.cli.text import plural

if TYPE_CHECKING:
    from penstock.cli.test import Tests
    from penstock.engine.trials.declared_tests import CaseResult
    from penstock.engine.trials.differences import Difference
    from penstock.engine.trials.result import StepResult, TestResult

META = "$meta"


def show_case(result: CaseResult) -> None:
    """Show the result of a test, and all differences from the expected output."""
    mark = ("  passed ", "green") if result.passed else ("  failed ", "bold red")
    say(mark, result.name, (f"  {result.ms:.0f} ms", "dim"))
    show_problems(result.errors, indent="    ")
    for difference in result.differences:
        _show_difference(difference)


def show_balance(tests: Sequence[Tests]) -> None:
    """Show the number of tests and of failures."""
    results = [result for each in tests for result in each.results]
    failed = sum(not result.passed for result in results)
    text = f"{plural(len(results), 'test')}, {failed} failed"
    note((text, "bold red" if failed else "bold green"))


def show_result(result: TestResult) -> None:
    """Show the output of each step, and the number of events for each sink."""
    show_problems(result.warnings, level="warning")
    for step in result.steps:
        show_step(step)
    for sink, events in result.output.items():
        say((f"→ {sink}", "bold"), f": {plural(len(events), 'event')}")
    show_problems(result.errors)


def write_junit(path: Path, tests: Sequence[Tests]) -> None:
    """Write a JUnit report for build servers, with a suite for each document."""
    root = ElementTree.Element("testsuites")
    for each in tests:
        failed = [result for result in each.results if not result.passed]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=each.document.title,
            file=each.document.file,
            tests=str(len(each.results)),
            failures=str(len(failed)),
            time=f"{each.seconds:.3f}",
        )
        for result in each.results:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=each.document.title,
                name=result.name,
                time=f"{result.ms / 1000:.3f}",
            )
            if not result.passed:
                lines = [*map(str, result.errors), *map(_line, result.differences)]
                ElementTree.SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _show_difference(difference: Difference) -> None:
    say("    ", (difference.where, "bold"), f": {difference.message}")
    told = difference.model_fields_set
    if "expected" in told:
        say("      expected  ", (_json(difference.expected), "green"))
    if "actual" in told:
        say("      actual    ", (_json(difference.actual), "red"))


def _line(difference: Difference) -> str:
    told = [
        f"{name}: {_json(getattr(difference, name))}"
        for name in ("expected", "actual")
        if name in difference.model_fields_set
    ]
    return "; ".join([f"{difference.where}: {difference.message}", *told])


def show_step(step: StepResult) -> None:
    """Show the output of a step, with dropped, failed and late events."""
    figures = [plural(len(step.output), "event")]
    figures += [f"{step.dropped} dropped"] if step.dropped else []
    figures += [plural(len(step.errors), "error")] if step.errors else []
    figures += [f"{len(step.late)} late"] if step.late else []
    say((step.id, "bold"), f" ({step.type}): {', '.join(figures)}", (f"  {step.ms:.0f} ms", "dim"))
    if step.output:
        names = [column.name for column in step.columns]
        show_table(names, ([_cell(event[name]) for name in names] for event in step.output))
    for event in step.dropped_events:
        say(("  dropped ", "yellow"), _json(_plain(event)))
    for error in step.errors:
        say(("  failed  ", "red"), f"[{error.code}] {error.message} ", (_json(_plain(error.event)), "dim"))
    for event in step.late:
        say(("  late    ", "yellow"), _json(_plain(event)))
    for line in step.logs:
        say(("  log     ", "cyan"), line)
    say("")


def show_event(event: dict[str, Any]) -> str:
    """An event on one line."""
    return _json(_plain(event))


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != META}


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
