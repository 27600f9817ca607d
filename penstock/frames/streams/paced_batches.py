"""The batches of a stream under a latency goal: limits change between micro-batches."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Literal

from penstock.frames.streams.batches import LOOK_S, Batch, Batches, Limits
from penstock.frames.streams.pace import Pace
from penstock.streams.log import Log

LOOKS, LONGEST_LOOK_S = 10, 0.05
"""The number of polls for new events while a micro-batch lingers, and the longest time between two polls:
more would only take processor time."""


class PacedBatches(Batches):
    """Batches whose pace determines the end of the next micro-batch.

    Only the end of a micro-batch depends on the pace. Its batches have the usual limits, or the size returned
    by `share`, which is part of the offset: a micro-batch that is planned again after a restart has the same
    batches.
    """

    def __init__(self, log: Log, limits: Limits, gap: Literal["skip", "fail"], cores: int) -> None:
        assert limits.latency_ms is not None
        super().__init__(log, limits, gap)
        self._declared = limits
        self.pace = Pace(limits.latency_ms / 1000, cores)
        self._share: int | None = None

    def await_end(self, start: int, patience_s: float) -> int:
        self._share = None
        self.pace.asked(time.monotonic(), start, self._log.bounds().next)
        self._begin(start)
        self._look()
        self._choose()
        end = super().await_end(start, patience_s)
        if end > start:
            events = end - start
            tasks = self.pace.planned(now := time.monotonic(), now - self._waited_s, events)
            if tasks > 1:
                self._share = min(math.ceil(events / tasks), self._declared.max_events)
        return end

    def share(self) -> int | None:
        """The batch size that divides the last planned micro-batch among its tasks; None for one task."""
        return self._share

    def between(self, start: int, end: int, max_events: int | None = None) -> list[Batch]:
        return super().between(start, end, max_events or self._declared.max_events)

    def _choose(self) -> None:
        choice = self.pace.choose(self._waited_s)
        limits = replace(self._declared, max_ms=choice.linger_s * 1000)
        if choice.most is not None:
            limits = replace(limits, max_events=choice.most, max_inflight=1)
        self._look_s = min(LONGEST_LOOK_S, max(LOOK_S, choice.linger_s / LOOKS))
        if limits != self._limits:
            self._limits = limits
            self._cut()

    @property
    def _waited_s(self) -> float:
        """The age of the oldest known event that is not planned yet, in seconds."""
        oldest_us = next((run.time_us for run in self._runs if run.lost is None), None)
        return 0.0 if oldest_us is None else max(0.0, time.time() - oldest_us / 1e6)
