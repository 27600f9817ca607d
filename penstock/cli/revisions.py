"""`penstock revisions|diff|rollback`: the history of a document."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.client import connect
from penstock.cli.kinds import kind_of
from penstock.cli.options import AcceptReset, Json, Server
from penstock.cli.output import note, say, show_json, show_problems, show_table
from penstock.cli.text import when
from penstock.errors import Problem

Name = Annotated[str, typer.Argument(help="Name of the document.", autocompletion=complete.names)]
Kind = Annotated[
    str, typer.Option(help="Kind of the document.", autocompletion=complete.kinds, is_eager=True)
]
PIPELINE = "pipeline"


def revisions(name: Name, kind: Kind = PIPELINE, server: Server = None, json: Json = False) -> None:
    """List the revisions of a document, newest first."""
    found = connect(server).about(kind_of(kind), name, "revisions")
    if json:
        show_json(found)
        return
    show_table(
        ["REVISION", "SAVED", "BY"],
        [[str(r["revision"]), when(r["created_at"]), r["origin"]] for r in found],
    )


def diff(
    name: Name,
    from_: Annotated[int | None, typer.Option("--from", help="Default: the previous revision.")] = None,
    to: Annotated[int | None, typer.Option("--to", help="Default: the current revision.")] = None,
    kind: Kind = PIPELINE,
    server: Server = None,
    json: Json = False,
) -> None:
    """Show the differences between two revisions of a document."""
    found = connect(server).about(kind_of(kind), name, "diff", **{"from": from_, "to": to})
    if json:
        show_json(found)
    else:
        show_diff_text(found["text"])


def rollback(
    name: Name,
    revision: Annotated[int, typer.Argument(help="Revision to roll back to.")],
    kind: Kind = PIPELINE,
    accept_reset: AcceptReset = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Roll back to an earlier revision, saved as a new one."""
    client = connect(server)
    edited = client.rollback(kind_of(kind), name, revision, accept_reset=accept_reset)
    if edited.look_at is not None and not json:
        note(f"saved as revision {edited.document['revision']}; waiting for it to start")
    saved = client.await_start(edited)
    if json:
        show_json(saved)
    else:
        say((f"{saved['name']} ", "bold"), f"has the content of revision {revision} as {saved['revision']}")
        show_problems([Problem.model_validate(w) for w in saved.get("warnings") or []], level="warning")


def show_diff_text(text: str) -> None:
    """Show a unified diff in color."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in text.splitlines():
        say((line, styles.get(line[:1], "")))


def show_entries(entries: list[dict[str, Any]], indent: str = "  ") -> None:
    """Show the changes of a document, field by field."""
    signs = {"add": ("+", "green"), "remove": ("-", "red"), "replace": ("~", "yellow")}
    for entry in entries:
        sign, style = signs[entry["op"]]
        before, after = repr(entry.get("before")), repr(entry.get("after"))
        change = {"add": after, "remove": before, "replace": f"{before} → {after}"}[entry["op"]]
        say((f"{indent}{sign} {entry['path'] or '(all)'}: ", style), change)
