"""`penstock apply`: saves documents from files on a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

import typer

from penstock.cli.bars import count_bar
from penstock.cli.bundle import STYLES, send_bundle, show_changes
from penstock.cli.client import LOOK_S, START_S, Client, Edited, NoServer, connect
from penstock.cli.files import Found, in_order, read_files
from penstock.cli.options import AcceptReset, DryRun, Json, Server
from penstock.cli.output import FAILED, INVALID, exit_code, note, say, show_json, show_problems
from penstock.cli.plans import plan_all, show_plan, show_plans
from penstock.cli.text import plural
from penstock.errors import Invalid, PenstockError, Problem

DONE = {"create": "created", "update": "updated", "unchanged": "unchanged"}


@dataclass(frozen=True)
class Applied:
    """The result of applying one document."""

    file: str
    kind: str | None
    name: str | None
    action: str
    code: int = 0
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    edited: Edited | None = None
    """The saved document while its new revision has yet to start, otherwise None."""


def apply(
    files: Annotated[list[str], typer.Argument(help="Files or directories; `-` reads standard input.")],
    dry_run: DryRun = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the changes and their effect on flows without applying them.")
    ] = False,
    accept_reset: AcceptReset = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Create or update every document in files, in order of their references."""
    documents = in_order(read_files(files))
    client = connect(server)
    if plan:
        _plan(client, documents, as_json=json)
        return
    if dry_run:
        _preview(client, documents, as_json=json)
        return
    results = []
    with count_bar("applying documents", quiet=json) as progress:
        for result in apply_all(client, documents, accept_reset=accept_reset):
            results.append(result)
            progress(len(results), len(documents))
            if not json and result.edited is None:
                show_applied(result)
    results = list(_started(client, results, quiet=json))
    if json:
        show_json({"items": [_plain(result) for result in results]})
    _exit({result.code for result in results})


def _exit(codes: set[int]) -> None:
    if codes - {0}:
        raise typer.Exit(INVALID if INVALID in codes else FAILED)


def apply_all(client: Client, documents: Sequence[Found], *, accept_reset: bool = False) -> Iterator[Applied]:
    """Save each document; a rejected document does not prevent the others from being saved."""
    for document in documents:
        try:
            action, edited = _apply(client, document, accept_reset)
            yield Applied(
                document.file,
                document.kind,
                document.name,
                action,
                warnings=_warnings(edited.document),
                edited=edited if edited.look_at else None,
            )
        except NoServer:
            raise
        except PenstockError as error:
            code = exit_code(error)
            yield Applied(document.file, document.kind, document.name, "failed", code, error.problems)


def _started(client: Client, results: Sequence[Applied], *, quiet: bool) -> Iterator[Applied]:
    """The results of all documents, after waiting for their new revisions to start."""
    open_ = sum(result.edited is not None for result in results)
    if open_ and not quiet:
        note(f"waiting for {plural(open_, 'new revision')} to start")
    until = time.monotonic() + START_S
    for result in results:
        if result.edited is None:
            yield result
            continue
        try:
            now = client.await_start(result.edited, max(LOOK_S, until - time.monotonic()))
            result = replace(result, warnings=_warnings(now), edited=None)
        except NoServer:
            raise
        except PenstockError as error:
            code = exit_code(error)
            result = replace(result, action="failed", code=code, errors=error.problems, edited=None)
        if not quiet:
            show_applied(result)
        yield result


def _apply(client: Client, document: Found, accept_reset: bool) -> tuple[str, Edited]:
    kind, name = document.kind, document.name
    if not document.addressable or kind is None or name is None:
        from penstock.specs.validation import parse  # loads every connector

        parse(document.raw)  # raises with the missing fields
        raise Invalid(Problem(code="not_a_document", message="the document has no kind or no name"))
    before = client.find(kind, name)
    if before is None:
        return "create", Edited(client.create(kind, document.raw))
    edited = client.replace(kind, name, document.raw, accept_reset=accept_reset)
    wanted = document.raw.get("status")
    # A document that does not run has no status, whatever the file requests.
    kept = wanted is None or before.get("status") in (None, wanted)
    same = before["revision"] == edited.document["revision"] and kept
    return ("unchanged" if same else "update"), edited


def _warnings(answer: dict[str, Any]) -> list[Problem]:
    return [Problem.model_validate(warning) for warning in answer.get("warnings") or []]


def _plan(client: Client, documents: Sequence[Found], *, as_json: bool) -> None:
    plans = []
    for planned in plan_all(client, documents):
        plans.append(planned)
        if not as_json:
            show_plan(planned)
    if as_json:
        show_json({"items": [_plain(planned) for planned in plans]})
    else:
        show_plans(plans)
    _exit({planned.code for planned in plans})


def _preview(client: Client, documents: Sequence[Found], *, as_json: bool) -> None:
    params = {"mode": "merge", "dry_run": "true"}
    told = send_bundle(client, [document.raw for document in documents], params, quiet=as_json)
    if as_json:
        show_json(told)
    else:
        show_changes(told["changes"], applied=False)


def show_applied(result: Applied) -> None:
    """One line for a document, and its problems."""
    done = DONE.get(result.action, result.action)
    style = STYLES.get(result.action, "bold red")
    say((f"{done:<10}", style), f"{(result.kind or 'document').lower()} {result.name or ''} ({result.file})")
    show_problems(result.errors, indent="  ")
    show_problems(result.warnings, level="warning", indent="  ")


def _plain(result: Any) -> dict[str, Any]:
    plain = asdict(result)
    plain.pop("edited", None)
    for level in {"errors", "warnings"} & plain.keys():
        plain[level] = [problem.model_dump() for problem in getattr(result, level)]
    return plain
