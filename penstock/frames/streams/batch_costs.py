"""Estimates what micro-batches cost: a fixed time, and a time for each event."""

from __future__ import annotations

import math

LATEST = 0.1
"""The weight of the latest micro-batch in the estimates: about ten micro-batches are remembered."""

SPREAD, FEW, KEPT = 0.5, 10, 0.99
"""Sizes that differ by less than this part of their mean, and by this many events, say little about the cost
of an event: after a slow micro-batch more events wait, so a machine that is slow for a while looks the same.
An earlier estimate is kept, lower by this factor with each micro-batch."""

SLOWER = 1.01
"""The quickest micro-batch is forgotten by this factor with each one that follows."""


class Costs:
    """The time of a micro-batch as a fixed cost and a cost for each event, from recent micro-batches."""

    def __init__(self) -> None:
        self.count = 0
        self.per_event = 0.0
        self.deviation = 0.0
        """The mean difference between the time that a micro-batch took and the expected time, in seconds."""
        self.events = self.seconds = 0.0
        """The mean size and time of a micro-batch."""
        self.quickest = math.inf
        """The shortest time that a micro-batch took lately."""
        self._variance = self._covariance = 0.0

    def add(self, events: float, seconds: float) -> None:
        """Take in a micro-batch; with several tasks, `events` are those of one task."""
        self.count += 1
        weight = max(LATEST, 1 / self.count)
        if self.count > 1:
            self.deviation += weight * (abs(seconds - self.expected(events)) - self.deviation)
        self.quickest = min(seconds, self.quickest * SLOWER)
        more, longer = events - self.events, seconds - self.seconds
        self.events += weight * more
        self.seconds += weight * longer
        self._variance = (1 - weight) * (self._variance + weight * more * more)
        self._covariance = (1 - weight) * (self._covariance + weight * more * longer)
        slope = self._covariance / (self._variance + (SPREAD * self.events + FEW) ** 2)
        self.per_event = min(max(slope, KEPT * self.per_event), self.seconds / max(self.events, 1.0))

    def expected(self, events: float) -> float:
        """The seconds that a micro-batch is expected to take."""
        return self.seconds + self.per_event * (events - self.events)

    @property
    def fixed(self) -> float:
        """The seconds that a micro-batch takes apart from its events."""
        return max(0.0, self.expected(0.0))
