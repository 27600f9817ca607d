"""Redaction of the secret values that this process has read from texts."""

from __future__ import annotations

import json
import secrets
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Minimum length of a redacted value: shorter values would match parts of unrelated words."""

HIDDEN = "***"

IN_PATHS = "/!$&'()*+,;=:@"
"""Characters that some clients don't escape in the path of a URL."""

_hidden: dict[str, None] = {}
"""The values in all spellings that may occur in texts, longest first."""

_MARK, _END = f"\ue000{secrets.token_hex(8)}.", "\ue001"
"""Enclose the number of a value in a token. The mark is random, so that no event can refer to a value."""

_tokens: dict[str, str] = {}
"""The token of each value that `veiled` has replaced."""


def hide(*values: str) -> None:
    """Register values that must not be shown."""
    global _hidden
    found = {spelling for value in values for spelling in _spellings(value)} - _hidden.keys()
    if found:
        _hidden = dict.fromkeys(sorted([*_hidden, *found], key=len, reverse=True))


def hidden() -> tuple[str, ...]:
    """All values that must not be shown."""
    return tuple(_hidden)


def veiled(text: str) -> str:
    """A text with each hidden value replaced by a token, for Spark's plans, which Spark shows."""
    for value in _hidden:
        if value in text:
            token = _tokens.setdefault(value, f"{_MARK}{len(_tokens)}{_END}")
            text = text.replace(value, token)
    return text


def unveiled(text: str) -> str:
    """A text with tokens replaced by their values; only in the process that created the tokens."""
    if _MARK not in text:
        return text
    for value, token in _tokens.items():
        text = text.replace(token, value)
    return text


def redacted(text: str) -> str:
    """A text with each hidden value replaced by `***`."""
    for value in _hidden:
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def _spellings(value: str) -> set[str]:
    """The spellings of a value: plain, in URLs, and in JSON, with non-ASCII characters escaped or not."""
    if len(value.strip()) < SHORTEST:
        return set()
    in_json = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    in_urls = {quote(value, safe=kept) for kept in ("/", "", IN_PATHS)}
    return {value, value.strip(), quote_plus(value), *in_urls, *in_json}
