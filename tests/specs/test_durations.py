from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from penstock.specs.durations import DurationText, SpanText, parse_duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0s", 0), ("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("1h", 3_600_000), ("2d", 172_800_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "10", "s", "-1s", "1.5s", "10 s", "10S", "1h30m", "1w", "٣s", "99999d", "9" * 16 + "s"]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValidationError, match=r"duration|too long"):
        TypeAdapter(DurationText).validate_python(text)


def test_a_span_is_more_than_nothing() -> None:
    assert TypeAdapter(DurationText).validate_python("0ms") == "0ms"
    with pytest.raises(ValidationError, match="greater than 0"):
        TypeAdapter(SpanText).validate_python("0ms")
