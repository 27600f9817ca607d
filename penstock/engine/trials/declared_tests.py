"""The `tests:` of a document: test runs whose results are compared with expected ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, Field

from penstock.engine.trials.differences import Difference, Events
from penstock.engine.trials.result import EventError
from penstock.engine.trials.samples import Given
from penstock.engine.trials.trial import Bench, Trial, try_out
from penstock.errors import Invalid, PenstockError, Problem, did_you_mean
from penstock.specs.cases import Case, EventsExpectation, Expect, ExpectedError
from penstock.specs.validation import parse

MOST_TOLD = 50
"""The maximum number of differences that are reported."""

Failed = tuple[str, EventError]
"""The step that has failed on an event, and the error."""


class CaseResult(BaseModel):
    """The result of a declared test."""

    name: str
    passed: bool
    differences: list[Difference] = Field(default_factory=list)
    errors: list[Problem] = Field(default_factory=list, description="Why the test could not finish.")
    ms: float


def cases_of(raw: Any, only: Sequence[str] = ()) -> list[Case]:
    """The tests of a document, or some by name; raises `Invalid` if it is invalid, or a name is unknown."""
    cases: list[Case] = getattr(parse(raw).spec, "tests", [])  # type: ignore[attr-defined]
    names = [case.name for case in cases]
    for name in only:
        if name not in names:
            message = f"there is no test '{name}'"
            hint = did_you_mean(name, names) if names else "the document has no tests"
            raise Invalid(Problem(code="unknown_test", message=message, path="spec.tests", hint=hint))
    return [case for case in cases if not only or case.name in only]


def run_case(
    bench: Bench, raw: Any, case: Case, read_file: Callable[[str], Given] | None = None
) -> CaseResult:
    """Run a test. `read_file` reads the events of a file next to the document, if files are available."""
    began = time.perf_counter()
    differences: list[Difference] = []
    try:
        trial = try_out(bench, raw, _input(case, read_file), case.given, "input")
        errors = trial.result.errors
        if not errors:
            differences = list(_differences(case.expect, trial))[:MOST_TOLD]
    except PenstockError as error:  # the samples do not match the source, or cannot be read
        errors = error.problems
    return CaseResult(
        name=case.name,
        passed=not errors and not differences,
        differences=differences,
        errors=errors,
        ms=round((time.perf_counter() - began) * 1000, 1),
    )


def _input(case: Case, read_file: Callable[[str], Given] | None) -> Given:
    if not isinstance(case.input, str):
        return case.input
    if read_file is None:
        message = "its events are in a file next to the document, which this server doesn't have"
        hint = "run it with `penstock test FILE`, or put the events into the document"
        raise Invalid(Problem(code="file_input", message=message, path="input", hint=hint))
    return read_file(case.input)


def _differences(expect: Expect, trial: Trial) -> Iterator[Difference]:
    """All differences between a result and its expectations."""
    if expect.output is not None and trial.final is not None:
        yield from _compared(expect.output, Events(trial.final), "output")
    for name, wanted in expect.sinks.items():
        if name not in trial.sinks:
            yield _unknown("sink", name, list(trial.sinks), f"sinks.{name}")
        else:
            yield from _compared(wanted, Events(trial.sinks[name]), f"sinks.{name}")
    steps = {step.id: step for step in trial.result.steps}
    failed: list[Failed] = [(step.id, error) for step in steps.values() for error in step.errors]
    for name, own in expect.steps.items():
        where = f"steps.{name}"
        if name not in steps:
            yield _unknown("step", name, list(steps), where)
            continue
        yield from _compared(own, Events(trial.outputs[name]), where)
        if own.dropped is not None:
            yield from _counted(own.dropped, steps[name].dropped, f"{where}.dropped")
        if own.errors is not None:
            of_step = [each for each in failed if each[0] == name]
            yield from _failures(own.errors, of_step, f"{where}.errors")
            if expect.errors is None:
                failed = [each for each in failed if each[0] != name]
    yield from _failures(expect.errors or [], failed, "errors")


def _compared(wanted: EventsExpectation, events: Events, where: str) -> Iterator[Difference]:
    if wanted.count is not None:
        yield from _counted(wanted.count, len(events.rows), f"{where}.count")
    if wanted.equals is not None:
        yield from events.equal(wanted.equals, where)
    yield from events.contain(wanted.contains or [], where)
    yield from events.match(wanted.matches or [], where)


def _counted(expected: int, actual: int, where: str) -> Iterator[Difference]:
    if expected != actual:
        yield Difference(where=where, message="differs", expected=expected, actual=actual)


def _failures(
    expected: Sequence[ExpectedError], failed: Sequence[Failed], where: str
) -> Iterator[Difference]:
    """Expected errors that did not occur, and errors that were not expected."""
    left = list(failed)
    for i, wanted in enumerate(expected):
        found = next((each for each in left if _fits(wanted, *each)), None)
        if found is None:
            told = wanted.model_dump(exclude_none=True)
            yield Difference(where=f"{where}[{i}]", message="this error did not occur", expected=told)
        else:
            left.remove(found)
    for step, error in left:
        message = f"an event failed in step '{step}': [{error.code}] {error.message}"
        yield Difference(where=where, message=message, actual=error.event)


def _fits(wanted: ExpectedError, step: str, error: EventError) -> bool:
    return (
        wanted.step in (None, step)
        and wanted.code in (None, error.code)
        and (wanted.message or "") in error.message
    )


def _unknown(what: str, name: str, known: Sequence[str], where: str) -> Difference:
    hint = f" ({did_you_mean(name, known)})" if known else ""
    return Difference(where=where, message=f"there is no {what} '{name}'{hint}")
