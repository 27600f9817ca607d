"""Durations in documents: `500ms`, `10s`, `5m`, `1h`, `7d`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

LONGEST_MS = 3650 * UNITS_MS["d"]
"""Ten years. A longer duration is a mistake, and would overflow Spark's times."""

_PATTERN = r"^[0-9]+(ms|s|m|h|d)$"
_PARTS = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")


def parse_duration(text: str) -> int:
    """The milliseconds of a duration; raises ValueError if the text is invalid."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(
            f"'{text}' is not a valid duration: use a number and ms, s, m, h or d, such as 10s or 5m"
        )
    ms = int(found[1]) * UNITS_MS[found[2]]
    if ms > LONGEST_MS:
        raise ValueError(f"'{text}' is too long: at most 3650d")
    return ms


def _checked(text: str) -> str:
    parse_duration(text)
    return text


def _positive(text: str) -> str:
    if parse_duration(text) == 0:
        raise ValueError("the duration must be greater than 0")
    return text


DurationText = Annotated[str, AfterValidator(_checked), Field(json_schema_extra={"pattern": _PATTERN})]
"""A duration, 0 included."""

SpanText = Annotated[str, AfterValidator(_positive), Field(json_schema_extra={"pattern": _PATTERN})]
"""A duration of more than 0."""
