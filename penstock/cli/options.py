"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Usage, show_problems
from penstock.errors import Invalid
from penstock.settings import Loaded, Settings, load

JSON = "penstock.json"
"""Key of the context that records whether `--json` was given, for printing errors."""


def _remember(context: typer.Context, value: bool) -> bool:
    context.meta[JSON] = value
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON, including errors.", callback=_remember)]

Home = Annotated[
    Path | None,
    typer.Option("--home", help="Data directory; see `penstock config`.", show_default=False),
]

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="PENSTOCK_SERVER",
        help="URL of the server. Default: this machine, at the port in the settings.",
        show_default=False,
    ),
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes without applying them.")]

AcceptReset = Annotated[
    bool,
    typer.Option("--accept-reset", help="Accept that a flow loses state or its position in the source."),
]


def load_settings(**overrides: object) -> Loaded:
    """The settings, overridden by options that are named with `__` in place of the dot."""
    try:
        return load({name.replace("__", "."): value for name, value in overrides.items()})
    except Invalid as error:
        raise Usage(*error.problems) from None


def settled(loaded: Loaded) -> Settings:
    """The settings, after showing the warnings about them."""
    os.environ["PENSTOCK_HOME"] = str(loaded.settings.home)  # for documents that use ${PENSTOCK_HOME}
    show_problems(loaded.warnings, level="warning")
    return loaded.settings
