"""JSON lines → filter and project → JSON lines, through `penstock run` and through others."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.data import SCHEMA, events

ROUNDS = 3


def pipeline(source: Path, target: Path) -> str:
    """The job as a Penstock document."""
    return f"""
kind: Pipeline
metadata: {{name: bench}}
spec:
  source: {{type: file, path: {source}, format: json, finite: true, schema: "{SCHEMA}"}}
  processors:
    - type: sql
      query: SELECT id, user, round(amount * 1.19, 2) AS gross, at FROM input WHERE ok AND amount > 50
  sinks:
    - {{type: file, path: {target}, format: json}}
"""


def measure(work: Path, count: int) -> list[str]:
    """Run every contender in turn, several rounds; the lines of a report."""
    source = work / "events"
    print(f"making {count:,} events…", file=sys.stderr)
    expected = events(source, count)
    size = sum(f.stat().st_size for f in source.glob("part-*"))
    contenders = _contenders(work, source)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(ROUNDS + 1):  # the first round warms the page cache and is not counted
        for name, command in contenders.items():
            seconds = _run(work, command, expected)
            print(f"round {round_}: {name} {seconds:.1f} s", file=sys.stderr)
            if round_:
                times[name].append(seconds)
    medians = {name: statistics.median(t) for name, t in times.items()}
    base = medians["hand-written PySpark"]
    lines = [
        f"{count:,} events of {size / count:.0f} bytes, {expected:,} pass; whole process, median of {ROUNDS}",
        "",
        "| | seconds | events/s | speed to hand-written |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {seconds:.1f} | {count / seconds:,.0f} | {base / seconds:.2f} |"
        for name, seconds in medians.items()
    ]
    return lines


def _contenders(work: Path, source: Path) -> dict[str, Callable[[Path], list[str]]]:
    document = work / "bench.yaml"

    def penstock(target: Path) -> list[str]:
        document.write_text(pipeline(source, target))
        return [sys.executable, "-m", "penstock.cli.main", "run", str(document), "--home", str(work / "home")]

    def job(name: str, *extra: str) -> Callable[[Path], list[str]]:
        return lambda target: [sys.executable, "-m", f"bench.jobs.{name}", str(source), str(target), *extra]

    found = {
        "penstock run": penstock,
        "hand-written PySpark": job("pyspark_stream", str(work / "checkpoint")),
        "hand-written PySpark again (A/A)": job("pyspark_stream", str(work / "checkpoint")),
    }
    for module, name in (("duckdb", "duckdb_copy"), ("bytewax", "bytewax_flow")):
        if importlib.util.find_spec(module):
            found[module] = job(name)
    return found


def _run(work: Path, command: Callable[[Path], list[str]], expected: int) -> float:
    target = work / "out"
    for leftover in (target, work / "checkpoint", work / "home"):
        shutil.rmtree(leftover, ignore_errors=True)
    began = time.monotonic()
    subprocess.run(command(target), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    written = sum(sum(1 for _ in file.open()) for file in target.rglob("*.json"))
    if written != expected:
        raise SystemExit(f"{written} events in the output, not {expected}")
    return seconds
