"""Conditions on events: a part of SQL's WHERE, evaluated event by event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import Invalid, did_you_mean
from penstock.streams.filters.tokens import Token, tokens, wrong
from penstock.streams.filters.values import COMPARES, META, RAW, Path, compared, like, value_at

DEEPEST = 50
"""The maximum nesting depth of conditions, so that no text exhausts Python's stack."""

Event = dict[str, Any]
Condition = Callable[[Event], bool | None]
"""Whether an event meets the condition; None, as in SQL, if the result depends on NULL (not met)."""

HINT = "write a condition such as: amount > 100 AND customer LIKE 'a%' AND _key IS NOT NULL"


def parse_condition(text: str, columns: Sequence[str] | None) -> Condition:
    """Parse a condition. `columns` are those of a typed stream; None: the stream is raw.

    Raises `Invalid`, with the position in the text, if the condition is invalid.
    """
    return _Parser(text, columns).whole()


class _Parser:
    def __init__(self, text: str, columns: Sequence[str] | None) -> None:
        self._text, self._tokens = text, list(tokens(text))
        self._known = {name.lower(): name for name in (*META, *(RAW if columns is None else columns))}
        self._raw = columns is None
        self._depth = 0

    def whole(self) -> Condition:
        made = self._any()
        if self._next.kind != "end":
            raise self._unexpected("AND or OR is missing here")
        return made

    @property
    def _next(self) -> Token:
        return self._tokens[0]

    def _take(self, kind: str, *values: str) -> Token | None:
        """Consume and return the next token if it has the kind, and one of the values if given."""
        if self._next.kind != kind or (values and self._next.value not in values):
            return None
        return self._tokens.pop(0)

    def _require(self, kind: str, value: str) -> None:
        if self._take(kind, value) is None:
            raise self._unexpected(f"{value.upper()} is missing here")

    def _unexpected(self, message: str) -> Invalid:
        return wrong(self._text, self._next.at, message, HINT)

    def _any(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._unexpected("the condition is nested too deeply")
        found = [self._all()]
        while self._take("word", "or"):
            found.append(self._all())
        self._depth -= 1
        return found[0] if len(found) == 1 else lambda event: _or([each(event) for each in found])

    def _all(self) -> Condition:
        found = [self._one()]
        while self._take("word", "and"):
            found.append(self._one())
        return found[0] if len(found) == 1 else lambda event: _and([each(event) for each in found])

    def _one(self) -> Condition:
        if self._take("word", "not"):
            self._depth += 1
            if self._depth > DEEPEST:
                raise self._unexpected("the condition is nested too deeply")
            made = _negated(self._one())
            self._depth -= 1
            return made
        if self._take("sign", "("):
            inner = self._any()
            self._require("sign", ")")
            return inner
        return self._about(self._path())

    def _path(self) -> Path:
        name = self._take("name")
        if name is None:
            raise self._unexpected("the name of a field is missing here")
        root = self._known.get(name.value.lower())
        if root is None:
            raise self._unknown(name)
        path: list[str | int] = [root]
        while True:
            if self._take("sign", "."):
                part = self._take("name") or self._take("word")
                if part is None:
                    raise self._unexpected("the name of a field is missing here")
                path.append(part.value)
            elif self._take("sign", "["):
                place = self._take("number")
                if place is None or not isinstance(place.value, int) or place.value < 0:
                    raise self._unexpected("the number of an element is missing here")
                path.append(place.value)
                self._require("sign", "]")
            else:
                return tuple(path)

    def _unknown(self, name: Token) -> Invalid:
        message = f"there is no field '{name.value}'"
        if self._raw:
            hint = f"the stream is raw: write value.{name.value} for a field of its JSON"
        else:
            hint = did_you_mean(name.value, self._known.values())
        return wrong(self._text, name.at, message, hint)

    def _about(self, path: Path) -> Condition:
        if (sign := self._take("sign", *COMPARES)) is not None:
            compare, other = COMPARES[sign.value], self._literal()
            return lambda event: compared(value_at(event, path), compare, other)
        if self._take("word", "is"):
            wanted = self._take("word", "not") is None
            self._require("word", "null")
            return lambda event: (value_at(event, path) is None) == wanted
        negated = self._take("word", "not") is not None
        made = self._special(path)
        if made is not None:
            return _negated(made) if negated else made
        if negated:
            raise self._unexpected("IN, LIKE or BETWEEN is missing here")
        return lambda event: found if isinstance(found := value_at(event, path), bool) else None

    def _special(self, path: Path) -> Condition | None:
        """IN, BETWEEN and LIKE."""
        if self._take("word", "in"):
            self._require("sign", "(")
            others = [self._literal()]
            while self._take("sign", ","):
                others.append(self._literal())
            self._require("sign", ")")
            equals = COMPARES["="]
            return lambda event: _or([compared(value_at(event, path), equals, each) for each in others])
        if self._take("word", "between"):
            low = self._literal()
            self._require("word", "and")
            high = self._literal()
            return lambda event: _and(
                [
                    compared(value := value_at(event, path), COMPARES[">="], low),
                    compared(value, COMPARES["<="], high),
                ]
            )
        if (word := self._take("word", "like", "ilike")) is not None:
            pattern = self._take("text")
            if pattern is None:
                raise self._unexpected("a pattern in single quotes is missing here")
            return _like(path, pattern.value, folded=word.value == "ilike")
        return None

    def _literal(self) -> Any:
        if (found := self._take("number") or self._take("text")) is not None:
            return found.value
        if (word := self._take("word", "true", "false", "null")) is not None:
            return {"true": True, "false": False, "null": None}[word.value]
        hint = "put text in single quotes" if self._next.kind == "name" else HINT
        raise wrong(self._text, self._next.at, "a number or a text in single quotes is missing here", hint)


def _like(path: Path, pattern: str, *, folded: bool) -> Condition:
    matches = like(pattern.lower() if folded else pattern)

    def check(event: Event) -> bool | None:
        value = value_at(event, path)
        if value is None or isinstance(value, dict | list):
            return None
        text = value if isinstance(value, str) else str(value)
        return matches(text.lower() if folded else text)

    return check


def _negated(condition: Condition) -> Condition:
    return lambda event: None if (found := condition(event)) is None else not found


def _or(found: Sequence[bool | None]) -> bool | None:
    return True if any(found) else None if None in found else False


def _and(found: Sequence[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True
