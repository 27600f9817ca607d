"""Sample events on the command line: in a file, on standard input, or inline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.output import Usage
from penstock.errors import Problem

if TYPE_CHECKING:
    from penstock.engine.trials.samples import Given

TEXTS = {".csv": "text/csv", ".txt": "text/plain"}
LINES = (".ndjson", ".jsonl")
SUFFIXES = (".json", *LINES, *TEXTS)


def read_events(argument: str) -> Given:
    """Events given by an option: `@file`, `-` for standard input, or JSON."""
    if argument.startswith("@"):
        return read_file(Path(argument[1:]))
    return _json(sys.stdin.read() if argument == "-" else argument, "the events")


def read_file(path: Path) -> Given:
    """The events in a file; the suffix of its name determines the format."""
    from penstock.engine.trials.samples import Text

    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        message = f"{path}: can't detect the format of the events from the file name"
        hint = f"use a name that ends with {', '.join(SUFFIXES)}"
        raise Usage(Problem(code="unknown_suffix", message=message, hint=hint))
    try:
        body = path.read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise Usage(Problem(code="unreadable_file", message=message, hint="check the path")) from None
    if kind in TEXTS:
        return Text(body, TEXTS[kind])
    text = body.decode(errors="replace")
    if kind in LINES:
        lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
        return [_value(line, f"{path}, line {number}") for number, line in lines]
    return _json(text, str(path))


def _json(text: str, what: str) -> list[Any]:
    """An array of events, or a single one."""
    value = _value(text, what)
    return value if isinstance(value, list) else [value]


def _value(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"{what}: not valid JSON: {error}"
        hint = "pass events as JSON, or @FILE"
        raise Usage(Problem(code="not_json", message=message, hint=hint)) from None
