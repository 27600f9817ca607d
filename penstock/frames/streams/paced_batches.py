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
"""While a micro-batch lingers, new events are looked for this many times, and at least this often: more often
would only take processor time."""


class PacedBatches(Batches):
    """Asks its pace where the next micro-batch ends.

    Only the end of a micro-batch depends on the pace. Its batches have the usual limits, or the size that
    `share` has returned, which is part of the offset: a micro-batch that is planned again after a restart has
    the same batches.
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
        """The size of batches that divides the last planned micro-batch among tasks; None for one task."""
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
        """The age of the oldest event that is known and not planned."""
        oldest_us = next((run.time_us for run in self._runs if run.lost is None), None)
        return 0.0 if oldest_us is None else max(0.0, time.time() - oldest_us / 1e6)
