"""`penstock`: the command line, and its error handling.

Imports nothing that is slow, not even for errors: `--help` and shell completion must respond at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from penstock.cli.commands import COMMANDS, GROUPS, Entry

DEBUG = "PENSTOCK_DEBUG"
HELP = (
    "Streaming data pipelines on Apache Spark. Exit codes: 0 done, 1 failed, 2 wrong usage, "
    "3 invalid document."
)


class Listed(TyperCommand):
    """A command as listed by `--help` and shell completion, before its module is imported."""

    def __init__(self, word: str, entry: Entry, panel: str | None = None) -> None:
        super().__init__(word, help=entry.help, rich_help_panel=panel)
        self.entry = entry

    def loaded(self) -> Any:
        """The command itself, with its options."""
        alone = typer.Typer(add_completion=False)
        alone.command(self.name)(self.entry.load())
        return typer.main.get_command(alone)


class Group(TyperGroup):
    """A group of commands, each imported when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command named by the arguments, imported."""
        word, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, GroupWithDefault):
            command = command.chosen(rest)
        return word, command.loaded() if isinstance(command, Listed) else command, rest


class GroupWithDefault(Group):
    """A group whose name is also a command: `penstock worker` and `penstock worker ls`."""

    def __init__(self, default: Listed, **options: Any) -> None:
        super().__init__(**options)
        self._default = default

    def chosen(self, rest: list[str]) -> Any:
        """The group if the arguments name one of its commands, else the command of the word itself."""
        if rest and rest[0] in self.commands:
            return self
        own = self._default.loaded()
        own.epilog = "Commands: " + ", ".join(f"{self.name} {word}" for word in self.commands)
        return own


class Commands(Group):
    """Every command. Expected errors become messages and exit codes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for words, entry in COMMANDS.items():
            first, _, second = words.partition(" ")
            if not second and first in GROUPS:
                self.add_command(self._with_default(first, entry))
            elif not second:
                self.add_command(Listed(first, entry, entry.panel))
            else:
                self._group(first).add_command(Listed(second, entry))

    def _group(self, name: str) -> TyperGroup:
        if name not in self.commands:
            summary, panel = GROUPS[name]
            self.add_command(Group(name=name, help=summary, rich_help_panel=panel, no_args_is_help=True))
        return cast(TyperGroup, self.commands[name])

    def _with_default(self, name: str, entry: Entry) -> TyperGroup:
        return GroupWithDefault(Listed(name, entry), name=name, help=entry.help, rich_help_panel=entry.panel)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was called."""
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except Exception as error:
            from penstock.cli.options import JSON
            from penstock.cli.output import exit_code, show_error
            from penstock.disk import refused_by_disk
            from penstock.errors import PenstockError

            refusal = refused_by_disk(error) if isinstance(error, OSError) else error
            if not isinstance(refusal, PenstockError):
                raise
            show_error(refusal, as_json=bool(ctx.meta.get(JSON)))
            raise typer.Exit(exit_code(refusal)) from None


app = typer.Typer(
    cls=Commands,
    name="penstock",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(help=HELP)
def _penstock() -> None:
    """Make the app a group, although no command is registered with it."""


def commands() -> Iterator[tuple[str, str, Callable[..., None]]]:
    """Every command: its panel, its name and its function."""
    for name, entry in COMMANDS.items():
        yield entry.panel, name, entry.load()


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="penstock")
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        from penstock.cli.output import FAILED, show_problems
        from penstock.errors import Problem

        text = f"{type(error).__name__}: {error}"
        show_problems([Problem(code="internal", message=text, hint=f"{DEBUG}=1 shows the traceback")])
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
