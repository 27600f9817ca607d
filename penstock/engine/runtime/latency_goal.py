"""Evaluation of a flow's latency goal: whether it is met, and the reason if not."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.engine.plan.flow import Flow
from penstock.frames.streams.pace import MARGIN, Pace
from penstock.frames.streams.reader import pace_of

WINDOW_S = 10.0
"""The goal is evaluated over the micro-batches of this many seconds."""

STUCK_S = 5.0
"""A micro-batch that exceeds the goal by this many seconds counts as stuck before it has ended."""

RECENT = 0.2
"""The weight of the last batch in the moving average of a sink's time."""

BACKLOG = 100
"""The minimum number of waiting events that counts as a backlog."""

KEEPS_UP = 0.95
"""Above this share of its capacity, a flow does not catch up with a backlog."""

LARGE = 0.3
"""A sink, or the number of events, is named as a cause above this fraction of a micro-batch's time."""

Cause = Literal["fixed_cost", "rate", "backlog", "stuck", "uneven"]


@dataclass(frozen=True)
class Miss:
    """The reason why the goal is missed."""

    cause: Cause
    text: str


class LatencyGoal:
    """Evaluates the finished micro-batches of a run. Not thread-safe: the owner has to lock it."""

    def __init__(
        self, target_ms: int, pace: Callable[[], Pace | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.target_ms, self._pace, self._clock = target_ms, pace, clock
        self._ages: deque[tuple[float, int, float]] = deque()
        self._sinks: dict[str, float] = {}
        self._missed_since: float | None = None

    def sank(self, sink: str, seconds: float) -> None:
        """Record that a sink has acknowledged a batch after a number of seconds."""
        mean = self._sinks.get(sink, seconds)
        self._sinks[sink] = mean + RECENT * (seconds - mean)

    def finished(self, events: int, oldest_ms: float | None) -> None:
        """Record that a micro-batch was acknowledged when its oldest event had this age."""
        if events and oldest_ms is not None:
            self._ages.append((self._clock(), events, oldest_ms))

    def report(self) -> dict[str, Any]:
        """The state of the goal, in the API's format."""
        now, pace = self._clock(), self._pace()
        p99_ms, stuck_ms = self._p99_ms(now), _stuck_ms(pace, now, self.target_ms)
        met = None if p99_ms is None else p99_ms <= self.target_ms
        miss: Miss | None = None
        if stuck_ms is not None:
            met, p99_ms = False, max(stuck_ms, p99_ms or 0.0)
            text = (
                f"the current micro-batch is not acknowledged, {stuck_ms / 1000:.0f} s after its first event"
            )
            miss = Miss("stuck", text)
        elif met is False:
            miss = why(pace, self.target_ms, p99_ms or 0.0, self._slowest)
        if miss is None:
            self._missed_since = None
        elif self._missed_since is None:
            self._missed_since = time.time()
        choice = None if pace is None else pace.choice
        return {
            "target_ms": self.target_ms,
            "p99_ms": p99_ms,
            "met": met,
            "cause": None if miss is None else miss.cause,
            "reason": None if miss is None else miss.text,
            "missed_since": self._missed_since,
            "linger_ms": None if choice is None else round(choice.linger_s * 1000),
            "max_events": None if choice is None else choice.most,
        }

    def _p99_ms(self, now: float) -> float | None:
        """The 99th percentile of the age of recent events, each counted as the oldest of its micro-batch."""
        while self._ages and now - self._ages[0][0] > max(WINDOW_S, 2 * self._ages[-1][2] / 1000):
            self._ages.popleft()
        if not self._ages:
            return None
        late = 0.01 * sum(events for _, events, _ in self._ages)
        for _, events, age in sorted(self._ages, key=lambda each: -each[2]):
            late -= events
            if late < 0:
                return round(age, 1)
        return None

    @property
    def _slowest(self) -> tuple[str, float] | None:
        """The slowest sink, and its time in seconds."""
        return max(self._sinks.items(), key=lambda each: each[1], default=None)


def goal_of(flow: Flow) -> LatencyGoal | None:
    """The latency goal of a flow that is about to run; None if it has no goal, or its input is finite."""
    if flow.latency_ms is None or "availableNow" in flow.source.component.trigger(flow.batch):
        return None
    return LatencyGoal(flow.latency_ms, lambda: pace_of(flow.site.flow))


def why(pace: Pace | None, target_ms: int, p99_ms: float, slowest: tuple[str, float] | None) -> Miss:
    """The reason why events took longer than the goal."""
    if pace is None or not pace.costs.count:
        return Miss("uneven", f"the first micro-batches took {p99_ms:,.0f} ms")
    sink = ""
    if slowest is not None and slowest[1] > LARGE * pace.costs.seconds:
        sink = f", of which sink '{slowest[0]}' takes {slowest[1] * 1000:,.0f} ms"
    if pace.waiting > max(BACKLOG, 2 * pace.rate * target_ms / 1000):
        return _behind(pace)
    costs, usual_ms = pace.costs, pace.costs.seconds * 1000
    if 2 * usual_ms <= MARGIN * target_ms:
        text = f"a micro-batch takes {usual_ms:,.0f} ms on average{sink}; some take much longer"
        return Miss("uneven", text)
    if pace.capacity > 0 and costs.per_event * costs.events > LARGE * costs.seconds:
        text = f"at {pace.rate:,.0f} events/s a micro-batch takes {usual_ms:,.0f} ms{sink}; "
        return Miss("rate", text + f"about {pace.capacity:,.0f} events/s can be processed in time")
    least_ms = min(costs.quickest, costs.seconds) * 1000
    text = f"a micro-batch takes at least {least_ms:,.0f} ms, and {usual_ms:,.0f} ms on average{sink}; "
    return Miss("fixed_cost", text + "an event may have to wait for two micro-batches")


def _behind(pace: Pace) -> Miss:
    """The reason for a queue: more events arrive than can be processed, or a backlog is being caught up."""
    if pace.rate > KEEPS_UP * pace.processed:
        text = f"{pace.rate:,.0f} events/s arrive, about {pace.processed:,.0f} events/s can be processed"
        return Miss("rate", text)
    seconds = max(1.0, pace.waiting / (pace.processed - pace.rate))
    text = f"{pace.waiting:,} events are waiting; catching up takes about {seconds:,.0f} s"
    return Miss("backlog", text)


def _stuck_ms(pace: Pace | None, now: float, target_ms: int) -> float | None:
    """The age of the oldest event in progress, in milliseconds of whole seconds, if far beyond the goal."""
    under_way = None if pace is None else pace.under_way
    if under_way is None:
        return None
    age = now - under_way.oldest_at
    return float(int(age) * 1000) if age > target_ms / 1000 + STUCK_S else None
