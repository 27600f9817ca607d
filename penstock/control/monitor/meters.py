"""Counters over time: their recent growth, and whether batches finish while a backlog grows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

LATELY_S = 600.0


@dataclass
class Headway:
    """Whether a flow makes progress: its backlog since its last batch, or since its first sample."""

    batches: int | None = None
    since: float = 0.0
    backlog: int | None = None
    grows: bool = False
    """Whether the backlog has grown since then."""

    def mark(self, at: float, batches: int, backlog: int | None, active: bool) -> None:
        """Add a sample; `active`: the flow should run. An empty or unknown backlog is not growing."""
        if not active or batches != self.batches or not backlog or self.backlog is None:
            self.batches, self.since, self.backlog = batches, at, backlog
        self.grows = backlog is not None and backlog > (self.backlog or 0)

    def stalled_since(self, at: float, after_s: float) -> float | None:
        """Since when no batch has finished while the backlog grew, if longer than `after_s`."""
        return self.since if self.grows and at - self.since > after_s else None


class Growth:
    """The growth of a counter over a recent window. Stores only the times at which it grew.

    `baseline` is the value before the first one: 0 for a counter that is known to be new. Without it, the
    first value is the baseline, since it is unknown when it was counted.
    """

    def __init__(self, window_s: float = LATELY_S, baseline: float | None = None) -> None:
        self._window_s = window_s
        self._value = baseline
        self._steps: deque[tuple[float, float]] = deque()

    def mark(self, at: float, value: float) -> None:
        """Add a value."""
        before, self._value = self._value, value
        if before is not None and value > before:
            self._steps.append((at, value - before))
        while self._steps and self._steps[0][0] < at - self._window_s:
            self._steps.popleft()

    @property
    def total(self) -> float:
        """The growth over the last minutes."""
        return sum(step for _, step in self._steps)

    @property
    def since(self) -> float | None:
        """The time at which the growth started."""
        return self._steps[0][0] if self._steps else None
