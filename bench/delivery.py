"""Three sinks under a commit policy, beside one query that writes the same three outputs by hand."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds

from bench.data import SCHEMA, events

ROUNDS = 3
FORMATS = ("json", "csv", "parquet")


def document(source: Path, target: Path) -> str:
    """The job as a Penstock document."""
    sinks = "\n".join(
        f"    - {{id: {name}, type: file, path: {target / name}, format: {name}}}" for name in FORMATS
    )
    return f"""
kind: Pipeline
metadata: {{name: bench}}
spec:
  source: {{type: file, path: {source}, format: json, finite: true, schema: "{SCHEMA}"}}
  batch: {{max_bytes: 33554432, max_inflight: 4}}
  processors:
    - type: sql
      query: SELECT id, user, round(amount * 1.19, 2) AS gross, at FROM input WHERE ok AND amount > 50
  sinks:
{sinks}
  commit_policy: {{mode: all}}
"""


def measure(work: Path, count: int) -> list[str]:
    """Run both in turn, several rounds; the lines of a report."""
    source = work / "events"
    print(f"making {count:,} events…", file=sys.stderr)
    expected = events(source, count)
    contenders = _contenders(work, source)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(ROUNDS + 1):  # the first round warms the page cache and is not counted
        for name, command in contenders.items():
            seconds = _run(work, command, expected)
            print(f"round {round_}: {name} {seconds:.1f} s", file=sys.stderr)
            if round_:
                times[name].append(seconds)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    base = medians["hand-written PySpark"]
    lines = [
        f"{count:,} events, {expected:,} pass, into JSON, CSV and Parquet files; micro-batches of 128 MiB of "
        f"input; whole process, median of {ROUNDS}",
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
    file = work / "delivery.yaml"

    def penstock(target: Path) -> list[str]:
        file.write_text(document(source, target))
        return [sys.executable, "-m", "penstock.cli.main", "run", str(file), "--home", str(work / "home")]

    def job(target: Path) -> list[str]:
        arguments = [str(source), str(target), str(work / "checkpoint")]
        return [sys.executable, "-m", "bench.jobs.pyspark_three", *arguments]

    return {
        "penstock run, three sinks": penstock,
        "hand-written PySpark": job,
        "hand-written PySpark again (A/A)": job,
    }


def _run(work: Path, command: Callable[[Path], list[str]], expected: int) -> float:
    target = work / "three"
    for leftover in (target, work / "checkpoint", work / "home"):
        shutil.rmtree(leftover, ignore_errors=True)
    began = time.monotonic()
    subprocess.run(command(target), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    for name in FORMATS:
        files = [str(path) for path in (target / name).rglob(f"*.{name}")]
        written = ds.dataset(files, format=name).count_rows()
        if written != expected:
            raise SystemExit(f"{written} events in the {name} files, not {expected}")
    return seconds
