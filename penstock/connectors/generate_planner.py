"""Plans the events of the `generate` source; tasks create them in Java (`spark/java/CountedRows.java`)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from penstock.frames.python_source import LONGEST_WAIT_S, inflight
from penstock.spark.planned_source import PLANNERS, Offset, Slice
from penstock.specs.policies import Batch

NEVER = 2**62

KIND = "generate"

EVENTS = "seq BIGINT, time TIMESTAMP"
"""The columns of a generated event."""


def reading(rate: float | None, count: int | None, batch: Batch) -> dict[str, Any]:
    """The options of the planner for a flow's rate, count and batch limits."""
    limits = {"max_events": batch.max_events, "max_ms": batch.max_ms, "max_inflight": inflight(batch)}
    return {"kind": KIND, "rate": rate, "count": count, **limits}


class GeneratePlanner:
    """Paces the events of the `generate` source.

    An offset is `{n, from_us, to_us}`: the number of events so far, and the time range in which the events
    of the last micro-batch were generated. This is enough to generate the same events again.
    """

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self.rate: float | None = reading["rate"]
        self.count: int | None = reading["count"]
        self.max_events = int(reading["max_events"])
        self.max_ms = int(reading["max_ms"])
        self.max_inflight = int(reading["max_inflight"])
        self.begin: tuple[float, int] | None = None  # start time of this run, and number of events before

    def initial(self) -> Offset:
        now = _now_us()
        return {"n": 0, "from_us": now, "to_us": now}

    def available_now(self) -> None:
        """Nothing to do: all `count` events can be read, and `latest` waits to keep the pace."""

    def latest(self, start: Offset) -> Offset | None:
        n = start["n"]
        end = NEVER if self.count is None else self.count
        if n >= end:
            return None
        due = self._wait(n, min(end - n, self.max_events * self.max_inflight))
        if due == 0 and self.count is None:
            return None
        # A finite query would end without a new offset. An offset that differs only in its time keeps the
        # query alive with a micro-batch without events.
        now = _now_us()
        since = start["to_us"] if self._going_on(n) else now
        return {"n": n + due, "from_us": since, "to_us": max(now, since + 1)}

    def _going_on(self, n: int) -> bool:
        """Whether this run generated the last micro-batch, rather than a run before a pause."""
        return self.begin is not None and n > self.begin[1]

    def _wait(self, n: int, most: int) -> int:
        """The number of due events. Sleeps until a batch is full or its first event has waited `max_ms`."""
        if self.rate is None:
            return most
        if self.begin is None:
            self.begin = (time.time(), n)
        began, base = self.begin
        size = min(self.max_events, most)
        full_at = began + (n + size - base) / self.rate
        waited_at = began + (n + 1 - base) / self.rate + self.max_ms / 1000
        time.sleep(max(0.0, min(full_at, waited_at, time.time() + LONGEST_WAIT_S) - time.time()))
        now = time.time()
        return min(most, base + int((now - began) * self.rate) - n) if now >= min(full_at, waited_at) else 0

    def partitions(self, start: Offset, end: Offset) -> list[Slice]:
        """A task for each batch: the events `first` to `next` (exclusive), with their time range."""
        first, last = start["n"], end["n"]

        def at(n: int) -> int:
            made: int = end["from_us"] + (end["to_us"] - end["from_us"]) * (n - first) // (last - first)
            return made

        return [
            {"first": n, "next": stop, "from_us": at(n), "to_us": at(stop)}
            for n in range(first, last, self.max_events)
            for stop in (min(n + self.max_events, last),)
        ]

    def commit(self, end: Offset) -> None:
        """Nothing to do: generated events are not stored."""

    def stop(self) -> None:
        """Nothing to release."""


def _now_us() -> int:
    return time.time_ns() // 1_000


PLANNERS[KIND] = GeneratePlanner
