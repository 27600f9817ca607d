"""The check of a drill: compares outputs with the truth, and finds traces of concurrent writers."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from penstock.cli.drill.subjects import Subject, canonical

SHOWN = 5
"""Rows that are shown as examples in a finding."""

What = Literal["lost", "repeated", "unknown", "two_writers", "not_taken_over"]


@dataclass(frozen=True)
class Finding:
    """A violation that the check has found."""

    what: What
    pipeline: str
    message: str
    events: int = 0


@dataclass(frozen=True)
class Verdict:
    """The result of a check."""

    expected: int
    delivered: int
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def check_outputs(root: Path, subjects: Iterable[Subject], written: Mapping[str, int]) -> Verdict:
    """Compare the outputs of all pipelines with the truth, as multisets of rows.

    The truth comes from a model if there is one, otherwise from an undisturbed copy on the same files.
    """
    expected = delivered = 0
    findings: list[Finding] = []
    for subject in subjects:
        for sink in subject.sinks:
            out = root / "out" / subject.id / sink
            truth = root / "truth" / subject.id / sink
            wanted = subject.model(written[subject.id]) if subject.modelled else rows_in(truth)
            got = rows_in(out)
            expected, delivered = expected + wanted.total(), delivered + got.total()
            findings += _compared(f"{subject.id}, sink {sink}", wanted, got)
            findings += _writers(f"{subject.id}, sink {sink}", out)
    return Verdict(expected, delivered, findings)


def rows_in(directory: Path) -> Counter[str]:
    """The rows of all batches that a file sink has made visible."""
    rows: Counter[str] = Counter()
    for file in _batch_files(directory):
        with file.open(encoding="utf-8") as lines:
            rows.update(canonical(json.loads(line)) for line in lines if line.strip())
    return rows


def _batch_files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.glob("penstock_batch=*/*.json") if file.name[0] not in "._")


def _compared(name: str, wanted: Counter[str], got: Counter[str]) -> list[Finding]:
    lost, more = wanted - got, got - wanted
    repeated = Counter({row: times for row, times in more.items() if row in wanted})
    found = []
    kinds: tuple[tuple[What, Counter[str]], ...] = (
        ("lost", lost),
        ("repeated", repeated),
        ("unknown", more - repeated),
    )
    for what, rows in kinds:
        if rows:
            found.append(Finding(what, name, _examples(rows), rows.total()))
    return found


def _examples(rows: Counter[str]) -> str:
    shown = sorted(rows)[:SHOWN]
    rest = f" and {len(rows) - len(shown):,} more" if len(rows) > len(shown) else ""
    return ", ".join(shown) + rest


def _writers(name: str, directory: Path) -> list[Finding]:
    """Findings for batches that became visible out of order: two epochs wrote at the same time."""
    lineages: dict[str, list[tuple[int, int]]] = {}
    for batch in directory.glob("penstock_batch=*"):
        lineage, _, number = batch.name.partition("=")[2].rpartition("-")
        # A rename changes the status of a directory: that is when the batch became visible.
        lineages.setdefault(lineage, []).append((int(number), batch.stat().st_ctime_ns))
    found = []
    for batches in lineages.values():
        batches.sort()
        for (earlier, at), (later, then) in itertools.pairwise(batches):
            if then < at:
                text = f"batch {later} became visible before batch {earlier}"
                found.append(Finding("two_writers", name, text))
    return found


def findings_of_rounds(stepped_back: Sequence[str], stuck: Mapping[int, Sequence[str]]) -> list[Finding]:
    """Findings of the drill itself: epochs that went back, and pipelines that no worker has taken over."""
    found = [Finding("two_writers", text.partition(":")[0], text) for text in stepped_back]
    for number, pipelines in stuck.items():
        for pipeline in pipelines:
            text = f"nothing was delivered on another worker after the fault of round {number}"
            found.append(Finding("not_taken_over", pipeline, text))
    return found
