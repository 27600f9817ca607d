"""Entries of a Redis stream: their ids, the start position of a reader, and their events."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping

from penstock.connectors.redis.client import HEADERS, KEY, VALUE
from penstock.specs.positions import parse_position

Id = tuple[int, int]
"""The id of an entry: a time in milliseconds, and a number within the millisecond."""

BEGINNING: Id = (0, 0)
"""Before all entries: no entry has this id."""

LAST_NUMBER = 2**64 - 1

_ID = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")


def parse_id(text: str) -> Id:
    """The id in a text such as `1526919030474-55`; ValueError if the text is not an id."""
    found = _ID.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a valid entry id: use an id such as 1526919030474-55")
    return int(found[1]), int(found[2] or 0)


def id_text(entry: Id) -> str:
    """An id as Redis writes it."""
    return f"{entry[0]}-{entry[1]}"


def before(entry: Id) -> Id:
    """The id right before another id."""
    milliseconds, number = entry
    if number:
        return milliseconds, number - 1
    return (milliseconds - 1, LAST_NUMBER) if milliseconds else BEGINNING


def parse_start(text: str) -> Id | None:
    """The id after which a reader starts; None for `latest`. ValueError if the text is not a position."""
    if text.startswith("id:"):
        return before(parse_id(text[3:]))
    if text.startswith("offset:"):
        raise ValueError("entries have ids: use id:1526919030474-55")
    try:
        start = parse_position(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is not a valid position: use earliest, latest, id:ID or time:2026-01-31T12:00:00Z"
        ) from None
    if start.kind == "latest":
        return None
    if start.time is None:
        return BEGINNING
    return before((max(0, math.ceil(round(start.time.timestamp() * 1_000_000) / 1000)), 0))


def event_of(fields: Mapping[bytes, bytes]) -> tuple[bytes, bytes | None, dict[str, str]]:
    """The value, the key and the headers of an entry."""
    if VALUE.encode() not in fields:
        shown = {_text(name): _text(value) for name, value in fields.items()}
        return json.dumps(shown, ensure_ascii=False).encode(), None, {}
    headers = _headers(fields.get(HEADERS.encode()))
    return fields[VALUE.encode()], fields.get(KEY.encode()), headers


def _headers(given: bytes | None) -> dict[str, str]:
    if given is None:
        return {}
    try:
        found = json.loads(given)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return {HEADERS: _text(given)}
    return {name: each if isinstance(each, str) else json.dumps(each) for name, each in found.items()}


def _text(value: bytes) -> str:
    """A value as text; base64 if it is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
