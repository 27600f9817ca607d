"""The clock by which events are stamped, segments closed and retention applied. Tests set another one."""

from __future__ import annotations

import time

BACKWARDS_US = 60_000_000
"""If the clock goes back by less than this, the last time is repeated until it has caught up."""


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def stamp_us(last_us: int, now: int | None = None) -> int:
    """The time of an append after one that was stamped with `last_us`; `now` is the time of its writer."""
    now = now_us() if now is None else now
    return last_us if 0 < last_us - now < BACKWARDS_US else now
