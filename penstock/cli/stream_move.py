"""`penstock stream move`: moves a stream to another storage while it is in use."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from penstock.cli.bars import bar
from penstock.cli.client import Client, connect, path_of
from penstock.cli.options import Json, Server
from penstock.cli.output import FAILED, Usage, note, say, show_json, show_problems
from penstock.cli.stream_server import Name
from penstock.cli.text import size
from penstock.errors import Problem

POLL_S = 0.2


def move(
    name: Name,
    to: Annotated[str | None, typer.Option("--to", help="Target storage: kafka.")] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Cancel an incomplete move and remove the copy.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the end of the move and show progress.")
    ] = True,
    server: Server = None,
    json: Json = False,
) -> None:
    """Move a stream to Kafka while it is in use. Run the command again to continue after a failure."""
    if (to is None) != undo:
        message, hint = "choose a target or undo a move", "--to kafka, or --undo"
        raise Usage(Problem(code="exclusive_options", message=message, hint=hint))
    client, path = connect(server), path_of("Stream", name, "move")
    if undo:
        client.call("DELETE", path)
        if not json:
            say("Move undone: the stream stays in its original storage.")
        return
    state = client.call("POST", path, json={"to": to})
    if wait:
        state = _await(client, path, name, quiet=json)
    if json:
        show_json(state)
    elif state["phase"] == "completed":
        say(("completed ", "bold green"), f"{name} is in Kafka: {size(state['bytes'])} copied")
    elif not wait:
        note(f"{name} is being moved")
    else:
        say((f"{state['phase']} ", "bold red"), f"{name} was not moved")
        show_problems([Problem.model_validate(state["error"])] if state["error"] else [])
        note("run the command again to continue, or with --undo to remove the copy")
    if wait and state["phase"] != "completed":
        raise typer.Exit(FAILED)


def _await(client: Client, path: str, name: str, *, quiet: bool) -> dict[str, Any]:
    """Wait for the end of a move and return its final state."""
    with bar(name, quiet=quiet) as progress:
        while True:
            state = dict(client.call("GET", path))
            progress(state["bytes"], state["total_bytes"])
            if state["phase"] != "copying":
                return state
            time.sleep(POLL_S)
