"""Counters over time: how fast they grow, and by how much they grew lately."""

from __future__ import annotations

from collections import deque

WINDOW_S = 10.0
"""A rate is the mean of so long: shorter, and batches show as steps; longer, and a stop shows late."""

LATELY_S = 600.0


class Meter:
    """The rate of a counter."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._marks: deque[tuple[float, float]] = deque()

    def mark(self, at: float, value: float) -> float | None:
        """Take a value in; the rate per second, or None while there is nothing to compare it with."""
        if self._marks and value < self._marks[-1][1]:
            self._marks.clear()  # it counts anew: what it had counted before says nothing
        self._marks.append((at, value))
        while len(self._marks) > 2 and self._marks[1][0] <= at - self._window_s:
            self._marks.popleft()
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began) if ended > began else None

    def rest(self) -> None:
        """Nothing counts now: the rate begins anew when something does."""
        self._marks.clear()


class Growth:
    """By how much a counter grew lately. Keeps only moments at which it did."""

    def __init__(self, window_s: float = LATELY_S) -> None:
        self._window_s = window_s
        self._value: float | None = None
        self._steps: deque[tuple[float, float]] = deque()

    def mark(self, at: float, value: float) -> None:
        """Take a value in. The first one is where it begins: when it was counted is not known."""
        before, self._value = self._value, value
        if before is not None and value > before:
            self._steps.append((at, value - before))
        while self._steps and self._steps[0][0] < at - self._window_s:
            self._steps.popleft()

    @property
    def total(self) -> float:
        """By how much."""
        return sum(step for _, step in self._steps)

    @property
    def since(self) -> float | None:
        """When it began to."""
        return self._steps[0][0] if self._steps else None
