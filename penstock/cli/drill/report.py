"""The report of a drill: the duration of takeovers, and whether the outputs are correct."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.cli.drill.check import Verdict
from penstock.cli.drill.rounds import KINDS, Round
from penstock.cli.drill.subjects import Subject
from penstock.cli.output import say, show_table
from penstock.cli.text import count, plural


@dataclass
class Report:
    """All results of a drill."""

    seed: int
    workers: int
    pipelines: int
    lease_s: float
    planned: int
    rounds: list[Round] = field(default_factory=list)
    events: int = 0
    verdict: Verdict | None = None
    """None: the drill was interrupted before the check."""
    seconds: float = 0.0
    replaced: dict[str, Sequence[str]] = field(default_factory=dict)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def to_json(self) -> dict[str, Any]:
        """The report as JSON."""
        verdict = None if self.verdict is None else {"ok": self.verdict.ok, **asdict(self.verdict)}
        return {
            "seed": self.seed,
            "workers": self.workers,
            "cores": os.cpu_count(),
            "load": round(self.load, 1),
            "lease_s": self.lease_s,
            "pipelines": self.pipelines,
            "replaced": {name: list(parts) for name, parts in self.replaced.items()},
            "seconds": round(self.seconds, 1),
            "planned_rounds": self.planned,
            "rounds": [asdict(each) for each in self.rounds],
            "takeover_s": {kind: figures(self._takeovers(kind)) for kind in (*KINDS, "all")},
            "events": self.events,
            "check": verdict,
        }

    def _takeovers(self, kind: str) -> list[float]:
        return [s for each in self.rounds if kind in (each.kind, "all") for s in each.takeover_s.values()]

    def show(self) -> None:
        """Print the report as text."""
        done = f"{len(self.rounds)} of {self.planned} rounds"
        about = f"{plural(self.pipelines, 'pipeline')} on {plural(self.workers, 'worker')}, seed {self.seed}"
        say(f"{done} in {self.seconds:.0f} s: {about}, lease {self.lease_s:g} s, load {self.load:.1f}")
        say("")
        say("Seconds from a fault to the first batch of a pipeline on another worker:")
        names = ("count", "min", "median", "p90", "max")
        found = {kind: figures(self._takeovers(kind)) for kind in (*KINDS, "all")}
        show_table(
            ["FAULT", "TAKEOVERS", "MIN", "MEDIAN", "P90", "MAX"],
            [[kind, *(_shown(each[name]) for name in names)] for kind, each in found.items() if each],
        )
        say("")
        self._show_verdict()

    def _show_verdict(self) -> None:
        verdict = self.verdict
        if verdict is None:
            say(("not checked", "bold yellow"), ": the drill was interrupted before the check")
            return
        if verdict.ok:
            rows = f"{count(verdict.expected)} rows expected of {count(self.events)} events"
            say(("correct", "bold green"), f": {rows}, each delivered once, and no two writers at once")
            return
        got = f"{count(verdict.delivered)} rows delivered, {count(verdict.expected)} expected"
        say(("NOT CORRECT", "bold red"), f": {got}")
        for each in verdict.findings:
            number = f" {count(each.events)}" if each.events else ""
            say(f"  {each.what.replace('_', ' ')}{number}: {each.pipeline}: {each.message}")


def figures(seconds: Sequence[float]) -> dict[str, float]:
    """The distribution of durations; empty if there are none."""
    if not seconds:
        return {}
    ordered = sorted(seconds)
    return {
        "count": len(ordered),
        "min": ordered[0],
        "median": round(statistics.median(ordered), 2),
        "p90": ordered[math.ceil(0.9 * len(ordered)) - 1],
        "max": ordered[-1],
    }


def replaced_in(subjects: Sequence[Subject]) -> dict[str, Sequence[str]]:
    """Descriptions of the parts that copies replace, by pipeline."""
    return {subject.id: subject.replaced for subject in subjects if subject.replaced}


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"
