"""The figures of one measured run, and whether its events add up."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.plurals import plural

STAGES = {
    "latestOffset": "look for events",
    "getBatch": "get the batch",
    "queryPlanning": "plan",
    "walCommit": "log the offsets",
    "compute": "compute",
    "deliver": "deliver to the shadow",
    "commitOffsets": "commit",
    "other": "other",
}
"""The stages of a micro-batch in order: Spark's names, and their descriptions."""


@dataclass(frozen=True)
class Stage:
    """The time of one stage, over all micro-batches."""

    name: str
    total_ms: float
    median_ms: float
    longest_ms: float


@dataclass(frozen=True)
class StepFigures:
    """The figures of a processor."""

    id: str
    events_in: int
    events_out: int
    dropped: int
    letters: int
    ms: float | None
    """Time in its Python processes; None if Spark runs it in one job with adjacent steps."""
    folds: bool
    """Whether it aggregates its input into other events, as a window does."""


@dataclass(frozen=True)
class Balance:
    """The account of the events that were read: `events + made = out + letters + … + folded`."""

    events: int
    made: int
    """Events that steps produced in addition to their input, such as rows of a window."""
    out: int
    letters: int
    late: int
    dropped: int
    folded: int
    """Events that were aggregated into windows."""

    @property
    def missing(self) -> int:
        """Events that are unaccounted for; negative if there are more than expected."""
        gone = self.out + self.letters + self.late + self.dropped + self.folded
        return self.events + self.made - gone


@dataclass(frozen=True)
class Figures:
    """The figures of one run over the input."""

    seconds: float
    """The duration of the query, from start to end."""
    events: int
    """The number of events that the engine has read."""
    counted: int | None
    """The number of events in the input, counted without the engine; None if the source can't be counted."""
    batches: int
    jvm_cpu_s: float | None
    """Processor time of the JVM; None, like `python_cpu_s`, if the flow ran on another machine."""
    python_cpu_s: float | None
    stages: list[Stage]
    steps: list[StepFigures]
    balance: Balance

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds if self.seconds else 0.0

    @property
    def cpu_us(self) -> float | None:
        """Microseconds of processor time per event."""
        if self.jvm_cpu_s is None or self.python_cpu_s is None or not self.events:
            return None
        return (self.jvm_cpu_s + self.python_cpu_s) / self.events * 1e6

    def mismatches(self) -> list[str]:
        """Descriptions of contradicting counts; empty if every event is accounted for."""
        found = []
        if self.counted is not None and self.counted != self.events:
            found.append(f"the input has {plural(self.counted, 'event')}, but the engine read {self.events}")
        if self.balance.missing:
            found.append(f"{self.balance.missing} of {self.balance.events} events are not accounted for")
        return found


def stage_of(name: str, ms: Sequence[float]) -> Stage:
    """The figures of a stage, from its milliseconds in each micro-batch."""
    return Stage(name, sum(ms), statistics.median(ms), max(ms))


def steps_of(ops: Mapping[str, Any], folds: Mapping[str, bool]) -> list[StepFigures]:
    """The figures of the processors, in the order of `folds`, which has their ids."""
    counted = ops["processors"]
    return [
        StepFigures(
            step,
            counts["in"],
            counts["out"],
            counts["dropped"],
            counts["errors"],
            None if counts["shared"] else counts["ms"],
            folded,
        )
        for step, folded in folds.items()
        if (counts := counted.get(step)) is not None
    ]


def balance_of(ops: Mapping[str, Any], steps: Sequence[StepFigures], *, routed: bool) -> Balance:
    """The balance by the engine's counters; if events are `routed`, the last step has the output count."""
    events, sinks = ops["input_events"], list(ops["sinks"].values())
    last = steps[-1].events_out if steps else sinks[0]["events"]
    made = folded = late = dropped = 0
    for step in steps:
        if step.folds:
            made += step.events_out
            late += step.dropped
            folded += step.events_in - step.dropped - step.letters
        else:
            made += max(0, step.events_out + step.dropped + step.letters - step.events_in)
            dropped += step.dropped
    out = last if routed else sinks[0]["events"]
    return Balance(events, made, out, ops["dead_letters"], late, dropped, folded)
