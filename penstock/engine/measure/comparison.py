"""Comparison of two versions of a flow, measured alternately."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.engine.measure.figures import Figures

Verdict = Literal["faster", "slower", "no significant difference"]


@dataclass(frozen=True)
class Comparison:
    """The runs of the first version, of the first version again (A/A), and of the second."""

    first: list[Figures]
    again: list[Figures]
    second: list[Figures]

    @property
    def ratio(self) -> float:
        """The speed of the second version relative to the first."""
        return median_rate(self.second) / median_rate([*self.first, *self.again])

    @property
    def noise(self) -> float:
        """The speed of the first version's fastest run relative to its slowest."""
        rates = [figures.rate for figures in (*self.first, *self.again)]
        return max(rates) / min(rates)

    @property
    def verdict(self) -> Verdict:
        """Whether the second version differs by more than the first differs from itself."""
        if self.ratio > self.noise:
            return "faster"
        return "slower" if self.ratio < 1 / self.noise else "no significant difference"


def compare(first: Callable[[], Figures], second: Callable[[], Figures], rounds: int) -> Comparison:
    """Run both versions in turn: A, B, A again, in each round."""
    found = Comparison([], [], [])
    for _ in range(rounds):
        found.first.append(first())
        found.second.append(second())
        found.again.append(first())
    return found


def median_rate(runs: Sequence[Figures]) -> float:
    """The median of events per second."""
    return statistics.median(figures.rate for figures in runs)
