"""Three sinks under a commit policy, compared with a hand-written query that writes the same outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.dataset as ds

from bench.data import FORMATS, events
from bench.file_jobs import compare, document, job, penstock_run
from bench.turns import AGAIN, ROUNDS, speed_table

EVENTS = 4_000_000
HAND_WRITTEN = "hand-written PySpark"


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """Run both in turn, for several rounds. Returns the lines of a report."""
    source = work / "events"
    print(f"making {count:,} events…", file=sys.stderr)
    expected = events(source, count)
    by_hand = job("pyspark_three", source, work / "checkpoint")
    contenders = {
        "penstock run, three sinks": penstock_run(work, lambda target: _document(source, target)),
        HAND_WRITTEN: by_hand,
        HAND_WRITTEN + AGAIN: by_hand,
    }
    return [
        f"{count:,} events, {expected:,} pass, into JSON, CSV and Parquet files; micro-batches of 128 MiB of "
        f"input; whole process, median of {ROUNDS}",
        "",
        *speed_table(compare(work, contenders, _written, expected), count, HAND_WRITTEN),
    ]


def _document(source: Path, target: Path) -> str:
    sinks = [f"{{id: {name}, type: file, path: {target / name}, format: {name}}}" for name in FORMATS]
    batch = "batch: {max_bytes: 33554432, max_inflight: 4}"
    return document(source, sinks, batch, "commit_policy: {mode: all}")


def _written(target: Path) -> dict[str, int]:
    files = {name: [str(path) for path in (target / name).rglob(f"*.{name}")] for name in FORMATS}
    return {f"the {name} files": ds.dataset(found, format=name).count_rows() for name, found in files.items()}
