"""Documents read from files, each with its file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.cli.kinds import PLURALS
from penstock.cli.output import Usage
from penstock.errors import Invalid, Problem
from penstock.specs.text import SUFFIXES, Unreadable, read_all

STDIN = "-"


@dataclass(frozen=True)
class Found:
    """A document as it was read, and its file."""

    file: str
    raw: Any

    @property
    def kind(self) -> str | None:
        """The kind of the document, if it has one."""
        kind = self.raw.get("kind") if isinstance(self.raw, Mapping) else None
        return kind if isinstance(kind, str) else None

    @property
    def name(self) -> str | None:
        """The name of the document, if it has one."""
        metadata = self.raw.get("metadata") if isinstance(self.raw, Mapping) else None
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        return name if isinstance(name, str) else None

    @property
    def addressable(self) -> bool:
        """Whether the document has a known kind and a name."""
        return self.kind in PLURALS and bool(self.name)

    @property
    def title(self) -> str:
        """Kind and name of the document, for messages."""
        return f"{self.kind or 'document'} '{self.name}'" if self.name else self.kind or "document"


def read_files(paths: Sequence[str]) -> list[Found]:
    """Every document in files and directories, `-` being standard input.

    Raises `Usage` if a file can't be opened, and `Unreadable` with the problems of all files that are neither
    YAML nor JSON.
    """
    found: list[Found] = []
    unreadable: list[Problem] = []
    for file in _files(paths):
        try:
            found += [Found(file, raw) for raw in read_all(read_bytes(file))]
        except (Unreadable, Invalid) as error:
            unreadable += [_inside(file, problem) for problem in error.problems]
    if unreadable:
        raise Unreadable(*unreadable)
    if not found:
        raise Unreadable(Problem(code="no_documents", message=f"no documents in {', '.join(paths)}"))
    return found


def in_order(documents: Sequence[Found]) -> list[Found]:
    """The documents, sorted so that each comes after the documents it may refer to."""
    rank = {kind: i for i, kind in enumerate(PLURALS)}
    return sorted(documents, key=lambda document: rank.get(document.kind or "", len(rank)))


def _files(paths: Sequence[str]) -> list[str]:
    files: list[str] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            inside = sorted(p for p in Path(path).rglob("*") if p.suffix in SUFFIXES and p.is_file())
            files += map(str, inside)
        else:
            files.append(path)
    return files


def read_bytes(file: str) -> bytes:
    """The content of a file, `-` being standard input; `Usage` if it can't be read."""
    if file == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise Usage(Problem(code="unreadable_file", message=message, hint="check the path")) from None


def _inside(file: str, problem: Problem) -> Problem:
    return problem.model_copy(update={"message": f"{file}: {problem.message}"})
