"""Positions: where a reader of a stream starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

LAST_OFFSET = 2**63 - 1
"""The highest offset: offsets are stored as signed 64-bit numbers."""

_PATTERN = r"^(earliest|latest|offset:[0-9]+|time:.+)$"
_OFFSET = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True)
class Position:
    """Where a reader starts: at an end of the stream, at an offset, or at the first event since a time."""

    kind: Literal["earliest", "latest", "offset", "time"]
    offset: int | None = None
    time: datetime | None = None

    def __str__(self) -> str:
        if self.time is not None:
            return f"time:{self.time.isoformat()}"
        return self.kind if self.offset is None else f"offset:{self.offset}"


EARLIEST, LATEST = Position("earliest"), Position("latest")


def parse_position(text: str) -> Position:
    """Parse a position; a time without a time zone is UTC. ValueError if the text is not a position."""
    if text == "earliest":
        return EARLIEST
    if text == "latest":
        return LATEST
    kind, _, value = text.partition(":")
    if kind == "offset":
        return Position("offset", offset=_offset(value))
    if kind == "time":
        return Position("time", time=_time(value))
    raise ValueError(
        f"'{text}' is not a valid position: use earliest, latest, offset:N or time:2026-01-31T12:00:00Z"
    )


def _offset(text: str) -> int:
    if not _OFFSET.fullmatch(text) or int(text) > LAST_OFFSET:
        raise ValueError(f"'{text}' is not a valid offset: use a whole number from 0, such as offset:42")
    return int(text)


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # beyond the years 1 to 9999 in UTC
        raise ValueError(
            f"'{text}' is not a valid time: use ISO 8601, such as time:2026-01-31T12:00:00Z"
        ) from None


def _checked(text: str) -> str:
    parse_position(text)
    return text


PositionText = Annotated[str, AfterValidator(_checked), Field(json_schema_extra={"pattern": _PATTERN})]
"""A position as written in documents."""
