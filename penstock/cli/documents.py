"""`penstock get|describe|delete`: the documents of a server."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from penstock.cli import complete, views
from penstock.cli.client import Client, connect
from penstock.cli.kinds import PLURALS, RUNNABLE, kind_of
from penstock.cli.options import Json, Server, Yes
from penstock.cli.output import FAILED, Usage, envelope, note, say, show_json, show_problems
from penstock.errors import PenstockError, Problem
from penstock.specs.text import to_yaml

Format = Literal["table", "yaml", "json", "name"]
KIND_HELP = "streams, sources, tasks, sinks or pipelines; the singular or a prefix also works."
Kind = Annotated[str, typer.Argument(help=KIND_HELP, autocompletion=complete.kinds, show_default=False)]
Name = Annotated[
    str, typer.Argument(help="Name of the document.", autocompletion=complete.names, show_default=False)
]


def get(
    kind: Kind,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of one document to show.", autocompletion=complete.names, show_default=False
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = "table",
    search: Annotated[
        str | None, typer.Option(help="Only documents with this text in name, id or description.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="Only documents with this status.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="`key` or `key=value`; may be repeated.")] = None,
    sort: Annotated[
        str | None, typer.Option(help="name, created, updated, status; `-name` reverses.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of documents to list.")] = None,
    server: Server = None,
    json: Json = False,
) -> None:
    """List documents, or show one."""
    kind = kind_of(kind)
    if name is not None and any((search, status, label, sort, limit)):
        raise Usage(
            Problem(code="exclusive_options", message="filters can't be used with the name of a document")
        )
    if status is not None and kind not in RUNNABLE:
        message = f"{PLURALS[kind]} do not run: they have no status"
        raise Usage(Problem(code="exclusive_options", message=message))
    client = connect(server)
    if name is not None:
        found: dict[str, Any] = {"items": [client.get(kind, name)], "total": 1}
    else:
        found = client.list(kind, limit, search=search, status=status, label=label, sort=sort)
    items = found["items"]
    if json or output == "json":
        show_json(found if name is None else items[0])
    elif output == "yaml":
        print("---\n".join(to_yaml(views.document(kind, item)) for item in items), end="")
    elif output == "name":
        for item in items:
            print(item["name"])
    elif items:
        views.show_list(kind, items)
        if len(items) < found["total"]:
            note(f"{len(items)} of {found['total']}")
    else:
        note("nothing found")


def describe(kind: Kind, name: Name, server: Server = None, json: Json = False) -> None:
    """Show a document in detail."""
    kind = kind_of(kind)
    about = load_page(connect(server), kind, name)
    if json:
        show_json(about)
    else:
        views.show_page(kind, about)


def load_page(client: Client, kind: str, name: str) -> dict[str, Any]:
    """A document with its referrers and revisions."""
    return {**client.get(kind, name), "revisions": client.about(kind, name, "revisions")}


def delete(
    kind: Kind,
    names: Annotated[
        list[str],
        typer.Argument(help="Names of documents.", autocompletion=complete.names, show_default=False),
    ],
    yes: Yes = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Delete documents that nothing refers to. Running flows are stopped first."""
    kind = kind_of(kind)
    confirm(f"Delete {kind.lower()} {', '.join(names)}?", yes)
    client = connect(server)
    results: list[dict[str, Any]] = []
    failed = False
    for name in names:
        try:
            client.delete(kind, name)
        except PenstockError as error:
            failed = True
            results.append({"name": name, "error": envelope(error.problems)})
            if not json:
                show_problems(error.problems)
        else:
            results.append({"name": name, "action": "deleted"})
            if not json:
                say((f"{name} ", "bold"), "deleted")
    if json:
        show_json({"items": results})
    if failed:
        raise typer.Exit(FAILED)


def confirm(question: str, yes: bool) -> None:
    """Continue only if the user confirms; without a terminal, `--yes` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Usage(
            Problem(
                code="not_confirmed", message=f"{question} Can't ask without a terminal.", hint="add --yes"
            )
        )
    typer.confirm(question, abort=True, err=True)
