"""Shell completion: kinds, and names of documents on the server."""

from __future__ import annotations

import contextlib
import io

import typer

from penstock.cli.client import Client, server_url
from penstock.cli.kinds import PLURALS, RUNNABLE, kind_of

PATIENCE_S = 0.5
"""Seconds that completion waits for the server."""


def kinds(incomplete: str) -> list[str]:
    """Kinds that start with the incomplete word."""
    return [plural for plural in PLURALS.values() if plural.startswith(incomplete.lower())]


def targets(context: typer.Context, incomplete: str) -> list[str]:
    """Matching names of pipelines, and of other runnable documents as `task/NAME`."""
    word, slash, begun = incomplete.partition("/")
    if slash:
        with contextlib.suppress(Exception):
            return [f"{word}/{name}" for name in _names(context, kind_of(word), begun)]
        return []
    found = _names(context, "Pipeline", incomplete)
    for kind in RUNNABLE if incomplete else ():
        prefix = f"{kind.lower()}/"
        if prefix.startswith(incomplete.lower()):
            found += [prefix + name for name in _names(context, kind, "")]
    return found


def streams(context: typer.Context, incomplete: str) -> list[str]:
    """Names of streams that start with the incomplete word."""
    return _names(context, "Stream", incomplete)


def names(context: typer.Context, incomplete: str) -> list[str]:
    """Matching names of documents of the kind on the command line."""
    with contextlib.suppress(Exception):
        return _names(context, kind_of(context.params.get("kind") or "pipelines"), incomplete)
    return []


def _names(context: typer.Context, kind: str, incomplete: str) -> list[str]:
    # Errors must not be printed into the line that the user is typing.
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        client = Client(server_url(context.params.get("server")), answer_s=PATIENCE_S)
        page = client.call("GET", f"/{PLURALS[kind]}", params={"limit": 100})
        found = [str(item["name"]) for item in page["items"]]
        return [name for name in found if name.lower().startswith(incomplete.lower())]
    return []
