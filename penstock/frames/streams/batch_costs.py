"""Estimates the cost of micro-batches: a fixed time, and a time per event."""

from __future__ import annotations

import math

LATEST = 0.1
"""The weight of the latest micro-batch in the estimates: about ten micro-batches are remembered."""

SPREAD, FEW, KEPT = 0.5, 10, 0.99
"""Sizes that differ by less than this fraction of their mean, and by this many events, reveal little about
the cost per event: after a slow micro-batch more events wait, so a temporarily slow machine looks the same.
The earlier estimate is then retained, reduced by this factor with each micro-batch."""

SLOWER = 1.01
"""The time of the quickest micro-batch grows by this factor with each further micro-batch."""


class Costs:
    """The time of a micro-batch as a fixed cost and a cost per event, estimated from recent ones."""

    def __init__(self) -> None:
        self.count = 0
        self.per_event = 0.0
        self.deviation = 0.0
        """The mean difference between the actual and the expected time of a micro-batch, in seconds."""
        self.events = self.seconds = 0.0
        """The mean size in events and the mean time in seconds of a micro-batch."""
        self.quickest = math.inf
        """The shortest time of a recent micro-batch, in seconds."""
        self._variance = self._covariance = 0.0

    def add(self, events: float, seconds: float) -> None:
        """Add a micro-batch; with several tasks, `events` are those of one task."""
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
        """The fixed cost of a micro-batch in seconds."""
        return max(0.0, self.expected(0.0))
