"""`penstock worker ls|drain|token|tokens|revoke`: the workers of a server, and their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from penstock.cli.client import connect
from penstock.cli.options import Home, Json, Server, load_settings, settled
from penstock.cli.output import say, show_json, show_table
from penstock.cli.text import plural, when

if TYPE_CHECKING:
    from penstock.control.wire.tokens import Tokens


def ls(server: Server = None, json: Json = False) -> None:
    """List the workers of a server, with their labels and flows."""
    found: list[dict[str, Any]] = connect(server).call("GET", "/workers")
    if json:
        show_json({"items": found})
        return
    show_table(["WORKER", "HOST", "PID", "STATE", "FLOWS", "LABELS", "SINCE"], [_row(each) for each in found])


def drain(
    worker: Annotated[str, typer.Argument(help="Id of the worker, or a prefix of it.", show_default=False)],
    server: Server = None,
    json: Json = False,
) -> None:
    """Move all flows off a worker after the current batch. The worker takes no new flows."""
    drained = connect(server).call("POST", f"/workers/{quote(worker, safe='')}/drain")
    if json:
        show_json(drained)
    else:
        say((f"{drained['id'][:8]} ", "bold"), f"{drained['state']}, {plural(drained['flows'], 'flow')} left")


def token(
    note: Annotated[str, typer.Option("--note", help="Purpose of the token.")] = "",
    home: Home = None,
) -> None:
    """Create a token for workers on other machines. Run this on the server's machine."""
    with _tokens(home) as tokens:
        print(tokens.make(note))


def tokens(home: Home = None, json: Json = False) -> None:
    """List worker tokens. Run this on the server's machine."""
    with _tokens(home) as kept:
        found = kept.all()
    if json:
        show_json({"items": [{**vars(each), "created_at": each.created_at.isoformat()} for each in found]})
        return
    show_table(["TOKEN", "NOTE", "MADE"], [[each.id, each.note, when(each.created_at)] for each in found])


def revoke(
    token: Annotated[str, typer.Argument(help="Part of the token before the dot.", show_default=False)],
    home: Home = None,
) -> None:
    """Revoke a token: workers that use it stop their flows and exit. Run this on the server's machine."""
    with _tokens(home) as kept:
        kept.revoke(token.partition(".")[0])


@contextmanager
def _tokens(home: Path | None) -> Iterator[Tokens]:
    from penstock.cli.worker import open_registry
    from penstock.control.wire.tokens import Tokens

    registry = open_registry(settled(load_settings(home=home)))
    try:
        yield Tokens(registry)
    finally:
        registry.close()


def _row(worker: dict[str, Any]) -> list[str]:
    capacity = "" if worker["capacity"] is None else f"/{worker['capacity']}"
    return [
        worker["id"][:8],
        worker["host"],
        str(worker["pid"]),
        worker["state"] if worker["alive"] else "gone",
        f"{worker['flows']}{capacity}",
        ", ".join(f"{key}={value}" for key, value in sorted(worker["labels"].items())),
        when(worker["started_at"]),
    ]
