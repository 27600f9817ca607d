"""`penstock pause|resume|stop|start|restart`: actions on pipelines and other flows."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.client import connect
from penstock.cli.kinds import target_of
from penstock.cli.options import Json, Server
from penstock.cli.output import FAILED, INVALID, envelope, exit_code, say, show_json, show_problems
from penstock.cli.views import phase_of
from penstock.errors import PenstockError

Names = Annotated[
    list[str],
    typer.Argument(
        help="Names of pipelines, or `source/NAME`, `task/NAME` or `sink/NAME`.",
        autocompletion=complete.targets,
        show_default=False,
    ),
]


def pause(names: Names, server: Server = None, json: Json = False) -> None:
    """Pause flows after the current batch. They keep their position."""
    _act("pause", names, server, json)


def resume(names: Names, server: Server = None, json: Json = False) -> None:
    """Resume paused flows."""
    _act("resume", names, server, json)


def stop(names: Names, server: Server = None, json: Json = False) -> None:
    """Stop flows after the current batch. `start` continues from there."""
    _act("stop", names, server, json)


def start(names: Names, server: Server = None, json: Json = False) -> None:
    """Start stopped, failed or completed flows."""
    _act("start", names, server, json)


def restart(names: Names, server: Server = None, json: Json = False) -> None:
    """Restart flows after the current batch."""
    _act("restart", names, server, json)


def _act(action: str, names: list[str], server: str | None, as_json: bool) -> None:
    targets = [target_of(name) for name in names]
    client = connect(server)
    results: list[dict[str, Any]] = []
    codes = set()
    for kind, name in targets:
        try:
            told = client.act(kind, name, action)
        except PenstockError as error:
            codes.add(exit_code(error))
            results.append({"name": name, "error": envelope(error.problems)})
            if not as_json:
                show_problems(error.problems)
        else:
            results.append(told)
            if not as_json:
                say((f"{told['name']} ", "bold"), f"{told['status']} ({phase_of(told)})")
    if as_json:
        show_json({"items": results})
    if codes:
        raise typer.Exit(INVALID if codes == {INVALID} else FAILED)
