"""Retention of a stream in Kafka: the events that a write or maintenance removes."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from penstock.specs.stream import Wal
from penstock.streams import clock
from penstock.streams.kafka.state import State, column
from penstock.streams.storage import Full

Operations = list[list[Any]]


def room_for(state: State, wal: Wal, size: int) -> Operations:
    """The operations that remove the oldest frames for an append; raises `Full` if they are unread.

    A single append may exceed the limit: otherwise it could never be stored.
    """
    limit = wal.retention_bytes
    if limit is None or not state.bases or state.bytes + size <= limit:
        return []
    upto = state.frames_for(state.bytes + size - limit)
    if wal.on_full == "block" and state.slowest(otherwise=0) < upto:
        raise Full("retention_bytes")
    return [["trim", upto, "evicted_retention_bytes"]]


def require_read(state: State, events: int, most: int | None) -> None:
    """Reject events beyond the unread limit. A single append may exceed it if all events were read."""
    if most is not None:
        unread = state.next - max(state.slowest(otherwise=state.first), state.first)
        if unread and unread + events > most:
            raise Full("max_unread")


def expired(state: State, wal: Wal) -> Operations:
    """The operations that remove frames beyond the age limit, and beyond the size limit if they were read."""
    found: Operations = []
    if wal.retention_ms is not None and state.times:
        # If the clock went back, no append counts as older than earlier ones; times from a clock that was
        # ahead are ignored.
        now_us, times = clock.now_us(), column(state.times)
        oldest_us = now_us - wal.retention_ms * 1000
        fresh = np.flatnonzero((times >= oldest_us) & (times <= now_us))
        old = np.flatnonzero(times[: fresh[0] if fresh.size else None] < oldest_us)
        if old.size:
            found.append(["trim", state.end_of(int(old[-1])), "evicted_retention_ms"])
    with contextlib.suppress(Full):  # retained until they are read
        found += room_for(state, wal, 0)
    return found
