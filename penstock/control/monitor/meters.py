"""Counters over time: by how much they grew lately."""

from __future__ import annotations

from collections import deque

LATELY_S = 600.0


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
