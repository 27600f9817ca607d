"""`penstock stream ls|inspect|tail`: streams of a server."""

from __future__ import annotations

import json as jsons
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.client import Client, NoServer, connect, path_of
from penstock.cli.options import Json, Server
from penstock.cli.output import Usage, note, say, show_json, show_table
from penstock.cli.text import count, duration, plural, size, when
from penstock.errors import NotFound, Problem

RETRY_S = 1.0
"""Seconds after which a disconnected tail reconnects."""

Name = Annotated[
    str,
    typer.Argument(help="Name of the stream.", autocompletion=complete.streams, show_default=False),
]


def ls(server: Server = None, json: Json = False) -> None:
    """List streams with their size and readers."""
    client = connect(server)
    items = []
    for document in client.list("Stream")["items"]:
        items.append({**_stats(client, document["id"]), "name": document["name"]})
    if json:
        show_json({"items": items})
        return
    show_table(
        ["NAME", "EVENTS", "SIZE", "SEGMENTS", "OLDEST", "NEWEST", "READERS", "MOST BEHIND"],
        (
            [
                item["name"],
                count(item["events"]),
                size(item["bytes"]),
                count(item["segments"]),
                when(item["oldest"]),
                when(item["newest"]),
                count(len(item["readers"])),
                count(max((reader["lag_events"] for reader in item["readers"]), default=0)),
            ]
            for item in items
        ),
    )


def inspect(name: Name, server: Server = None, json: Json = False) -> None:
    """Show a stream in detail: size, buffer, dropped events and readers."""
    stats = _stats(connect(server), name)
    if json:
        show_json(stats)
        return
    buffer = stats["buffer"]
    held = f"{count(buffer['events'])} of {count(buffer['max_events'])} events"
    full = f", full: {buffer['full'].replace('_', ' ')}" if buffer["full"] else ""
    rows = [
        ("stream", stats["stream"]),
        ("events", f"{count(stats['events'])}, offsets {stats['first']} to {stats['next']} (not included)"),
        ("size", f"{size(stats['bytes'])} in {plural(stats['segments'], 'segment')}"),
        ("in memory", size(stats["memory_bytes"]) if stats["memory_bytes"] else "-"),
        ("oldest", when(stats["oldest"])),
        ("newest", when(stats["newest"])),
        ("buffer", f"{held}, {size(buffer['bytes'])} of {size(buffer['max_bytes'])}, {buffer['mode']}{full}"),
        ("guarantee", stats["guarantee"]),
        *([("note", stats["note"])] if stats["note"] else []),
        *((name.replace("_", " "), count(number)) for name, number in stats["counters"].items() if number),
    ]
    for title, text in rows:
        say((f"{title:<12} ", "bold"), text)
    if stats["readers"]:
        say("")
        show_table(
            ["READER", "CURSOR", "BEHIND", "WAITS FOR", "SKIPPED", "UPDATED"],
            (
                [
                    reader["reader"],
                    str(reader["cursor"]),
                    plural(reader["lag_events"], "event"),
                    "-" if reader["lag_ms"] is None else duration(reader["lag_ms"]),
                    count(reader["skipped"]),
                    when(reader["updated"]),
                ]
                for reader in stats["readers"]
            ),
        )


def tail(
    name: Name,
    position: Annotated[
        str | None, typer.Option(help="Start position: earliest, latest, offset:N or time:ISO 8601.")
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Print this many of the most recent events, then exit."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="With --last: continue with new events as they arrive.")
    ] = False,
    contains: Annotated[
        str | None, typer.Option("--filter", help="Only events whose JSON contains this text.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many events.")] = None,
    server: Server = None,
    json: Json = False,
) -> None:
    """Print the events of a stream as they arrive, until Ctrl-C. Reconnects when the server restarts.

    With --last, prints only the most recent events and exits, unless --follow is given too.
    """
    if position is not None and last is not None:
        message = "--last and --position can't be combined"
        raise Usage(Problem(code="exclusive_options", message=message))
    client, shown = connect(server), 0
    try:
        ends = last is not None and not follow
        for event in _events(client, name, position or "latest", last, contains, ends=ends):
            shown += 1  # before it is shown: Ctrl-C may follow as soon as the user sees it
            if json:
                show_json(event, line=True)
            else:
                _show_event(event)
            if shown == limit:
                return
    except KeyboardInterrupt:
        note(f"{plural(shown, 'event')} shown")


def _stats(client: Client, name: str) -> dict[str, Any]:
    return dict(client.about("Stream", name, "stats"))


def _events(
    client: Client, name: str, position: str, last: int | None, contains: str | None, *, ends: bool
) -> Iterator[dict[str, Any]]:
    """Events from a position on. After a disconnect, it reconnects and resumes at its position.

    `ends`: only existing events, which needs `last`.
    """
    params: dict[str, str] = {"position": position, **({"filter": contains} if contains is not None else {})}
    if last is not None:
        page = client.about("Stream", name, "events", last=last)
        yield from (event for event in page["events"] if contains is None or contains in _text(event))
        params["position"] = f"offset:{page['next']}"
    if ends:
        return
    headers: dict[str, str] = {}
    connected = False
    while True:
        try:
            with client.follow(path_of("Stream", name, "tail"), params=params, headers=headers) as answer:
                connected = True
                for message in messages(answer.iter_lines()):
                    if "id" in message:
                        headers["Last-Event-ID"] = message["id"]
                    if message.get("event") == "gap":
                        gap = jsons.loads(message["data"])
                        note(f"offsets {gap['first']} to {gap['next'] - 1} are missing: {gap['reason']}")
                    elif "data" in message:
                        yield from jsons.loads(message["data"])
        except NotFound:
            raise
        except NoServer as error:
            if not connected:
                raise
            note(f"{error}: retrying")
        time.sleep(RETRY_S)


def messages(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """The messages in lines of server-sent events."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            if name:  # otherwise it is a comment
                fields[name] = value
        elif fields:
            yield fields
            fields = {}


def _show_event(event: dict[str, Any]) -> None:
    payload = event["columns"] if "columns" in event else event["value"]
    text = payload if isinstance(payload, str) else _text(payload)
    key = f" {event['key']}" if event["key"] is not None else ""
    headers = f" {_text(event['headers'])}" if event["headers"] else ""
    say((f"{event['offset']} {event['time']}{key}{headers} ", "dim"), text)


def _text(value: Any) -> str:
    return jsons.dumps(value, ensure_ascii=False)
