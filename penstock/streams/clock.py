"""The clock for append times, closing segments and retention. Tests replace it."""

from __future__ import annotations

import time

BACKWARDS_US = 60_000_000
"""If the clock goes back by less than this, the last timestamp is repeated until the clock has caught up."""


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def stamp_us(last_us: int, now: int | None = None) -> int:
    """The timestamp of an append that follows one with `last_us`; `now` is the time of its writer."""
    now = now_us() if now is None else now
    return last_us if 0 < last_us - now < BACKWARDS_US else now
