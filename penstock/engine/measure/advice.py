"""The bottleneck of a measured run in one sentence, with advice."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.engine.measure.figures import Figures
from penstock.plurals import plural

MANY_LETTERS = 0.05
"""The share of dead letters above which they slow a pipeline down: each is written with its reason."""


@dataclass(frozen=True)
class Bottleneck:
    """The largest part of the time, and how to reduce it."""

    what: str
    advice: str


def bottleneck(figures: Figures, max_events: int) -> Bottleneck:
    """The largest part of the time of a run whose batches hold up to `max_events` events."""
    taken = {stage.name: stage.total_ms for stage in figures.stages}
    whole = sum(taken.values()) or 1.0
    computing, delivering = taken.get("compute", 0.0), taken.get("deliver", 0.0)
    fixed = whole - computing - delivering
    letters = figures.balance.letters / figures.events if figures.events else 0.0
    if letters > MANY_LETTERS:
        return Bottleneck(
            f"{letters:.0%} of the events are dead letters, and each of them is written with its reason",
            "read the letters (`penstock dead-letters ls NAME`) and fix the step or the schema first",
        )
    if fixed > whole / 2:
        each = figures.events / max(1, figures.batches)
        return Bottleneck(
            f"{fixed / whole:.0%} of the time is the fixed cost of {plural(figures.batches, 'micro-batch')} "
            "of "
            f"{each:,.0f} events, not the processing of events",
            "measure with more --events; if the share stays high, raise batch.max_events (now "
            f"{max_events:,})",
        )
    if delivering > whole / 2:
        return Bottleneck(
            f"{delivering / whole:.0%} of the time is the delivery of computed events",
            "use fewer sinks, or drop columns before them",
        )
    timed = [(step.ms, step) for step in figures.steps if step.ms is not None]
    if timed and (slowest := max(timed, key=lambda pair: pair[0]))[0] > computing / 2:
        ms, step = slowest
        return Bottleneck(
            f"the step '{step.id}' takes most of the computing: {ms * 1000 / max(1, step.events_in):.1f} µs "
            "per event in its Python process",
            "filter before it, drop columns it doesn't need, or rewrite it in SQL",
        )
    used = "" if figures.cpu_us is None else f", {figures.cpu_us:.1f} µs of processor time per event"
    return Bottleneck(
        f"{computing / whole:.0%} of the time is computing in Spark: reading, decoding and the SQL steps, "
        f"which Spark runs as one job{used}",
        "filter and drop columns in the first step, or give the worker more cores",
    )
