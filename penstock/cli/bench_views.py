"""The report of the command `bench`, as text and as JSON."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

from penstock.cli.output import say, show_table
from penstock.cli.text import count, plural, rate, size
from penstock.engine.measure.advice import Bottleneck
from penstock.engine.measure.comparison import Comparison, median_rate
from penstock.engine.measure.events import Input
from penstock.engine.measure.figures import STAGES, Balance, Figures, StepFigures

FUSED = "fused: Spark runs this step in one job with its neighbors"

Labels = tuple[str, str]


def run_report(
    label: str, given: Input, figures: Figures, found: Bottleneck, start_s: float | None
) -> dict[str, Any]:
    """The report of a single run as JSON."""
    return {
        "document": label,
        "input": _input(given),
        "spark_start_s": None if start_s is None else round(start_s, 3),
        **_figures(figures),
        "bottleneck": asdict(found),
    }


def comparison_report(labels: Labels, given: Input, compared: Comparison) -> dict[str, Any]:
    """The report of a comparison as JSON."""
    first, second = labels
    return {
        "documents": [first, second],
        "input": _input(given),
        "ratio": round(compared.ratio, 4),
        "noise": round(compared.noise, 4),
        "verdict": compared.verdict,
        "runs": {
            "first": [_figures(each) for each in compared.first],
            "again": [_figures(each) for each in compared.again],
            "second": [_figures(each) for each in compared.second],
        },
    }


def _input(given: Input) -> dict[str, Any]:
    return {"kind": given.kind, "about": given.about, "events": given.events, "bytes": given.bytes}


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        **asdict(figures),
        "events_per_second": round(figures.rate, 1),
        "cpu_us_per_event": None if figures.cpu_us is None else round(figures.cpu_us, 3),
        "mismatches": figures.mismatches(),
    }


def show_run(label: str, given: Input, figures: Figures, found: Bottleneck, start_s: float | None) -> None:
    """Print the report of a single run as text."""
    say((label, "bold"), f": {rate(figures.rate)} on {given.about}")
    say(
        f"{count(figures.events)} events in {plural(figures.batches, 'micro-batch')}, {figures.seconds:.2f} s"
        + (f", {size(given.bytes)} in" if given.bytes is not None else "")
        + (f"; Spark started in {start_s:.1f} s, which is not counted" if start_s is not None else "")
    )
    if figures.cpu_us is not None:
        jvm, python = ((s or 0) / figures.events * 1e6 for s in (figures.jvm_cpu_s, figures.python_cpu_s))
        say(f"processor time per event: {figures.cpu_us:.1f} µs (JVM {jvm:.1f} µs, Python {python:.1f} µs)")
    say(_balance(figures.balance))
    say()
    whole = sum(stage.total_ms for stage in figures.stages) or 1.0
    show_table(
        ["STAGE OF A MICRO-BATCH", "SHARE", "MEDIAN", "LONGEST"],
        [
            [
                STAGES[s.name],
                f"{s.total_ms / whole:.0%}",
                f"{s.median_ms:,.0f} ms",
                f"{s.longest_ms:,.0f} ms",
            ]
            for s in figures.stages
        ],
    )
    if figures.steps:
        say()
        show_table(["STEP", "IN", "OUT", "DROPPED", "LETTERS", "TIME"], map(_step, figures.steps))
    say()
    say(("bottleneck: ", "bold"), found.what)
    say(("advice: ", "bold"), found.advice)


def _balance(balance: Balance) -> str:
    left = f"{count(balance.events)} in" + (f" + {count(balance.made)} made" if balance.made else "")
    right = f"{count(balance.out)} out + {plural(balance.letters, 'letter')} + {count(balance.late)} late"
    right += f" + {count(balance.dropped)} dropped"
    if balance.folded:
        right += f" + {count(balance.folded)} in windows"
    return f"{left} {'=' if not balance.missing else '≠'} {right}"


def _step(step: StepFigures) -> list[str]:
    each = step.ms * 1000 / max(1, step.events_in) if step.ms is not None else None
    numbers = (step.events_in, step.events_out, step.dropped, step.letters)
    return [step.id, *map(count, numbers), FUSED if each is None else f"{each:.1f} µs per event"]


def show_comparison(labels: Labels, given: Input, compared: Comparison) -> None:
    """Print the report of a comparison as text."""
    first, second = labels
    say(f"{given.about}, {plural(len(compared.first), 'round')} alternating; medians:")
    rows = ((first, compared.first), (f"{first} again (A/A)", compared.again), (second, compared.second))
    base = median_rate(compared.first)
    show_table(
        ["VERSION", "SECONDS", "EVENTS/S", "CPU PER EVENT", "OUT", "LETTERS", "RATIO"],
        [
            [
                label,
                f"{statistics.median(run.seconds for run in runs):.2f}",
                count(median_rate(runs)),
                f"{statistics.median(run.cpu_us or 0 for run in runs):.1f} µs",
                count(runs[-1].balance.out),
                count(runs[-1].balance.letters),
                f"{median_rate(runs) / base:.2f}",
            ]
            for label, runs in rows
        ],
    )
    say()
    verdict = {"faster": "bold green", "slower": "bold red"}.get(compared.verdict, "bold")
    say(
        (compared.verdict, verdict),
        f": {second} is {compared.ratio:.2f} times as fast as {first}; runs of {first} differ by a factor of "
        f"{compared.noise:.2f}",
    )
