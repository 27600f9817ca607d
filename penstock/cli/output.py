"""Output shared by all commands: results, problems, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from penstock.errors import Invalid, PenstockError, Problem

OK, FAILED, USAGE, INVALID = 0, 1, 2, 3

PIPED_WIDTH = 1000
"""The width of a table that is not shown on a terminal, so that nothing is truncated."""


class Usage(PenstockError):
    """The command was called with invalid arguments or options."""


def exit_code(error: PenstockError) -> int:
    """The exit code for an error."""
    from penstock.specs.text import Unreadable

    if isinstance(error, Usage):
        return USAGE
    return INVALID if isinstance(error, Invalid | Unreadable) else FAILED


def envelope(problems: Sequence[Problem]) -> dict[str, Any]:
    """Problems in the JSON envelope that the API uses too."""
    return {**problems[0].model_dump(), "errors": [problem.model_dump() for problem in problems]}


def show_error(error: PenstockError, *, as_json: bool) -> None:
    """Show an error: as text on standard error, or as JSON on standard output."""
    if as_json:
        show_json(envelope(error.problems))
    else:
        show_problems(error.problems)


def show_problems(problems: Iterable[Problem], level: str = "error", indent: str = "") -> None:
    """Print problems to standard error: `error[code] path: message`, then the hint."""
    for problem in problems:
        where = f" {problem.path}:" if problem.path else ""
        style = "bold red" if level == "error" else "bold yellow"
        note((f"{indent}{level}[{problem.code}]", style), f"{where} {problem.message}")
        if problem.hint:
            note((f"{indent}  hint:", "cyan"), f" {problem.hint}")


def note(*parts: str | tuple[str, str]) -> None:
    """Print a line for people to standard error, so that results can be piped. Parts are (text, style)."""
    _print(sys.stderr, *parts)


def say(*parts: str | tuple[str, str]) -> None:
    """Print a line of the result to standard output."""
    _print(sys.stdout, *parts)


def show_json(value: Any, *, line: bool = False) -> None:
    """Print a value as JSON to standard output; with `line`, on one line."""
    text = json.dumps(value, indent=None if line else 2, ensure_ascii=False, default=str)
    print(text, flush=True)


def show_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below headers: fitted to the terminal, or in full when piped."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(header)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    _console(sys.stdout).print(table)


def _print(file: TextIO, *parts: str | tuple[str, str]) -> None:
    from rich.text import Text

    _console(file).print(Text.assemble(*parts), soft_wrap=True)


def _console(file: TextIO) -> Any:
    from rich.console import Console

    return Console(file=file, highlight=False, width=None if file.isatty() else PIPED_WIDTH)
