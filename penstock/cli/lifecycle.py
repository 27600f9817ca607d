"""`penstock pause|resume|stop|start`: what pipelines should do."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.client import connect
from penstock.cli.options import Json, Server
from penstock.cli.output import FAILED, INVALID, envelope, exit_code, say, show_json, show_problems
from penstock.errors import PenstockError

Names = Annotated[
    list[str],
    typer.Argument(help="Names of pipelines.", autocompletion=complete.pipelines, show_default=False),
]


def pause(names: Names, server: Server = None, json: Json = False) -> None:
    """Pause pipelines after the batch in hand; they keep their place."""
    _act("pause", names, server, json)


def resume(names: Names, server: Server = None, json: Json = False) -> None:
    """Let paused pipelines go on."""
    _act("resume", names, server, json)


def stop(names: Names, server: Server = None, json: Json = False) -> None:
    """Stop pipelines; `start` lets them go on where they were."""
    _act("stop", names, server, json)


def start(names: Names, server: Server = None, json: Json = False) -> None:
    """Start pipelines that are stopped, failed or completed."""
    _act("start", names, server, json)


def _act(action: str, names: list[str], server: str | None, as_json: bool) -> None:
    client = connect(server)
    results: list[dict[str, Any]] = []
    codes = set()
    for name in names:
        try:
            told = client.act(name, action)
        except PenstockError as error:
            codes.add(exit_code(error))
            results.append({"name": name, "error": envelope(error.problems)})
            if not as_json:
                show_problems(error.problems)
        else:
            results.append(told)
            if not as_json:
                say((f"{told['name']} ", "bold"), f"{told['status']} ({told['phase']})")
    if as_json:
        show_json({"items": results})
    if codes:
        raise typer.Exit(INVALID if codes == {INVALID} else FAILED)


COMMANDS = (pause, resume, stop, start)
