"""Numbers and times, formatted for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.plurals import plural as plural

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def when(value: Any, now: datetime | None = None) -> str:
    """How long ago a time was, given as ISO 8601 text or as seconds since 1970."""
    moment = moment_of(value)
    if moment is None:
        return "-"
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if seconds < 1:
        return "now"
    size, unit = next((size, unit) for size, unit in UNITS if seconds >= size)
    return f"{int(seconds // size)} {unit} ago"


def moment_of(value: Any) -> datetime | None:
    """Parse a time in the format of the API or of the engine."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def count(value: Any) -> str:
    """A number with thousands separators."""
    return f"{int(value or 0):,}"


def rate(value: float) -> str:
    """Events per second."""
    return f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:.1f}/s"


def duration(ms: float) -> str:
    """A duration in its largest unit: `350 ms`, `12 s`, `3 h`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    length, unit = next((length, unit) for length, unit in UNITS if ms >= length * 1000)
    return f"{int(ms // 1000 // length)} {unit}"


def size(count: int) -> str:
    """A number of bytes in its largest unit: `12 B`, `3.4 MiB`."""
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"
