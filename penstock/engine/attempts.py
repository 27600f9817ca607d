"""How often a batch is tried, and how long in between."""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from penstock.engine.failures import failure_of
from penstock.engine.frame import Frame, work_of
from penstock.errors import Backpressure, Retryable
from penstock.specs.policies import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        self.renew()

    def renew(self) -> None:
        """Let the time for the attempts begin now."""
        self.deadline = time.monotonic() + self.effort.deadline_ms / 1000

    def run(self, once: Callable[[], T]) -> T:
        """Try until it works, or raise why it does not: out of attempts, out of time, or hopeless."""
        failures = passing = 0
        while True:
            try:
                return once()
            except Backpressure as error:
                self.deadline += error.retry_after  # it is there, and says when to come back
                if self.pause(error.retry_after):
                    raise
            except Exception as error:
                failure = failure_of(error)
                self.failed(error)
                if failure.passing:  # no fault of the sink, so no attempt and no time of it
                    passing += 1
                    self.renew()
                    if self.pause(backoff_s(self.effort, passing)):
                        raise
                    continue
                failures += 1
                wait = backoff_s(self.effort, failures)
                late = time.monotonic() + wait >= self.deadline
                if failures > self.effort.retries or late or failure.fatal or self.pause(wait):
                    raise


@dataclass
class Try:
    """One attempt, and whether Spark or the sink takes its time."""

    spark: SparkSession
    frame: Frame
    attempts: Attempts
    tag: str = field(default_factory=lambda: f"penstock-{uuid.uuid4().hex}")
    """Of its jobs in Spark. To cancel them must not reach the next attempt."""
    computing: bool = False
    """Whether its batch is being computed, or is about to be, so that the deadline does not count."""
    interrupted: bool = False
    _done: int = 0
    _credited_s: float = 0.0

    @contextlib.contextmanager
    def tagged(self) -> Iterator[None]:
        """Tag the jobs of this thread."""
        context = self.spark.sparkContext
        context.addJobTag(self.tag)
        try:
            yield
        finally:
            context.removeJobTag(self.tag)

    def compute(self) -> None:
        """Let Spark compute the batch, however long that takes; the deadline counts from its end."""
        if self.frame.computed:
            return
        self.computing = True
        try:
            self.frame.compute()
        finally:
            self.attempts.renew()
            self.computing = False

    def gets_on(self) -> bool:
        """Whether it may go on although it is past its deadline: Spark has taken the time, or takes it.

        A job that reads a batch which was not computed before may compute it, or wait for the outside in its
        tasks. It is not known which, so such an attempt ends: the batch is computed by itself, then repeated.
        """
        work = work_of(self.spark, self.tag)
        if work.running and (work.done != self._done or not work.active):  # or it waits for a core
            self._done = work.done
            self.attempts.renew()
        elif not self.frame.computed:
            self.attempts.deadline += work.seconds - self._credited_s
            self._credited_s = work.seconds
        late = time.monotonic() >= self.attempts.deadline
        self.computing = late and work.running and not self.frame.computed
        return not late

    def cancel(self) -> None:
        """End its jobs."""
        with contextlib.suppress(Exception):  # Spark itself may be gone
            self.spark.sparkContext.cancelJobsWithTag(self.tag)
