"""Regular expressions and grok patterns: the named groups of a match are the columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import Invalid, Problem, did_you_mean
from penstock.processors.formats.grok_patterns import PATTERNS
from penstock.processors.formats.text import Split
from penstock.streams.decode.results import Mismatch, shown

REFERENCE = re.compile(r"%\{(\w+)(?::([^:}]+))?(?::(\w+))?\}")
TYPES = {"int": pa.int64(), "long": pa.int64(), "float": pa.float64(), "double": pa.float64()}
TYPES |= {"string": pa.string(), "boolean": pa.bool_()}
DEEPEST = 50
"""Levels of nested patterns beyond which a pattern is assumed to refer to itself."""


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern, and the columns for its groups."""

    expression: re.Pattern[str]
    columns: dict[str, tuple[str, ...]]
    """Name of a column → its groups, of which the first one that matches provides the value."""
    schema: pa.Schema

    def splitter(self, names: Sequence[str]) -> Split:
        """A splitter of text into the values of these columns."""
        groups = [self.columns[name] for name in names]

        def split(text: str) -> Sequence[str | None]:
            found = self.expression.search(text)
            if found is None:
                raise Mismatch("no_match", f"the pattern does not match {shown(text)}")
            return [next((found[g] for g in each if found[g] is not None), None) for each in groups]

        return split


def regex(text: str) -> Pattern:
    """A Python regular expression with named groups."""
    expression = _compiled(text)
    names = list(expression.groupindex)
    return Pattern(
        expression,
        {name: (name,) for name in names},
        pa.schema([(name, pa.string()) for name in _some(names, "(?P<name>…)")]),
    )


def grok(text: str, own: Mapping[str, str]) -> Pattern:
    """A grok pattern: `%{NAME}`, `%{NAME:column}` or `%{NAME:column:type}` in a regular expression."""
    reader = _Grok({**PATTERNS, **own})
    expression = _compiled(reader.expand(text))
    for name in expression.groupindex:
        if name not in reader.groups:  # written as (?P<name>…)
            reader.add(name, name, pa.string())
    names = _some(list(reader.columns), "%{WORD:name}")
    columns = {name: tuple(reader.columns[name]) for name in names}
    return Pattern(expression, columns, pa.schema([(name, reader.types[name]) for name in names]))


class _Grok:
    def __init__(self, patterns: Mapping[str, str]) -> None:
        self.patterns = patterns
        self.groups: set[str] = set()
        self.columns: dict[str, list[str]] = {}
        self.types: dict[str, pa.DataType] = {}

    def expand(self, text: str, depth: int = 0) -> str:
        """The regular expression of a pattern."""
        return REFERENCE.sub(lambda found: self._reference(*found.groups(), depth=depth), text)

    def add(self, name: str, group: str, kind: pa.DataType) -> None:
        """Add a group for a column. A column may have several groups, in alternatives."""
        self.groups.add(group)
        self.columns.setdefault(name, []).append(group)
        self.types.setdefault(name, kind)

    def _reference(self, pattern: str, column: str | None, kind: str | None, *, depth: int) -> str:
        if pattern not in self.patterns:
            raise _refusal(f"there is no pattern '{pattern}'", did_you_mean(pattern.upper(), self.patterns))
        if kind is not None and kind not in TYPES:
            raise _refusal(f"'{kind}' is not a type of a grok pattern", did_you_mean(kind, TYPES))
        if depth > DEEPEST:
            raise _refusal(f"the pattern '{pattern}' refers to itself", "remove the reference to itself")
        group = f"_g{len(self.groups)}"
        if column is not None:
            self.add(column.replace("][", ".").strip("[]"), group, TYPES[kind or "string"])
        inner = self.expand(self.patterns[pattern], depth + 1)
        return f"(?:{inner})" if column is None else f"(?P<{group}>{inner})"


def _compiled(text: str) -> re.Pattern[str]:
    # Other languages, and many existing patterns, write a named group without the P.
    text = re.sub(r"\(\?<(?![=!])", "(?P<", text)
    try:
        return re.compile(text)
    except (re.error, OverflowError) as error:
        raise _refusal(f"not a regular expression: {error}", "the syntax is that of Python's re") from None


def _some(names: list[str], example: str) -> list[str]:
    if not names:
        raise _refusal("the pattern names no columns", f"name the groups: {example}")
    lower = [name.lower() for name in names]
    if twice := next((name for name in names if lower.count(name.lower()) > 1), None):
        raise _refusal(f"duplicate column '{twice}'", "column names are case-insensitive")
    return names


def _refusal(message: str, hint: str) -> Invalid:
    return Invalid(Problem(code="invalid_pattern", message=message, path="pattern", hint=hint))
