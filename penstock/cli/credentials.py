"""Tokens that authenticate commands to servers: given, or stored by `penstock login`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

VARIABLE = "PENSTOCK_TOKEN"

Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar=VARIABLE,
        help="Token of `penstock token create NAME --role operator`; by default that of `penstock login`.",
        show_default=False,
    ),
]

_given: list[str] = []


def remember(token: str | None) -> None:
    """Use the token of the option `--token`, or of its variable, for the current command."""
    _given[:] = [token] if token else []


def token_for(url: str) -> str | None:
    """The token for a server: from the command line or the variable, otherwise the stored token."""
    return _given[0] if _given else os.environ.get(VARIABLE) or _stored().get(url)


def store(url: str, token: str | None) -> Path:
    """Store a token for a server, readable by this user only; None removes it."""
    file = _file()
    known = {**_stored(), url: token}
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = file.with_suffix(f".{os.getpid()}")
    # Created with its final mode: a file restricted later could be read until then.
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump({each: kept for each, kept in known.items() if kept is not None}, out, indent=1)
    made.replace(file)
    return file


def _stored() -> dict[str, str]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(url): str(token) for url, token in found.items()} if isinstance(found, dict) else {}


def _file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "penstock" / "tokens.json"
