"""`penstock validate`: finds problems in documents before they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from penstock.cli.client import connect
from penstock.cli.files import Found, read_files
from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import INVALID, note, show_json, show_problems
from penstock.cli.sessions import Starting, starting_spark
from penstock.cli.text import plural
from penstock.errors import Problem
from penstock.policy import Policy
from penstock.settings import Settings


@dataclass(frozen=True)
class Judged:
    """A document and the problems found in it."""

    document: Found
    errors: list[Problem]
    warnings: list[Problem]

    def plain(self) -> dict[str, Any]:
        """The result in the form of `--json`."""
        return {
            "file": self.document.file,
            "kind": self.document.kind,
            "name": self.document.name,
            "valid": not self.errors,
            "errors": [problem.model_dump() for problem in self.errors],
            "warnings": [problem.model_dump() for problem in self.warnings],
        }


def validate(
    files: Annotated[list[str], typer.Argument(help="Files or directories; `-` reads standard input.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Structure and references only: no Spark, no schemas, no SQL.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            help="Validate on this server, including references to its documents.",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Validate documents and their references, down to every column of every SQL query."""
    documents = read_files(files)
    if server:
        judged = judge_by_server(documents, server)
    elif quick:
        judged = judge_quickly(documents, settled(load_settings(home=home)))
    else:
        settings = settled(load_settings(home=home))
        with starting_spark(settings) as spark:
            judged = judge_deeply(judge_quickly(documents, settings), settings, spark)
    if json:
        valid = not any(one.errors for one in judged)
        show_json({"valid": valid, "documents": [one.plain() for one in judged]})
    else:
        show_judged(judged)
    if any(one.errors for one in judged):
        raise typer.Exit(INVALID)


def judge_quickly(documents: Sequence[Found], settings: Settings) -> list[Judged]:
    """Validate the structure and the references of each document."""
    from penstock.engine.plan.analysis import analyse, offline

    lookup, known = offline([document.raw for document in documents])
    defaults, policy = settings.defaults.model_dump(), Policy.of(settings, all_variables=True)
    twice = _duplicates(documents)
    judged = []
    for document in documents:
        analysis = analyse(document.raw, lookup, known, defaults, policy=policy)
        judged.append(Judged(document, [*analysis.errors, *twice.get(id(document), [])], analysis.warnings))
    return judged


def judge_deeply(judged: Sequence[Judged], settings: Settings, spark: Starting) -> list[Judged]:
    """Validate each document whose structure is valid with Spark."""
    from penstock.engine.plan.analysis import analyse, offline

    if all(one.errors for one in judged):
        return list(judged)
    from penstock.engine.plan.shapes import Shapes

    lookup, known = offline([one.document.raw for one in judged])
    defaults, policy = settings.defaults.model_dump(), Policy.of(settings, all_variables=True)
    note("starting Spark…")
    with spark.session(settings.home / "logs" / "validate.log") as session:
        deep, shapes, allowed = [], Shapes(), settings.allow_python
        for one in judged:
            if not one.errors:
                analysis = analyse(
                    one.document.raw,
                    lookup,
                    known,
                    defaults,
                    session,
                    policy=policy,
                    allow_python=allowed,
                    shapes=shapes,
                )
                one = Judged(one.document, analysis.errors, analysis.warnings)
            deep.append(one)
        return deep


def judge_by_server(documents: Sequence[Found], server: str) -> list[Judged]:
    """Validate the documents on a server."""
    told = connect(server).call("POST", "/validate", json=[document.raw for document in documents])
    return [
        Judged(document, _problems(answer, "errors"), _problems(answer, "warnings"))
        for document, answer in zip(documents, told["documents"], strict=True)
    ]


def show_judged(judged: Sequence[Judged]) -> None:
    """Show every problem below its document, then the totals."""
    for one in judged:
        if one.errors or one.warnings:
            note((f"{one.document.file}: {one.document.title}", "bold"))
            show_problems(one.errors, indent="  ")
            show_problems(one.warnings, level="warning", indent="  ")
    errors = sum(len(one.errors) for one in judged)
    warnings = sum(len(one.warnings) for one in judged)
    balance = f"{plural(len(judged), 'document')}, {plural(errors, 'error')}, {plural(warnings, 'warning')}"
    note((balance, "bold red" if errors else "bold green"))


def _duplicates(documents: Sequence[Found]) -> dict[int, list[Problem]]:
    """A problem for each document with the kind and id of an earlier document."""
    from penstock.specs.documents import derive_id

    seen: Counter[tuple[str, str]] = Counter()
    found: dict[int, list[Problem]] = {}
    for document in documents:
        if document.kind and document.name:
            key = (document.kind, derive_id(document.name))
            if seen[key]:
                message = f"there is a second {document.kind.lower()} with the id '{key[1]}'"
                problem = Problem(code="duplicate_document", message=message, path="metadata.name")
                found[id(document)] = [problem]
            seen[key] += 1
    return found


def _problems(answer: Mapping[str, Any], level: str) -> list[Problem]:
    return [Problem.model_validate(problem) for problem in answer[level]]
