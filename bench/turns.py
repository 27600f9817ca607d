"""Contenders that take turns, so that a slowdown of the machine affects all of them."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

ROUNDS = 3
AGAIN = " again (A/A)"
"""Marks the second row of a contender that is measured twice: the difference between both is noise."""

T = TypeVar("T")


def take_turns(
    contenders: Mapping[str, Callable[[], T]], rounds: int = ROUNDS, warm_up: Collection[str] | None = None
) -> dict[str, list[T]]:
    """The figures of each contender by round. The first round warms up and is not counted.

    With `warm_up`, only these contenders run in the first round.

    Each round has its own order, the same in each run: a contender benefits from caches and compiled code of
    the previous contender, which must not always be the same.
    """
    figures: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        names = [name for name in contenders if number or warm_up is None or name in warm_up]
        random.Random(number).shuffle(names)
        for name in names:
            found = contenders[name]()
            shown = f"{found:.2f} s" if isinstance(found, float) else str(found)
            print(f"round {number} of {rounds}: {name}: {shown}", file=sys.stderr)
            if number:
                figures[name].append(found)
    return figures


def median_seconds(contenders: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, float]:
    """The median of the seconds that each contender takes."""
    return {name: statistics.median(taken) for name, taken in take_turns(contenders, rounds).items()}


def speed_table(seconds: Mapping[str, float], count: int, base: str) -> list[str]:
    """A Markdown table of contenders that process `count` events, with their speed relative to `base`."""
    lines = [f"| | seconds | events/s | speed to {base} |", "|---|---|---|---|"]
    return lines + [
        f"| {name} | {taken:.1f} | {count / taken:,.0f} | {seconds[base] / taken:.2f} |"
        for name, taken in seconds.items()
    ]
