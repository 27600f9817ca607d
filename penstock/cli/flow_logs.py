"""`penstock logs`: the log of a flow."""

from __future__ import annotations

import json as jsons
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from penstock.cli import complete
from penstock.cli.client import Client, connect, path_of
from penstock.cli.kinds import target_of
from penstock.cli.options import Json, Server
from penstock.cli.output import say, show_json
from penstock.cli.stream_server import messages
from penstock.cli.text import moment_of

STYLES = {"debug": "dim", "info": "green", "warning": "yellow", "error": "bold red"}


def logs(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a pipeline, or `source/NAME`, `task/NAME` or `sink/NAME`.",
            autocompletion=complete.targets,
            show_default=False,
        ),
    ],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until Ctrl-C.")] = False,
    level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Minimum severity.")
    ] = "info",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Number of lines to show initially.")] = 100,
    server: Server = None,
    json: Json = False,
) -> None:
    """Show the log of a flow: starts, failures, dead letters and script output.

    With --json each line is an object.
    """
    kind, of = target_of(name)
    client = connect(server)
    if not follow:
        lines = client.about(kind, of, "logs", level=level, limit=limit)["lines"]
        _show(lines, as_json=json)
        return
    try:
        for number, lines in enumerate(_following(client, kind, of, level)):
            _show(lines if number else lines[-limit:], as_json=json)
    except KeyboardInterrupt:
        return


def _following(client: Client, kind: str, name: str, level: str) -> Iterator[list[dict[str, Any]]]:
    with client.follow(path_of(kind, name, "logs", "follow"), params={"level": level}) as answer:
        for message in messages(answer.iter_lines()):
            if message.get("event") == "lines":
                yield jsons.loads(message["data"])


def _show(lines: list[dict[str, Any]], *, as_json: bool) -> None:
    for line in lines:
        if as_json:
            show_json(line, line=True)
            continue
        at = moment_of(line["at"])
        time = at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""
        where = line["step"] or line["sink"]
        about = " ".join(f"{name}={value}" for name, value in line["fields"].items())
        say(
            (f"{time} ", "dim"),
            (f"{line['level']:<8}", STYLES[line["level"]]),
            (f"{where}: " if where else "", "bold"),
            line["message"],
            (f"  {about}" if about else "", "dim"),
        )
