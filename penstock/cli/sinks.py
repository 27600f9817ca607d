"""`penstock sinks|catch-up`: the position and missed batches of each sink."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.client import connect, path_of
from penstock.cli.kinds import target_of
from penstock.cli.options import Json, Server
from penstock.cli.output import say, show_json, show_table
from penstock.cli.text import count, plural, when

Name = Annotated[
    str,
    typer.Argument(help="Name of a pipeline, or `task/NAME`.", autocompletion=complete.targets),
]


def sinks(name: Name, server: Server = None, json: Json = False) -> None:
    """Show the position and missed batches of each sink of a pipeline or task."""
    found = connect(server).about(*target_of(name), "sinks")
    if json:
        show_json(found)
        return
    show_table(
        ["SINK", "TYPE", "PATH", "GUARANTEE", "REQUIRED", "STATE", "CURSOR", "LAG", "LAST", "FAILURES"],
        [_row(sink) for sink in found],
    )
    for sink in found:
        if sink["last_error"]:
            say((f"{sink['id']} ", "bold"), "last error at ", (sink["last_error"], "red"))
        for gap in sink["gaps"]:
            say((f"{sink['id']} ", "bold"), *_told(gap))


def catch_up(
    name: Name,
    sink: Annotated[str, typer.Argument(help="Id of the sink in its document.")],
    server: Server = None,
    json: Json = False,
) -> None:
    """Retry a sink that is behind now. A completed pipeline is started for this."""
    path = path_of(*target_of(name), "sinks", sink, "catch-up")
    found = connect(server).call("POST", path)
    if json:
        show_json(found)
        return
    missed = sum(gap["batches"] for gap in found["gaps"] if gap["kept"] != "lost")
    told = (
        f"catching up with {plural(missed, 'batch')}" if missed else "has no missed batches to catch up with"
    )
    say((f"{found['id']} ", "bold"), told)


def _row(sink: dict[str, Any]) -> list[str]:
    return [
        sink["id"],
        sink["type"],
        sink["path"],
        sink["guarantee"],
        "yes" if sink["required"] else "no",
        sink["state"],
        "-" if sink["cursor"] is None else count(sink["cursor"]),
        "-" if sink["lag"] is None else count(sink["lag"]),
        when(sink["last_ack_at"]),
        count(sink["failures"]),
    ]


def _told(gap: dict[str, Any]) -> list[str | tuple[str, str]]:
    batches = plural(gap["batches"], "batch")
    where = (
        f", offsets {gap['first']} to {gap['next'] - 1}" if gap["first"] is not None and gap["next"] else ""
    )
    since = f", since {when(gap['since'])}"
    if gap["kept"] == "lost":
        return [(f"lost {batches}{where}{since}: {gap['why']}", "red")]
    return [f"misses {batches}{where}{since}; kept in the {gap['kept']}"]
