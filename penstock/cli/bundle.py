"""`penstock export|import`: the whole registry as one file."""

from __future__ import annotations

import re
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from penstock.cli.bars import Progress, count_bar
from penstock.cli.client import LOOK_S, Client, connect
from penstock.cli.documents import confirm
from penstock.cli.files import read_files
from penstock.cli.options import AcceptReset, DryRun, Json, Server, Yes
from penstock.cli.output import note, say, show_json
from penstock.cli.revisions import show_entries
from penstock.cli.text import plural
from penstock.errors import Invalid, PenstockError, Problem

STYLES = {"create": "green", "update": "yellow", "delete": "red", "unchanged": "dim"}


def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")
    ] = None,
    file_format: Annotated[
        Literal["yaml", "json"], typer.Option("--format", help="Format of the bundle.")
    ] = "yaml",
    server: Server = None,
    json: Json = False,
) -> None:
    """Export every document of the server as one bundle."""
    chosen = "json" if json else file_format
    text = connect(server).fetch("GET", "/bundle", params={"format": chosen}).text
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        output.write_text(text, encoding="utf-8")
        note(f"written to {output}")


def import_(
    file: Annotated[str, typer.Argument(help="A bundle, or any documents; `-` reads standard input.")],
    mode: Annotated[
        Literal["merge", "replace"],
        typer.Option(help="merge keeps documents that are not in the file; replace deletes them."),
    ] = "merge",
    dry_run: DryRun = False,
    accept_reset: AcceptReset = False,
    yes: Yes = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Import all documents of a bundle, or none if one is invalid."""
    documents = [found.raw for found in read_files([file])]
    if mode == "replace" and not dry_run:
        confirm("Replace every document on the server with those in the file?", yes)
    params = {"mode": mode, "dry_run": str(dry_run).lower(), "accept_reset": str(accept_reset).lower()}
    told = send_bundle(connect(server), documents, params, quiet=json)
    if json:
        show_json(told)
    else:
        show_changes(told["changes"], applied=told["applied"])


def send_bundle(
    client: Client, documents: list[Any], params: dict[str, str], *, quiet: bool = False
) -> dict[str, Any]:
    """Import documents and show progress. Problems identify their document by kind and name."""
    number, ended = uuid.uuid4().hex, threading.Event()

    def watch(show: Progress) -> None:
        while not ended.wait(LOOK_S):
            with suppress(PenstockError):  # the import itself reports an unavailable server
                if now := client.call("GET", f"/bundle/progress/{number}"):
                    show(now["checked"], now["total"])

    with count_bar("checking documents", quiet=quiet) as show:
        if sys.stderr.isatty() and not quiet:
            threading.Thread(target=watch, args=[show], daemon=True).start()
        try:
            return dict(
                client.call("POST", "/bundle", params={**params, "id": number}, json=as_bundle(documents))
            )
        except Invalid as error:
            raise Invalid(*map(_without_place, error.problems)) from None
        finally:
            ended.set()


def _without_place(problem: Problem) -> Problem:
    """The problem with a path relative to its document, which the message names."""
    path = re.sub(r"^documents\[\d+\]\.?", "", problem.path or "")
    return problem.model_copy(update={"path": path or None})


def as_bundle(documents: list[Any]) -> dict[str, Any]:
    """Documents as a bundle, which one request can send."""
    return {"apiVersion": "penstock/v1", "kind": "Bundle", "documents": documents}


def show_changes(changes: list[dict[str, Any]], *, applied: bool) -> None:
    """Show the change to each document that an import has made or would make."""
    for change in changes:
        action = change["action"]
        say((f"{action:<10}", STYLES[action]), f"{change['kind'].lower()} {change['name']}")
        if not applied:
            show_entries(change["diff"], indent="    ")
    changed = sum(change["action"] != "unchanged" for change in changes)
    note(plural(changed, "change") + ("" if applied else ", nothing was saved (dry run)"))
