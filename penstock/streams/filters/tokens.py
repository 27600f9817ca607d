"""The tokens of a condition, each with its position in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.errors import Invalid, Problem

FIELD = "where"
"""The path in problems: the parameter with the condition."""

WORDS = frozenset({"and", "or", "not", "in", "is", "null", "like", "ilike", "between", "true", "false"})

_PATTERN = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<name>[^\W\d]\w*)
    | (?P<sign><=|>=|<>|!=|==|[=<>().,\[\]])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A token of a condition. A `word` is a keyword, a `name` the name of a field."""

    kind: str
    value: Any
    at: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a condition, followed by one of the kind `end`."""
    at = 0
    while at < len(text):
        found = _PATTERN.match(text, at)
        if found is None:
            hint = "put text in single quotes" if text[at] in "\"'" else None
            raise wrong(text, at, f"'{text[at]}' is not expected here", hint)
        kind, word = str(found.lastgroup), found[0]
        if kind == "name" and word.lower() in WORDS:
            yield Token("word", word.lower(), at)
        elif kind != "space":
            yield Token("name" if kind == "quoted" else kind, _value(kind, word), at)
        at = found.end()
    yield Token("end", "", len(text))


def _value(kind: str, word: str) -> Any:
    if kind == "number":
        return int(word) if re.fullmatch(r"[+-]?\d+", word) else Decimal(word)
    if kind in ("text", "quoted"):
        return word[1:-1].replace(word[0] * 2, word[0])
    return word


def wrong(text: str, at: int, message: str, hint: str | None = None) -> Invalid:
    """A problem at a position of a condition."""
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    place = f"{message} (line {line}, column {column})"
    return Invalid(Problem(code="invalid_filter", message=place, path=FIELD, hint=hint))
