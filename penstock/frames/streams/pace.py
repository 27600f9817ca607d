"""Chooses the pace of micro-batches for a latency goal: when one begins, how large it is, how many tasks.

An event waits until its micro-batch begins, and then until that micro-batch ends. The first wait lasts until
the micro-batch before has ended and the oldest event has lingered enough, whichever is later. So the goal is
kept if neither takes longer than the goal less the time of one micro-batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.frames.streams.batch_costs import LATEST, Costs

MARGIN = 0.75
"""The part of the goal that is planned for. The rest covers the time that the planner does not see: that of
the request before the append, and until a waiting reader wakes up after the acknowledgement. It also covers
the one micro-batch in a hundred that takes much longer than the others."""

COMPANY = 1.0
"""Events linger only if at least this many more are expected meanwhile. Otherwise waiting only makes an event
late, and hardly ever saves a micro-batch."""

DEVIATIONS = 3.0
"""A micro-batch may take this many mean deviations longer than expected: about 1 in 100 takes even longer."""

TASK_S, TASK_EVENTS = 0.05, 100
"""Each of several tasks has at least this many seconds of work and events: a task has a fixed cost too."""

RATE_S = 2.0
"""Seconds over which the rate of arrival is measured."""


@dataclass(frozen=True)
class Choice:
    """When the next micro-batch begins: when its oldest event has waited for `linger_s`, or it is full."""

    linger_s: float
    most: int | None
    """The most events it holds; None: as many as a micro-batch can hold."""


@dataclass(frozen=True)
class UnderWay:
    """A micro-batch that was planned and has not been committed yet; times are those of one clock."""

    planned_at: float
    oldest_at: float
    events: int
    tasks: int


class Pace:
    """Estimates of costs and of the rate of arrival, and the choices that follow. Reads no clock itself."""

    def __init__(self, target_s: float, cores: int) -> None:
        self.target_s, self.cores = target_s, cores
        self.costs = Costs()
        self.rate = 0.0
        """Events that arrive in a second."""
        self.waiting = 0
        """Events that had not been planned when the planner was last asked."""
        self.under_way: UnderWay | None = None
        self.choice = Choice(0.0, None)
        self._seen: tuple[float, int] | None = None
        self._sizes = 0.0  # the mean number of events in a micro-batch
        self._warm = False  # the first micro-batch compiles code, and says nothing about later ones

    def asked(self, now: float, start: int, end: int) -> None:
        """The planner is asked for the micro-batch from an offset on; what was under way is committed.

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
        """When the next micro-batch begins; its oldest event has waited for `waited_s` so far."""
        costs, goal = self.costs, MARGIN * self.target_s
        if waited_s > self.target_s or not costs.count:
            # Smaller micro-batches would only make the queue longer: each of them has the fixed cost.
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
        """A micro-batch begins; returns the number of tasks that share its events."""
        tasks = self.tasks(events)
        self.under_way = UnderWay(now, oldest_at, events, tasks)
        return tasks

    def tasks(self, events: float) -> int:
        """The number of tasks among which so many events are divided."""
        worth = min(events * self.costs.per_event / TASK_S, events / TASK_EVENTS)
        return min(self.cores, max(1, int(worth)))

    @property
    def capacity(self) -> float:
        """About how many events per second can be processed in time, if the quickest micro-batch had none."""
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
        """The events of a micro-batch that takes half of the goal, so that two fit; None for any number."""
        room_s = MARGIN * self.target_s / 2 - self.costs.fixed
        if not self.costs.count or room_s <= 0:
            return 0 if self.costs.count else None
        if not self.costs.per_event:
            return None
        tasks = self.tasks(self.cores * room_s / self.costs.per_event)
        return max(1, int(tasks * room_s / self.costs.per_event))
