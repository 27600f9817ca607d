"""The clock by which events are stamped, segments closed and retention applied. Tests set another one."""

from __future__ import annotations

import time


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000
