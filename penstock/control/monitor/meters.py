"""Counters over time: how fast they grow, and by how much they grew lately."""

from __future__ import annotations

from collections import deque

WINDOW_S = 10.0
"""Seconds over which a rate is averaged: with fewer, batches show as steps; with more, a stop shows late."""

LATELY_S = 600.0


class Meter:
    """The rate of a counter."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._marks: deque[tuple[float, float]] = deque()

    def mark(self, at: float, value: float) -> float | None:
        """Add a value; the rate per second, or None without an earlier value to compare with."""
        if self._marks and value < self._marks[-1][1]:
            self._marks.clear()  # the counter was reset: earlier values do not apply
        self._marks.append((at, value))
        while len(self._marks) > 2 and self._marks[1][0] <= at - self._window_s:
            self._marks.popleft()
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began) if ended > began else None

    def rest(self) -> None:
        """Reset the rate, while nothing counts."""
        self._marks.clear()


class Growth:
    """By how much a counter grew lately. Keeps only moments at which it did.

    `baseline` is the value before the first one: 0 for a counter that is known to be new. Without it the
    first value is the baseline, since it is not known when it was counted.
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
        """The time at which the growth began."""
        return self._steps[0][0] if self._steps else None
