"""JSON lines → filter and project → JSON lines, with `penstock run` and with other tools."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from bench import bento
from bench.data import events
from bench.file_jobs import Command, compare, document, job, json_lines, penstock_run
from bench.turns import AGAIN, ROUNDS, speed_table

EVENTS = 4_000_000
HAND_WRITTEN = "hand-written PySpark"


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """Run all contenders in turn, for several rounds. Returns the lines of a report."""
    source = work / "events"
    print(f"making {count:,} events…", file=sys.stderr)
    expected = events(source, count)
    size = sum(f.stat().st_size for f in source.glob("part-*"))
    medians = compare(work, _contenders(work, source), json_lines, expected)
    return [
        f"{count:,} events of {size / count:.0f} bytes, {expected:,} pass; whole process, median of {ROUNDS}",
        "",
        *speed_table(medians, count, HAND_WRITTEN),
    ]


def _contenders(work: Path, source: Path) -> dict[str, Command]:
    checkpoint = work / "checkpoint"
    found = {
        "penstock run": penstock_run(
            work, lambda target: document(source, [f"{{type: file, path: {target}, format: json}}"])
        ),
        HAND_WRITTEN: job("pyspark_stream", source, checkpoint),
        HAND_WRITTEN + AGAIN: job("pyspark_stream", source, checkpoint),
    }
    for module, name in (("duckdb", "duckdb_copy"), ("bytewax", "bytewax_flow")):
        if importlib.util.find_spec(module):
            found[module] = job(name, source)
    if bento.installed():
        found["bento"] = bento.command("bento_filter.yaml", source)
    return found
