"""Chooses the pace of micro-batches for a latency goal: their start, size and number of tasks.

An event waits until its micro-batch begins, and then until that micro-batch ends. The first wait lasts until
the previous micro-batch has ended and the oldest event has lingered long enough, whichever is later. So the
goal is met if neither takes longer than the goal minus the time of one micro-batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.frames.streams.batch_costs import LATEST, Costs

MARGIN = 0.75
"""The fraction of the goal that is planned for. The rest covers time that the planner does not see: the
request before the append, and the time until a waiting reader wakes up after the acknowledgement. It also
covers the one micro-batch in a hundred that takes much longer than the others."""

COMPANY = 1.0
"""Events linger only if at least this many more are expected in that time. Otherwise waiting only delays an
event, and rarely saves a micro-batch."""

DEVIATIONS = 3.0
"""A micro-batch may take this many mean deviations longer than expected: about 1 in 100 exceeds that."""

TASK_S, TASK_EVENTS = 0.05, 100
"""The minimum seconds of work and events per task, if there are several: a task also has a fixed cost."""

RATE_S = 2.0
"""Seconds over which the arrival rate is measured."""


@dataclass(frozen=True)
class Choice:
    """The start of the next micro-batch: when its oldest event has waited for `linger_s`, or it is full."""

    linger_s: float
    most: int | None
    """The maximum number of events; None: as many as a micro-batch can hold."""


@dataclass(frozen=True)
class UnderWay:
    """A micro-batch that was planned and is not committed yet; all times are from the same clock."""

    planned_at: float
    oldest_at: float
    events: int
    tasks: int


class Pace:
    """Estimates of costs and of the arrival rate, and the resulting choices. Does not read a clock itself."""

    def __init__(self, target_s: float, cores: int) -> None:
        self.target_s, self.cores = target_s, cores
        self.costs = Costs()
        self.rate = 0.0
        """The arrival rate in events per second."""
        self.waiting = 0
        """The number of unplanned events at the last request to the planner."""
        self.under_way: UnderWay | None = None
        self.choice = Choice(0.0, None)
        self._seen: tuple[float, int] | None = None
        self._sizes = 0.0  # the mean number of events in a micro-batch
        self._warm = False  # the first micro-batch compiles code, and is not representative

    def asked(self, now: float, start: int, end: int) -> None:
        """Record that Spark requests the micro-batch from `start` on; the previous one is committed.

        `end` is the end of the stream.
        """
        if (done := self.under_way) is not None:
            if self._warm:
                self.costs.add(done.events / done.tasks, now - done.planned_at)
                self._sizes += max(LATEST, 1 / self.costs.count) * (done.events - self._sizes)
            self._warm, self.under_way = True, None
        self.waiting = end - start
        if self._seen is not None and now > self._seen[0]:
            passed = now - self._seen[0]
            measured = max(0, end - self._seen[1]) / passed
            self.rate += (1 - math.exp(-passed / RATE_S)) * (measured - self.rate)
        self._seen = now, end

    def choose(self, waited_s: float) -> Choice:
        """Choose the start of the next micro-batch; its oldest event has waited for `waited_s` so far."""
        costs, goal = self.costs, MARGIN * self.target_s
        if waited_s > self.target_s or not costs.count:
            # Smaller micro-batches would only make the queue longer: each has the fixed cost.
            self.choice = Choice(0.0, None)
            return self.choice
        share = self.rate * costs.per_event / self.tasks(self.rate * goal)
        linger = (goal - costs.fixed - DEVIATIONS * costs.deviation) / (1 + share)
        if self.rate * linger < COMPANY:
            linger = 0.0
        most = None if not (room := self._room) else max(room, int(2 * self.rate * goal))
        self.choice = Choice(max(0.0, linger), most)
        return self.choice

    def planned(self, now: float, oldest_at: float, events: int) -> int:
        """Record that a micro-batch begins; returns the number of tasks that share its events."""
        tasks = self.tasks(events)
        self.under_way = UnderWay(now, oldest_at, events, tasks)
        return tasks

    def tasks(self, events: float) -> int:
        """The number of tasks for a number of events."""
        worth = min(events * self.costs.per_event / TASK_S, events / TASK_EVENTS)
        return min(self.cores, max(1, int(worth)))

    @property
    def capacity(self) -> float:
        """Estimated events per second that can be processed in time, if the quickest batch was empty."""
        costs, half = self.costs, MARGIN * self.target_s / 2
        fixed = min(costs.fixed, costs.quickest)
        if fixed >= costs.seconds:
            return math.inf if fixed < half else 0.0
        return max(0.0, self._sizes * (half - fixed) / (costs.seconds - fixed) / half)

    @property
    def processed(self) -> float:
        """The events per second of recent micro-batches, without the time between them."""
        return self._sizes / self.costs.seconds if self.costs.seconds else 0.0

    @property
    def _room(self) -> int | None:
        """The events of a micro-batch that takes half of the goal, so that two fit; None: no limit."""
        room_s = MARGIN * self.target_s / 2 - self.costs.fixed
        if not self.costs.count or room_s <= 0:
            return 0 if self.costs.count else None
        if not self.costs.per_event:
            return None
        tasks = self.tasks(self.cores * room_s / self.costs.per_event)
        return max(1, int(tasks * room_s / self.costs.per_event))
