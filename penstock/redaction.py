"""Values of secrets that this process has read, and texts without them."""

from __future__ import annotations

import json
import secrets
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Shorter values are left alone: they would be found in words that have nothing to do with them."""

HIDDEN = "***"

IN_PATHS = "/!$&'()*+,;=:@"
"""Characters that some clients leave as they are in the path of a URL."""

_hidden: dict[str, None] = {}
"""The values in all spellings in which texts may have them, the longest first."""

_MARK, _END = f"\ue000{secrets.token_hex(8)}.", "\ue001"
"""Enclose the number of a value. The mark is random, so that no event can name a value."""

_tokens: dict[str, str] = {}
"""The token of each value that was veiled."""


def hide(*values: str) -> None:
    """Remember values that must not be shown."""
    global _hidden
    found = {spelling for value in values for spelling in _spellings(value)} - _hidden.keys()
    if found:
        _hidden = dict.fromkeys(sorted([*_hidden, *found], key=len, reverse=True))


def hidden() -> tuple[str, ...]:
    """All values that must not be shown."""
    return tuple(_hidden)


def veiled(text: str) -> str:
    """A text with a token in the place of each hidden value, for Spark's plans, which Spark shows."""
    for value in _hidden:
        if value in text:
            token = _tokens.setdefault(value, f"{_MARK}{len(_tokens)}{_END}")
            text = text.replace(value, token)
    return text


def unveiled(text: str) -> str:
    """A text that was made from veiled ones, with the values in it; only in the process that veiled them."""
    if _MARK not in text:
        return text
    for value, token in _tokens.items():
        text = text.replace(token, value)
    return text


def redacted(text: str) -> str:
    """A text in which `***` is in the place of each hidden value."""
    for value in _hidden:
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def _spellings(value: str) -> set[str]:
    """A value as it is, in URLs, and in JSON texts, with letters outside ASCII escaped or not."""
    if len(value.strip()) < SHORTEST:
        return set()
    in_json = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    in_urls = {quote(value, safe=kept) for kept in ("/", "", IN_PATHS)}
    return {value, value.strip(), quote_plus(value), *in_urls, *in_json}
