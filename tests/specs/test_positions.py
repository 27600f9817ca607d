from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.specs.positions import Position, parse_position

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position("earliest")),
        ("latest", Position("latest")),
        ("offset:0", Position("offset", offset=0)),
        ("offset:0042", Position("offset", offset=42)),
        (f"offset:{2**63 - 1}", Position("offset", offset=2**63 - 1)),
        ("time:2026-01-31T12:00:00Z", Position("time", time=NOON)),
        ("time:2026-01-31T13:00:00+01:00", Position("time", time=NOON)),
        ("time:2026-01-31T12:00", Position("time", time=NOON)),
        ("time:2026-01-31", Position("time", time=NOON.replace(hour=0))),
    ],
)
def test_a_position_can_be_written_and_read_again(text: str, position: Position) -> None:
    assert parse_position(text) == position
    assert parse_position(str(position)) == position


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not a valid position"),
        ("newest", "is not a valid position"),
        ("Latest", "is not a valid position"),
        ("earliest ", "is not a valid position"),
        ("42", "is not a valid position"),
        ("offset:", "is not a valid offset"),
        ("offset:-1", "is not a valid offset"),
        ("offset:1.5", "is not a valid offset"),
        ("offset:٤", "is not a valid offset"),
        (f"offset:{2**63}", "is not a valid offset"),
        ("time:", "is not a valid time"),
        ("time:yesterday", "is not a valid time"),
        ("time:1769860800", "is not a valid time"),
        ("time:0001-01-01T00:00:00+14:00", "is not a valid time"),
    ],
)
def test_what_is_no_position_is_told_with_what_would_be(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_position(text)
