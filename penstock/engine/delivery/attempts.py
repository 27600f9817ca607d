"""Attempts to deliver a batch to a sink: their number, the waits between them, and the deadline."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from penstock.connectors.base import SinkWriter
from penstock.engine.runtime.failures import failure_of
from penstock.errors import Backpressure, Retryable
from penstock.spark import jobs
from penstock.specs.policies import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

LONGEST_S = 60.0
"""The longest wait between attempts, in seconds."""


class Overdue(Retryable):
    """A sink has not acknowledged a batch by its deadline."""

    def __init__(self, effort: Effort) -> None:
        super().__init__(f"no acknowledgement within {effort.deadline_ms} ms")


def backoff_s(effort: Effort, failures: int) -> float:
    """Seconds to wait after consecutive failures; randomized, so that sinks do not all retry at once."""
    wait = effort.backoff_ms / 1000 * 2.0 ** min(failures - 1, 30)
    return min(wait, LONGEST_S) * random.uniform(0.75, 1.25)


@dataclass
class Attempts:
    """The attempts to deliver one batch to one sink."""

    effort: Effort
    pause: Callable[[float], bool]
    """Waits for a number of seconds; returns true if no further attempt should be made."""
    failed: Callable[[Exception], None] = lambda _: None
    """Called with the error of each failed attempt."""
    deadline: float = field(init=False)
    """On the monotonic clock; extended by each wait that the sink requests."""

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Restart the deadline of the attempts from now."""
        self.deadline = time.monotonic() + self.effort.deadline_ms / 1000

    def run(self, once: Callable[[], T]) -> T:
        """Call `once` until it succeeds; raises its last error if retries run out or cannot help."""
        failures = passing = 0
        while True:
            try:
                return once()
            except Backpressure as error:
                self.deadline += error.retry_after  # the sink is available, and requests a later retry
                if self.pause(error.retry_after):
                    raise
            except Exception as error:
                failure = failure_of(error)
                self.failed(error)
                if failure.passing:  # not the sink's fault: counts neither as an attempt nor as its time
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


class Attempt:
    """One attempt of a writer, which another thread may interrupt at its deadline.

    An interrupt cancels the writer permanently, and its Spark jobs, if it has `jobs`. `run` returns whether
    the attempt was interrupted; an interrupt has no effect after `run` has returned.
    """

    def __init__(
        self, spark: SparkSession, writer: SinkWriter, attempts: Attempts, *, jobs: bool = True
    ) -> None:
        self._spark, self._writer, self._attempts, self._jobs = spark, writer, attempts, jobs
        self._tag = f"penstock-{uuid.uuid4().hex}"  # one per attempt: a cancel must not reach the next one
        self._guard = threading.Lock()
        self._ended = self._interrupted = False
        self._looked_at, self._done = time.monotonic(), 0

    def run(self, write: Callable[[], T]) -> tuple[T | Exception, bool]:
        """Call `write`; returns its result or error, and whether the attempt was interrupted."""
        outcome: T | Exception
        try:
            with jobs.tagged(self._spark, self._tag) if self._jobs else contextlib.nullcontext():
                outcome = write()
        except Exception as error:
            outcome = error
        with self._guard:
            self._ended = True
            return outcome, self._interrupted

    def look(self) -> None:
        """Interrupt the attempt if it is past its deadline.

        Time in which the sink has no room, or tasks wait for a core, does not count. A finished task restarts
        the deadline.
        """
        now, effort = time.monotonic(), self._attempts.effort
        if self._writer.waiting:
            self._attempts.deadline += now - self._looked_at
        self._looked_at = now
        if self._attempts.deadline - now < effort.deadline_ms / 2000 and self._gets_on():
            self._attempts.renew()
        if self._interrupted or now >= self._attempts.deadline:
            self.interrupt()  # on every call: a job may have started since the last call

    def interrupt(self) -> None:
        """Interrupt the attempt, unless it has ended."""
        with self._guard:
            if self._ended:
                return
            self._interrupted = True
            self._writer.cancel()
        if self._jobs:
            jobs.cancel(self._spark, self._tag)

    def _gets_on(self) -> bool:
        if not self._jobs:
            return False
        try:
            work = jobs.work_of(self._spark, self._tag)
        except Exception:  # Spark itself may be gone
            return False
        before, self._done = self._done, work.done
        return work.running and (work.done != before or not work.active)
