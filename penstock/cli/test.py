"""`penstock test`: runs the tests of documents, or a document on sample events."""

# ruff: noqa: PT028 (`test` is a command here)

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.files import STDIN, Found, read_files
from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import FAILED, Usage, note, say, show_json
from penstock.cli.samples import read_events, read_file
from penstock.cli.sessions import spark_session
from penstock.cli.test_views import show_balance, show_case, show_result, write_junit
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.engine.trials.declared_tests import CaseResult
    from penstock.engine.trials.samples import Given
    from penstock.engine.trials.trial import Bench
    from penstock.specs.cases import Case


@dataclass(frozen=True)
class Tests:
    """The tests of a document, and their results."""

    document: Found
    cases: list[Case]
    results: list[CaseResult]
    seconds: float = 0.0

    def beside(self, path: str) -> Given:
        """The events in a file whose path is relative to the document."""
        file = self.document.file
        return read_file((Path() if file == STDIN else Path(file).parent) / path)


def test(
    files: Annotated[list[str], typer.Argument(help="Files or directories; `-` reads standard input.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only tests with this name; may be repeated.")
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events", help="Run one document on these events instead: @FILE, JSON, or - for standard input."
        ),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option("--given", help="With --events: answers of external systems by step, as @FILE or JSON."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="With --events: name of the document to run.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write a JUnit report to this file.")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run the tests of documents on sample events. Needs no server.

    With --events, run a document on sample events and show the output of each step. Nothing is read from
    sources, nothing is written to sinks, and no step calls an external system.
    """
    _require_together(only, events, given, name, junit)
    documents = read_files(files)
    settings = settled(load_settings(home=home))
    if events is not None:
        _preview(_chosen(documents, name), documents, events, given, settings, as_json=json)
        return
    tests = _run(_collected(documents, only or ()), documents, settings, quiet=json)
    if junit is not None:
        write_junit(junit, tests)
    if json:
        show_json([{**_about(each), "tests": [r.model_dump() for r in each.results]} for each in tests])
    else:
        show_balance(tests)
    if any(not result.passed for each in tests for result in each.results):
        raise typer.Exit(FAILED)


def _collected(documents: Sequence[Found], only: Sequence[str]) -> list[Tests]:
    """The documents that have tests; `Invalid` with all problems in their tests."""
    from penstock.engine.trials.declared_tests import cases_of

    problems: list[Problem] = []
    found: list[Tests] = []
    for document in documents:
        try:
            found.append(Tests(document, cases_of(document.raw), []))
        except Invalid as error:
            where = f"{document.file}: {document.title}: "
            problems += [p.model_copy(update={"message": where + p.message}) for p in error.problems]
    if problems:
        raise Invalid(*problems)
    names = {case.name for each in found for case in each.cases}
    for name in only:
        if name not in names:
            message, hint = f"there is no test '{name}'", did_you_mean(name, names) if names else None
            raise Usage(Problem(code="unknown_test", message=message, hint=hint))
    chosen = [
        Tests(each.document, [case for case in each.cases if not only or case.name in only], [])
        for each in found
    ]
    if not names:
        hint = "add them under spec.tests of a pipeline or task, or pass --events"
        raise Usage(Problem(code="no_tests", message="the documents have no tests", hint=hint))
    return [each for each in chosen if each.cases]


def _run(
    tests: Sequence[Tests], documents: Sequence[Found], settings: Settings, *, quiet: bool
) -> list[Tests]:
    from penstock.engine.trials.declared_tests import run_case

    note("starting Spark…")
    done = []
    with spark_session(settings, settings.home / "logs" / "test.log") as session:
        bench = _bench(session, documents, settings)
        for each in tests:
            if not quiet:
                say((f"{each.document.file}: {each.document.title}", "bold"))
            began, results = time.perf_counter(), []
            for case in each.cases:
                result = run_case(bench, each.document.raw, case, each.beside)
                results.append(result)
                if not quiet:
                    show_case(result)
            done.append(Tests(each.document, each.cases, results, time.perf_counter() - began))
    return done


def _preview(
    document: Found,
    documents: Sequence[Found],
    events: str,
    given: str | None,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    from penstock.engine.trials.trial import try_out

    samples = read_events(events)
    answers = read_events(given) if given is not None else [{}]
    if not isinstance(answers, list) or len(answers) != 1 or not isinstance(answers[0], Mapping):
        raise Usage(Problem(code="not_answers", message="--given must be an object: step → answers"))
    note("starting Spark…")
    with spark_session(settings, settings.home / "logs" / "test.log") as session:
        result = try_out(_bench(session, documents, settings), document.raw, samples, answers[0]).result
    if as_json:
        show_json(result.model_dump())
    else:
        show_result(result)
    if not result.ok:
        raise typer.Exit(FAILED)


def _bench(spark: Any, documents: Sequence[Found], settings: Settings) -> Bench:
    from penstock.engine.plan.analysis import offline
    from penstock.engine.trials.trial import Bench
    from penstock.policy import Policy

    lookup, known = offline([document.raw for document in documents])
    defaults, policy = settings.defaults.model_dump(), Policy.of(settings, all_variables=True)
    return Bench(spark, lookup, known, defaults, settings.allow_python, policy)


def _chosen(documents: Sequence[Found], name: str | None) -> Found:
    """The document to run, by name if given: the only pipeline, or else the only document."""
    from penstock.specs.documents import derive_id

    able = [document for document in documents if document.kind != "Stream"]
    if name is not None:
        able = [one for one in able if derive_id(one.name or "") == derive_id(name)]
    able = [one for one in able if one.kind == "Pipeline"] or able
    if len(able) != 1:
        names = ", ".join(one.name or "?" for one in able or documents)
        message = "found more than one document to run" if able else "found no such document to run"
        raise Usage(Problem(code="which_document", message=message, hint=f"choose with --name: {names}"))
    return able[0]


def _require_together(only: Any, events: Any, given: Any, name: Any, junit: Any) -> None:
    wrong = (
        [option for option, value in (("--only", only), ("--junit", junit)) if value is not None]
        if events is not None
        else [option for option, value in (("--given", given), ("--name", name)) if value is not None]
    )
    if wrong:
        how = "together with" if events is not None else "without"
        raise Usage(Problem(code="exclusive_options", message=f"{wrong[0]} has no meaning {how} --events"))


def _about(tests: Tests) -> dict[str, Any]:
    return {"file": tests.document.file, "kind": tests.document.kind, "name": tests.document.name}
