"""How often a batch is tried, and how long in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.engine.failures import failure_of
from penstock.errors import Backpressure, Retryable
from penstock.specs.policies import Effort

T = TypeVar("T")

LONGEST_S = 60.0
"""Waits double no further."""


class Overdue(Retryable):
    """A sink has not acknowledged a batch by its deadline."""

    def __init__(self, effort: Effort) -> None:
        super().__init__(f"no acknowledgement within {effort.deadline_ms} ms")


def backoff_s(effort: Effort, failures: int) -> float:
    """How long to wait after so many failures in a row; chance keeps sinks from coming back all at once."""
    wait = effort.backoff_ms / 1000 * 2.0 ** min(failures - 1, 30)
    return min(wait, LONGEST_S) * random.uniform(0.75, 1.25)


@dataclass
class Attempts:
    """The attempts to deliver one batch to one sink."""

    effort: Effort
    pause: Callable[[float], bool]
    """Waits; true if nobody is to go on after that."""
    failed: Callable[[Exception], None] = lambda _: None
    """Is told of each attempt that failed."""
    deadline: float = field(init=False)
    """On the monotonic clock; grows while the sink asks to wait."""

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.effort.deadline_ms / 1000

    def run(self, once: Callable[[], T]) -> T:
        """Try until it works, or raise why it does not: out of attempts, out of time, or hopeless."""
        failures = 0
        while True:
            try:
                return once()
            except Backpressure as error:
                self.deadline += error.retry_after  # it is there, and says when to come back
                if self.pause(error.retry_after):
                    raise
            except Exception as error:
                failures += 1
                self.failed(error)
                wait = backoff_s(self.effort, failures)
                late = time.monotonic() + wait >= self.deadline
                if failures > self.effort.retries or late or failure_of(error).fatal or self.pause(wait):
                    raise
