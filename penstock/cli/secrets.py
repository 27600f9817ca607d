"""`penstock secret …`: values that documents use, and that are never shown."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from penstock.cli.client import connect
from penstock.cli.options import Json, Server
from penstock.cli.output import Usage, say, show_json, show_table
from penstock.cli.text import when
from penstock.errors import NotFound, Problem

Name = Annotated[str, typer.Argument(help="Name of the secret.", show_default=False)]

ORIGINS = {"sealed": "registry", "environment": "environment", "file": "file", "vault": "Vault"}


def set_(name: Name, server: Server = None) -> None:
    """Create a secret, or give it another value. It is read from the terminal or from standard input."""
    client, path = connect(server), f"/secrets/{quote(name, safe='')}"
    value = _value()
    try:
        found = client.call("GET", path)
    except NotFound:
        client.call("POST", "/secrets", json={"metadata": {"name": name}, "spec": {"value": value}})
        say(f"use it as ${{secret:{name}}}")
        return
    metadata = {key: value for key, value in found["metadata"].items() if value}
    saved = client.call("PUT", path, json={"metadata": metadata, "spec": {"value": value}})
    changed = saved["revision"] != found["revision"]
    say("changed: flows that use it are restarted" if changed else "unchanged: it had this value")


def ls(server: Server = None, json: Json = False) -> None:
    """List secrets: where their values come from, and what uses them."""
    client = connect(server)
    found = client.call("GET", "/secrets?limit=1000")["items"]
    if json:
        show_json({"items": found})
        return
    rows = [
        [each["name"], _origin(each["spec"]), _users(client, each), when(each["updated_at"])]
        for each in found
    ]
    show_table(["SECRET", "VALUE IN", "USED BY", "CHANGED"], rows)


def _origin(spec: dict[str, Any]) -> str:
    return next((text for field, text in ORIGINS.items() if spec.get(field)), "")


def _users(client: Any, secret: dict[str, Any]) -> str:
    found = client.call("GET", f"/secrets/{quote(secret['id'], safe='')}")["referrers"] or []
    return ", ".join(f"{each['kind'].lower()}/{each['id']}" for each in found)


def _value() -> str:
    """Read a value from the terminal without echo, or all of standard input without its final line break."""
    value = (
        getpass.getpass("Value: ")
        if sys.stdin.isatty()
        else sys.stdin.read().removesuffix("\n").removesuffix("\r")
    )
    if not value:
        raise Usage(Problem(code="empty_value", message="a secret needs a value"))
    return value
