"""Health check of a session's JVM: it responds, and does not spend all its time on garbage collection."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.spark.driver import is_alive
from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("java") / "GarbageTime.java"

BEAT_S = 1.0

SUSPECT_S = 5.0
"""Seconds without progress after which a JVM is suspected: a full collection of a large heap takes less."""

STARTING_S = 120.0
"""Seconds that the first response may take: the class for it may have to be compiled."""

GARBAGE_SHARE = 0.9
"""The fraction of time spent on garbage collection above which a JVM counts as stuck."""

Ailment = Literal["silent", "garbage"]

SENTENCES: dict[Ailment, str] = {
    "silent": "its JVM isn't responding",
    "garbage": "its JVM does little but collect garbage, because its memory is full",
}
"""Descriptions of an ailment, to be appended to a sentence about a worker."""


class Heartbeat:
    """Calls the JVM every second in a separate thread; `on_stuck` is called once, by another thread.

    Time counts only while this process is running: a pause of the whole machine is not an ailment.
    """

    def __init__(self, spark: SparkSession, limit_s: float, on_stuck: Callable[[Ailment], object]) -> None:
        self._spark, self._limit_s, self._on_stuck = spark, limit_s, on_stuck
        self._answers: deque[tuple[float, float]] = deque()
        """The times of the JVM's responses, and the total seconds of garbage collection at each."""
        self._silent_s = 0.0

    def start(self) -> None:
        """Start both threads."""
        threading.Thread(target=self._ask, name="heartbeat", daemon=True).start()
        threading.Thread(target=self._watch, name="heartbeat watch", daemon=True).start()

    def ailment(self, seconds: float = SUSPECT_S) -> Ailment | None:
        """The ailment that the JVM has had for `seconds`, if any."""
        answers = list(self._answers)
        if self._silent_s >= (seconds if answers else STARTING_S):
            return "silent"
        earlier = [each for each in answers if answers[-1][0] - each[0] >= seconds]
        if earlier:
            (begin, before), (end, now) = earlier[-1], answers[-1]
            if now - before > GARBAGE_SHARE * (end - begin):
                return "garbage"
        return None

    def _ask(self) -> None:
        with contextlib.suppress(Exception):  # the JVM has ended, which is detected elsewhere
            while is_alive(self._spark):
                garbage_s = java_class(self._spark, SOURCE).millis() / 1000
                self._answers.append((time.monotonic(), garbage_s))
                while self._answers[-1][0] - self._answers[0][0] > 2 * self._limit_s:
                    self._answers.popleft()
                time.sleep(BEAT_S)

    def _watch(self) -> None:
        seen = None
        while is_alive(self._spark):
            time.sleep(BEAT_S)
            last = self._answers[-1] if self._answers else None
            self._silent_s = self._silent_s + BEAT_S if last == seen else 0.0
            seen = last
            if ailment := self.ailment(self._limit_s):
                self._on_stuck(ailment)
                return
