"""Paths into JSON texts, such as `data.items` or `$.pages[0]["next page"]`.

Values are extracted as text: decoding and encoding them again could lose digits of a number.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator

STEP = re.compile(r'\.?([^\s.\[\]"]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')

_scan = json.JSONDecoder().raw_decode
_space = re.compile(r"[ \t\r\n]*")

Steps = tuple[str | int, ...]


def steps_of(path: str) -> Steps:
    """The steps of a path; ValueError if it is malformed."""
    text = path.removeprefix("$")
    found: list[str | int] = []
    at = 0
    while at < len(text):
        match = STEP.match(text, at)
        if match is None or (at > 0 and match[1] and text[at] != "."):
            raise ValueError(f"'{path}' is not a valid path: use names separated by dots, such as data.items")
        name, index, quoted = match.groups()
        found.append(name if name else int(index) if index else json.loads(quoted))
        at = match.end()
    return tuple(found)


def _checked(path: str) -> str:
    steps_of(path)
    return path


JsonPath = Annotated[str, AfterValidator(_checked)]


def text_at(text: str, steps: Steps) -> str | None:
    """The text of the value at a path; None if there is none. ValueError if the text is not JSON."""
    at: int | None = _after_space(text, 0)
    for step in steps:
        assert at is not None
        at = _member(text, at, step)
        if at is None:
            return None
    assert at is not None
    return text[at : _scan(text, at)[1]]


def plain(text: str | None) -> str | None:
    """A JSON value as plain text: a string without its quotes, other values unchanged; None for null."""
    if text is None or text == "null":
        return None
    return json.loads(text) if text.startswith('"') else text


def elements(text: str) -> list[str]:
    """The texts of an array's elements; for another value, its own text; empty for null."""
    at = _after_space(text, 0)
    if text[at : at + 1] != "[":
        return [] if text.strip() == "null" else [text]
    found, at = [], _after_space(text, at + 1)
    while text[at] != "]":
        end = _scan(text, at)[1]
        found.append(text[at:end])
        at = _after_space(text, end)
        at = _after_space(text, at + 1) if text[at] == "," else at
    return found


def _member(text: str, at: int, step: str | int) -> int | None:
    """The offset of a member of an object, or of an element of an array; None if there is none."""
    opening = text[at : at + 1]
    if opening != ("{" if isinstance(step, str) else "["):
        return None
    found, number = None, 0
    at = _after_space(text, at + 1)
    while text[at] not in "}]":
        name: Any = number
        if opening == "{":
            name, at = _scan(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # past the colon
        if name == step:
            found = at  # if a name is repeated, its last value counts, as in other parsers
        at = _after_space(text, _scan(text, at)[1])
        at = _after_space(text, at + 1) if text[at] == "," else at
        number += 1
    return found


def _after_space(text: str, at: int) -> int:
    return _space.match(text, at).end()  # type: ignore[union-attr]  # matches nothing, too
