"""`penstock token …`, `login`, `logout` and `audit`: access to a server, over its API."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer

from penstock.cli.client import connect, server_url
from penstock.cli.credentials import store
from penstock.cli.options import Json, Server
from penstock.cli.output import say, show_json, show_table
from penstock.cli.text import when
from penstock.errors import NotFound, Unauthorised

TokenRole = Literal["viewer", "operator", "editor", "admin", "ingest", "worker"]
LOGIN_DAYS = 30
"""Days for which the token of `penstock login` is valid."""


def create(
    name: Annotated[str, typer.Argument(help="What it is for.", show_default=False)],
    role: Annotated[TokenRole, typer.Option("--role", help="What it may do.", show_default=False)],
    source: Annotated[
        str | None, typer.Option(help="For ingest: the source it can send to.", show_default=False)
    ] = None,
    days: Annotated[float | None, typer.Option(help="Days until it ends.", show_default=False)] = None,
    server: Server = None,
    json: Json = False,
) -> None:
    """Make a token for a program. It is printed once; the server keeps a hash of it."""
    given = {"name": name, "role": role, "source": source, "expires_in_days": days}
    body = {key: value for key, value in given.items() if value is not None}
    made = connect(server).call("POST", "/tokens", json=body)
    if json:
        show_json(made)
    else:
        print(made["secret"])


def ls(server: Server = None, json: Json = False) -> None:
    """List your tokens; as an admin, those of everybody."""
    found = connect(server).call("GET", "/tokens")
    if json:
        show_json(found)
        return
    rows = [
        [
            each["id"],
            each["name"],
            each["role"] + (f" {each['source']}" if each["source"] else ""),
            each["user"],
            when(each["created_at"]),
            (each["expires_at"] or "never")[:10],
            when(each["last_used_at"]) if each["last_used_at"] else "never",
        ]
        for each in found["tokens"]
    ]
    show_table(["TOKEN", "NAME", "ROLE", "USER", "MADE", "ENDS", "USED"], rows)


def revoke(
    id_: Annotated[str, typer.Argument(help="The part before the dot.", show_default=False)],
    server: Server = None,
) -> None:
    """Revoke a token: it is refused within seconds."""
    connect(server).call("DELETE", f"/tokens/{quote(id_.partition('.')[0], safe='')}")


def login(
    user: Annotated[str | None, typer.Option("--user", help="Your name.", show_default=False)] = None,
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Read a token from standard input instead of a password.")
    ] = False,
    server: Server = None,
) -> None:
    """Log in to a server: a token for 30 days is stored in your configuration directory."""
    from penstock.cli.users import read_password

    url = server_url(server)
    client = connect(server)
    if with_token:
        token = read_password()
        client = client.with_token(token)
    else:
        name = user or typer.prompt("User")
        session = client.call("POST", "/session", json={"name": name, "password": read_password()})
        body = {"name": "command line", "role": session["user"]["role"], "expires_in_days": LOGIN_DAYS}
        headers = {"X-CSRF-Token": session["csrf"]}
        token = client.call("POST", "/tokens", json=body, headers=headers)["secret"]
        client.call("DELETE", "/session", headers=headers)
        client = client.with_token(token)
    who: dict[str, Any] = client.call("GET", "/session")["user"] or {}
    if not who:
        raise Unauthorised(client.unknown())
    file = store(url, token)
    say(f"logged in to {url} as {who['name']} ({who['role']}); the token is in {file}")


def logout(server: Server = None) -> None:
    """Revoke and remove the token that `penstock login` has stored for a server."""
    from penstock.cli.credentials import token_for

    url = server_url(server)
    if token := token_for(url):
        try:
            connect(server).call("DELETE", f"/tokens/{quote(token.partition('.')[0], safe='')}")
        except (NotFound, Unauthorised):
            say("the server does not know the token any more")
    store(url, None)


def audit(
    user: Annotated[str | None, typer.Option(help="Only what this user did.", show_default=False)] = None,
    action: Annotated[str | None, typer.Option(help="Such as pipeline.update.", show_default=False)] = None,
    target: Annotated[str | None, typer.Option(help="Such as pipeline/orders.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most entries.")] = 50,
    server: Server = None,
    json: Json = False,
) -> None:
    """Show who has changed what, newest first. `--json` has it before and after."""
    given = {"user": user, "action": action, "target": target, "limit": limit}
    params = {name: value for name, value in given.items() if value is not None}
    found = connect(server).call("GET", "/audit", params=params)
    if json:
        show_json(found)
        return
    rows = [
        [
            when(each["at"]),
            each["user"] or "",
            each["via"] or "",
            each["address"] or "",
            each["action"],
            each["target"],
            str(each["status"]),
        ]
        for each in found["entries"]
    ]
    show_table(["WHEN", "USER", "VIA", "FROM", "ACTION", "TARGET", "STATUS"], rows)
