"""Access to values of events in conditions, and comparisons. A comparison with NULL is NULL."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

Compare = Callable[[Any, Any], bool]
Path = tuple[str | int, ...]

COMPARES: dict[str, Compare] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

META = ("_offset", "_time", "_key", "_headers")
"""Fields that every event has."""

RAW = ("value", "key", "headers")
"""Fields of a raw event. The fields of its JSON are below `value`."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


def value_at(event: dict[str, Any], path: Path) -> Any:
    """The value of a field of an event in the API's format; None if the field is missing."""
    root, *rest = path
    if root in META:
        value = event[str(root)[1:]]
    elif "columns" in event:
        value = event["columns"].get(root)
    else:
        value = event.get(str(root))
        if root == "value" and rest:
            value = _parsed(value)
    for part in rest:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return None


def compared(value: Any, compare: Compare, other: Any) -> bool | None:
    """The result of a comparison; None if a value is NULL, or the values have different types."""
    if value is None or other is None:
        return None
    if isinstance(value, bool) or isinstance(other, bool):
        alike = isinstance(value, bool) and isinstance(other, bool)
        return compare(value, other) if alike else None
    if isinstance(value, str) and isinstance(other, str):
        if _TIME.fullmatch(value) and _TIME.fullmatch(other):
            at, then = _moment(value), _moment(other)
            if at is not None and then is not None:
                return compare(at, then)
        return compare(value, other)
    one, another = _number(value), _number(other)
    return None if one is None or another is None else compare(one, another)


def _number(value: Any) -> int | Decimal | None:
    """A value as a number, also from text: decimals are sent as text."""
    if isinstance(value, int | Decimal):
        return value
    if not isinstance(value, float | str):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return None if found.is_nan() else found


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def like(pattern: str) -> Callable[[str], bool]:
    """A function that matches texts against a LIKE pattern: `%` is any text, `_` any character.

    Not a single regular expression: with several `.*` it would take very long for some texts.
    """
    parts = pattern.split("%")
    forms = [re.compile("".join(map(_form, part)), re.DOTALL) for part in parts]

    def matches(text: str) -> bool:
        first = forms[0].match(text)
        if first is None:
            return False
        if len(forms) == 1:
            return first.end() == len(text)
        at = _middle(forms[1:-1], text, first.end())
        end = len(text) - len(parts[-1])
        return at is not None and end >= at and forms[-1].match(text, end) is not None

    return matches


def _form(character: str) -> str:
    return "." if character == "_" else re.escape(character)


def _middle(forms: Sequence[re.Pattern[str]], text: str, at: int) -> int | None:
    """The end of the last form, if all forms occur in the text in this order; else None."""
    for form in forms:
        found = form.search(text, at)
        if found is None:
            return None
        at = found.end()
    return at
