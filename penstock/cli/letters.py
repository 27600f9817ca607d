"""`penstock dead-letters …`: events that pipelines could not process."""

from __future__ import annotations

import json as jsons
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from penstock.cli import complete
from penstock.cli.bars import count_bar
from penstock.cli.client import Client, connect, path_of
from penstock.cli.kinds import target_of
from penstock.cli.options import DryRun, Json, Server
from penstock.cli.output import FAILED, Usage, note, say, show_json, show_problems, show_table
from penstock.cli.text import count, plural, when
from penstock.errors import Problem

STEP = 1000
"""Letters replayed per request; the progress bar advances after each request."""

SHOWN_REFUSALS = 10

Name = Annotated[
    str,
    typer.Argument(
        help="Name of a pipeline, or `task/NAME`, `sink/NAME` or `source/NAME`.",
        autocompletion=complete.targets,
        show_default=False,
    ),
]
Offset = Annotated[int, typer.Argument(min=0, help="Offset of the letter.", show_default=False)]
Step = Annotated[str | None, typer.Option(help="Only letters of this step or sink.")]
Code = Annotated[str | None, typer.Option(help="Only letters with this code.")]
Contains = Annotated[str | None, typer.Option(help="Only letters with this text in the event or reason.")]


def ls(
    name: Name,
    step: Step = None,
    code: Code = None,
    contains: Contains = None,
    state: Annotated[
        Literal["new", "replaying", "replayed", "discarded", "all"],
        typer.Option(help="Only letters in this state."),
    ] = "all",
    position: Annotated[
        str, typer.Option(help="Start position: earliest, latest, offset:N or time:ISO 8601.")
    ] = "earliest",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of letters to list.")] = 100,
    server: Server = None,
    json: Json = False,
) -> None:
    """List dead letters with counts by step and code."""
    kind, of = target_of(name)
    params = {"step": step, "code": code, "contains": contains, "state": state}
    found = connect(server).about(kind, of, "dead-letters", position=position, limit=limit, **params)
    if json:
        show_json(found)
        return
    show_table(
        ["OFFSET", "TIME", "STEP", "CODE", "TRY", "STATE", "EVENT"],
        (
            [
                str(letter["offset"]),
                when(letter["time"]),
                letter["step"],
                letter["code"],
                str(letter["attempt"]),
                letter["state"] + (", edited" if letter["edited"] else ""),
                _text(letter["event"]),
            ]
            for letter in found["letters"]
        ),
    )
    if found["next"] is not None:
        note(f"more letters: --position offset:{found['next']}")
    kinds = (f"{each['step']} {each['code']} {count(each['letters'])}" for each in found["counts"])
    counts = ", ".join(kinds)
    note(f"{plural(found['total'], 'letter')} in total{f': {counts}' if counts else ''}")


def show(name: Name, offset: Offset, server: Server = None, json: Json = False) -> None:
    """Show a dead letter in detail."""
    letter = connect(server).call("GET", _path(name, str(offset)))
    if json:
        show_json(letter)
        return
    fields = {
        "state": letter["state"],
        "step": letter["step"],
        "code": letter["code"],
        "reason": letter["reason"],
        "kept": when(letter["time"]),
        "attempt": letter["attempt"],
        "revision": letter["revision"],
        "replay of": letter["replay_of"],
        "source offset": letter["source_offset"],
        "key": letter["key"],
        "headers": _text(letter["headers"]) if letter["headers"] else None,
    }
    for title, value in fields.items():
        if value is not None:
            say((f"{title:<14} ", "bold"), value if isinstance(value, str) else _text(value))
    for replay in letter["replays"]:
        say((f"{'replayed':<14} ", "bold"), f"{when(replay['at'])}: {replay['outcome'].replace('_', ' ')}")
    _show_event("event", letter["event"])
    if letter["edited"]:
        _show_event("original", letter["original"])


def edit(
    name: Name,
    offset: Offset,
    event: Annotated[
        str | None, typer.Option(help="Event as JSON, or `@FILE`. Default: opens $EDITOR.")
    ] = None,
    server: Server = None,
    json: Json = False,
) -> None:
    """Edit the event of a dead letter before a replay. The original is kept."""
    client, path = connect(server), _path(name, str(offset))
    if event is None:
        before = client.call("GET", path)["event"]
        text = _edited(
            before if isinstance(before, str) else jsons.dumps(before, indent=2, ensure_ascii=False)
        )
    else:
        text = Path(event[1:]).read_text(encoding="utf-8") if event.startswith("@") else event
    try:
        value = jsons.loads(text)
    except ValueError as error:
        raise Usage(Problem(code="not_json", message=f"the event is not JSON: {error}")) from None
    letter = client.call("PUT", path, json={"event": value})
    if json:
        show_json(letter)
    else:
        say((f"{name} {offset} ", "bold"), "edited" if letter["edited"] else "unchanged")


def discard(
    name: Name,
    offsets: Annotated[list[int], typer.Argument(min=0, help="Offsets of letters.", show_default=False)],
    undo: Annotated[bool, typer.Option("--undo", help="Restore discarded letters.")] = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Mark dead letters as not to be replayed. They stay in the dead-letter stream."""
    client, letters = connect(server), []
    for offset in offsets:
        place = _path(name, str(offset), *(["restore"] if undo else []))
        letters.append(client.call("POST" if undo else "DELETE", place))
        if not json:
            say((f"{name} {offset} ", "bold"), letters[-1]["state"])
    if json:
        show_json({"letters": letters})


def send(
    name: Name,
    offsets: Annotated[list[int], typer.Argument(min=0, help="Offsets of letters.", show_default=False)],
    server: Server = None,
    json: Json = False,
) -> None:
    """Send the original events of dead letters to the input again, for letters that can't be replayed."""
    client, letters = connect(server), []
    for offset in offsets:
        letters.append(client.call("POST", _path(name, str(offset), "send")))
        if not json:
            say((f"{name} {offset} ", "bold"), "sent to the input")
    if json:
        show_json({"letters": letters})


def replay(
    name: Name,
    offset: Annotated[
        list[int] | None, typer.Option(min=0, help="Offset of a letter; may be repeated.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All new letters.")] = False,
    step: Step = None,
    code: Code = None,
    contains: Contains = None,
    again: Annotated[
        bool, typer.Option("--again", help="Include letters that were replayed before.")
    ] = False,
    from_: Annotated[
        Literal["step", "start"],
        typer.Option(
            "--from", help="Start at the step that failed, or read the event from its source again."
        ),
    ] = "step",
    dry_run: DryRun = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Replay dead letters through the current revision. Events that fail again become new letters."""
    filters = {"step": step, "code": code, "contains": contains}
    if not (offset or every or any(filters.values())):
        raise Usage(
            Problem(code="nothing_chosen", message="pass --all, --offset, --step, --code or --contains")
        )
    body: dict[str, Any] = {"from": from_, "dry_run": dry_run, "limit": STEP}
    body["filter"] = {key: text for key, text in filters.items() if text} | (
        {"state": "replayed"} if again else {}
    )
    if offset:
        body["offsets"] = offset
    client = connect(server, answer_s=700)
    result = _replayed(client, _path(name, "replay"), body, _total(client, name), quiet=json)
    if json:
        show_json(result)
    else:
        _show_result(result)
    if result["error"] or result["refused"]:
        raise typer.Exit(FAILED)


def _replayed(client: Client, path: str, body: dict[str, Any], total: int, *, quiet: bool) -> dict[str, Any]:
    """Replay all selected letters, request by request, and return the total."""
    whole: dict[str, Any] = {"dry_run": body["dry_run"], "replayed": 0, "failed_again": 0, "refused": []}
    with count_bar("replaying", quiet=quiet) as progress:
        position: int | None = 0
        while position is not None:
            part = client.call("POST", path, json={**body, "position": position})
            for field in ("replayed", "failed_again", "refused"):
                whole[field] += part[field]
            whole["error"] = part["error"]
            position = None if part["error"] else part["next"]
            progress(whole["replayed"] + whole["failed_again"] + len(whole["refused"]), total)
    return whole


def _show_result(result: dict[str, Any]) -> None:
    verb = "can be replayed" if result["dry_run"] else "replayed"
    again = f", {plural(result['failed_again'], 'letter')} failed again" if result["failed_again"] else ""
    say((plural(result["replayed"], "letter"), "bold"), f" {verb}{again}")
    for each in result["refused"][:SHOWN_REFUSALS]:
        problem = Problem.model_validate({**each, "path": f"offset {each['offset']}"})
        show_problems([problem], level="refused")
    if (more := len(result["refused"]) - SHOWN_REFUSALS) > 0:
        note(f"and {plural(more, 'letter')} more refused")
    if result["error"]:
        show_problems([Problem.model_validate(result["error"])])


def _total(client: Client, name: str) -> int:
    kind, of = target_of(name)
    states = client.about(kind, of, "dead-letters", limit=1)["states"]
    return sum(states.get(state, 0) for state in ("new", "replaying"))


def _path(name: str, *parts: str) -> str:
    kind, of = target_of(name)
    return path_of(kind, of, "dead-letters", *parts)


def _edited(text: str) -> str:
    """The text after the user has edited it in the editor."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        hint = "pass the event with --event"
        raise Usage(Problem(code="no_editor", message="neither VISUAL nor EDITOR is set", hint=hint))
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        file = Path(directory) / "event.json"
        file.write_text(text + "\n", encoding="utf-8")
        if subprocess.run([*shlex.split(editor), str(file)], check=False).returncode:
            raise Usage(Problem(code="editor_failed", message=f"{editor} failed; nothing was changed"))
        return file.read_text(encoding="utf-8")


def _show_event(title: str, event: Any) -> None:
    say((title, "bold"))
    text = event if isinstance(event, str) else jsons.dumps(event, indent=2, ensure_ascii=False)
    for line in text.splitlines():
        say(f"  {line}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else jsons.dumps(value, ensure_ascii=False)
