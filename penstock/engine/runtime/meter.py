"""The growth rate of a counter."""

from __future__ import annotations

from collections import deque

WINDOW_S = 10.0
"""Seconds over which a rate is averaged: shorter shows batches as steps, longer shows a stop too late."""


class Meter:
    """The rate of a counter."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._marks: deque[tuple[float, float]] = deque()

    def mark(self, at: float, value: float) -> float | None:
        """Add a value; returns the rate per second, or None without an earlier value."""
        if self._marks and value < self._marks[-1][1]:
            self._marks.clear()  # the counter was reset: earlier values do not apply
        self._marks.append((at, value))
        while len(self._marks) > 2 and self._marks[1][0] <= at - self._window_s:
            self._marks.popleft()
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began) if ended > began else None

    def rest(self) -> None:
        """Reset the rate while nothing is counted."""
        self._marks.clear()
