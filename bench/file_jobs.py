"""Jobs from files to files, each measured as a process from its start to its exit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.data import QUERY, SCHEMA
from bench.turns import median_seconds

Command = Callable[[Path], list[str]]
"""The command of a contender, given the directory that it writes into."""


def document(source: Path, sinks: list[str], *more: str) -> str:
    """The job as a Penstock document, with sinks and additional fields of `spec` as lines of YAML."""
    fields = [*more, "sinks:", *(f"  - {sink}" for sink in sinks)]
    return f"""
kind: Pipeline
metadata: {{name: bench}}
spec:
  source: {{type: file, path: {source}, format: json, finite: true, schema: "{SCHEMA}"}}
  processors:
    - type: sql
      query: {QUERY}
""" + "".join(f"  {line}\n" for line in fields)


def penstock_run(work: Path, document: Callable[[Path], str]) -> Command:
    """`penstock run` of a document that is created for its output directory."""
    file = work / "bench.yaml"

    def command(target: Path) -> list[str]:
        file.write_text(document(target))
        return [sys.executable, "-m", "penstock.cli.main", "run", str(file), "--home", str(work / "home")]

    return command


def job(name: str, source: Path, *more: Path) -> Command:
    """A job of `bench.jobs`."""
    return lambda target: [sys.executable, "-m", f"bench.jobs.{name}", *map(str, (source, target, *more))]


def compare(
    work: Path, contenders: Mapping[str, Command], counted: Callable[[Path], dict[str, int]], expected: int
) -> dict[str, float]:
    """The median seconds of each contender; `counted` returns the number of events in each of its outputs."""

    def run(command: Command) -> float:
        target = work / "out"
        for leftover in (target, work / "checkpoint", work / "home"):
            shutil.rmtree(leftover, ignore_errors=True)
        began = time.monotonic()
        ended = subprocess.run(command(target), capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"{ended.args}: exit status {ended.returncode}\n{ended.stderr}")
        seconds = time.monotonic() - began
        for output, written in counted(target).items():
            if written != expected:
                raise SystemExit(f"{written} events in {output}, not {expected}")
        return seconds

    return median_seconds({name: lambda c=command: run(c) for name, command in contenders.items()})


def json_lines(target: Path) -> dict[str, int]:
    """The number of events in the JSON files below a directory."""
    return {"the output": sum(sum(1 for _ in file.open()) for file in target.rglob("*.json"))}
