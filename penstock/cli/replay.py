"""`penstock replay|replays`: replays events through a pipeline, which keeps running."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.bars import count_bar
from penstock.cli.client import Client, connect, path_of
from penstock.cli.kinds import target_of
from penstock.cli.options import DryRun, Json, Server
from penstock.cli.output import FAILED, Usage, note, say, show_json, show_problems, show_table
from penstock.cli.text import count, plural, size, when
from penstock.errors import NotFound, Problem

POLL_S = 0.5
OVER = ("completed", "failed", "stopped", "paused")

Name = Annotated[
    str,
    typer.Argument(
        help="Name of a pipeline, or `task/NAME`.", autocompletion=complete.targets, show_default=False
    ),
]


def replay(
    name: Name,
    from_: Annotated[str, typer.Option("--from", help="First event: earliest, offset:N or time:ISO 8601.")],
    to: Annotated[
        str | None,
        typer.Option("--to", help="End of the range, exclusive. Default: the current end of the stream."),
    ] = None,
    sink: Annotated[
        list[str] | None, typer.Option("--sink", help="Id of a sink to deliver to; may be repeated.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Deliver to all sinks.")] = False,
    shadow_file: Annotated[
        str | None, typer.Option("--shadow-file", help="Write only to this directory, as JSON.")
    ] = None,
    shadow_stream: Annotated[
        str | None, typer.Option("--shadow-stream", help="Write only to this stream.")
    ] = None,
    called: Annotated[str | None, typer.Option("--name", help="Name of the replay.")] = None,
    dry_run: DryRun = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end and show progress.")] = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Replay a range of events through a pipeline. The pipeline itself keeps running."""
    kind, target = target_of(name)
    order: dict[str, Any] = {"from": from_, "sinks": _sinks(sink, all_, shadow_file, shadow_stream)}
    given = {"to": to, "name": called, "dry_run": dry_run or None}
    order |= {field: value for field, value in given.items() if value is not None}
    client = connect(server)
    told = client.call("POST", path_of(kind, target, "replay"), json=order)
    if not json:
        show_answer(told)
    if told["replay"] is None or not wait:
        if json:
            show_json(told)
        return
    ended = _await(client, kind, target, told["replay"], quiet=json)
    if json:
        show_json({**told, "replay": ended})
    else:
        style = "bold green" if ended["status"] == "completed" else "bold red"
        say((ended["status"], style), f" {ended['name']}: {_figures(ended)}")
        show_problems([Problem.model_validate(ended["error"])] if ended["error"] else [])
    if ended["status"] != "completed":
        raise typer.Exit(FAILED)


def replays(name: Name, server: Server = None, json: Json = False) -> None:
    """List the replays of a pipeline, newest first."""
    kind, target = target_of(name)
    found = connect(server).about(kind, target, "replays")
    if json:
        show_json(found)
        return
    rows = [
        [r["name"], r["status"], f"{r['percent']:g} %", f"{r['first']} to {r['next']}", when(r["created_at"])]
        for r in found
    ]
    show_table(["NAME", "STATUS", "DONE", "OFFSETS", "STARTED"], rows)


def _sinks(
    ids: list[str] | None, all_: bool, shadow_file: str | None, shadow_stream: str | None
) -> str | list[str] | dict[str, Any]:
    """The destination of the events, as the API expects it; Usage unless exactly one is given."""
    ways: list[str | list[str] | dict[str, Any]] = []
    if ids:
        ways.append(ids)
    if all_:
        ways.append("all")
    if shadow_file is not None:
        ways.append({"shadow": {"type": "file", "path": shadow_file, "format": "json"}})
    if shadow_stream is not None:
        ways.append({"shadow": {"type": "stream", "stream": shadow_stream}})
    if len(ways) != 1:
        message = "choose a destination" if not ways else "choose only one destination"
        hint = "--sink ID, --all, --shadow-file DIRECTORY or --shadow-stream ID"
        raise Usage(Problem(code="exclusive_options", message=message, hint=hint))
    return ways[0]


def _await(client: Client, kind: str, target: str, replay: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Wait for the end of a replay and return its final state."""
    with count_bar(replay["name"], quiet=quiet) as progress:
        while True:
            found = client.about(kind, target, "replays")
            now = next((each for each in found if each["id"] == replay["id"]), None)
            if now is None:
                message = f"'{replay['name']}' was deleted during the replay"
                raise NotFound(Problem(code="not_found", message=message))
            progress(now["delivered"], now["total"])
            if now["status"] in OVER:
                return dict(now)
            time.sleep(POLL_S)


def show_answer(told: dict[str, Any]) -> None:
    """Show the range and the sinks of a replay or dry run."""
    found = told["range"]
    offsets = f"offsets {found['first']} to {found['next'] - 1} of stream {found['stream']}"
    say(f"{plural(found['events'], 'event')}, about {size(found['bytes'])}: {offsets}")
    if found["first_time"]:
        say(f"appended {found['first_time']} to {found['last_time']}")
    for sink in told["sinks"]:
        say((f"  {sink['id']} ", "bold"), f"({sink['type']}): {_consequence(sink)}")
    show_problems(map(Problem.model_validate, told["warnings"]), level="warning")
    if told["replay"] is None:
        note("nothing was started (dry run)")
    else:
        say((f"{told['replay']['name']} ", "bold"), "started")


def _consequence(sink: dict[str, Any]) -> str:
    once = (
        "receives each event once" if sink["guarantee"] == "exactly-once" else "may receive some events twice"
    )
    return f"{once}, in addition to the deliveries of the pipeline" if sink["again"] else once


def _figures(replay: dict[str, Any]) -> str:
    return f"{count(replay['delivered'])} of {count(replay['total'])} events"
