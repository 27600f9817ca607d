"""`penstock`: all commands, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from penstock.cli import (
    apply,
    bundle,
    documents,
    flow_logs,
    info,
    letters,
    lifecycle,
    query,
    replay,
    revisions,
    run,
    sinks,
    story,
    stream,
    test,
    up,
    validate,
    worker,
)
from penstock.cli.options import JSON
from penstock.cli.output import FAILED, exit_code, show_error, show_problems
from penstock.errors import PenstockError, Problem

DEBUG = "PENSTOCK_DEBUG"
HELP = (
    "Streaming data pipelines on Apache Spark. Exit codes: 0 done, 1 failed, 2 wrong usage, "
    "3 invalid document."
)


class Commands(TyperGroup):
    """A group that turns expected errors into messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PenstockError as error:
            show_error(error, as_json=bool(ctx.meta.get(JSON)))
            raise typer.Exit(exit_code(error)) from None


app = typer.Typer(
    cls=Commands,
    name="penstock",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PANELS = {
    "Run": (up, worker, run, validate, test),
    "Documents on a server": (
        apply,
        documents,
        lifecycle,
        flow_logs,
        story,
        sinks,
        replay,
        revisions,
        bundle,
    ),
    "Streams": (query,),
    "About": (info,),
}
GROUPS = {"stream": ("Streams", stream), "dead-letters": ("Documents on a server", letters)}
"""Commands of two words, such as `stream ls`."""


def commands() -> Iterator[tuple[str, str, Callable[..., None]]]:
    """Every command: its panel, its name and its function."""
    for panel, modules in PANELS.items():
        for module in modules:
            for command in module.COMMANDS:
                yield panel, command.__name__.rstrip("_").replace("_", "-"), command
    for group, (panel, module) in GROUPS.items():
        for command in module.COMMANDS:
            yield panel, f"{group} {command.__name__.rstrip('_')}", command


def _add_all() -> None:
    groups: dict[str, typer.Typer] = {}
    for group, (panel, module) in GROUPS.items():
        groups[group] = typer.Typer(no_args_is_help=True, help=module.HELP)
        app.add_typer(groups[group], name=group, rich_help_panel=panel)
    for panel, name, command in commands():
        group, _, word = name.rpartition(" ")
        if group:
            groups[group].command(word)(command)
        else:
            app.command(word, rich_help_panel=panel)(command)


_add_all()


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="penstock")
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        text = f"{type(error).__name__}: {error}"
        show_problems([Problem(code="internal", message=text, hint=f"{DEBUG}=1 shows the traceback")])
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
