"""A tumbling window that counts events by a key which each has for itself: as much state as events."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIZES = (1_000_000, 4_000_000)

MIB = 1024 * 1024


@dataclass(frozen=True)
class Result:
    """One run to the end."""

    events: int
    counting_s: float
    """Until the last event is counted; all windows are open."""
    closing_s: float
    """From there until all windows are closed and delivered."""
    rows: int
    memory: int
    disk: int


def measure(work: Path) -> list[str]:
    """Count each size once, after a small run that warms up; the lines of a report."""
    from penstock.engine.session import open_session
    from penstock.settings import load

    home = work / "windows"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    spark = open_session(load({"home": home}, env={}, cwd=home).settings)
    try:
        _run(spark, home / "warm", 100_000)
        results = [_run(spark, home / str(size), size) for size in SIZES]
    finally:
        spark.stop()
    lines = [
        "Generated events, each with a key of its own, counted in one window and delivered to `drop`.",
        "",
        "| events and keys | counted, events/s | closed, windows/s | state: rows | in memory | on disk |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.events:,} | {r.events / r.counting_s:,.0f} | {r.events / r.closing_s:,.0f} "
        f"| {r.rows:,} | {r.memory / MIB:,.0f} MiB | {r.disk / MIB:,.0f} MiB |"
        for r in results
    ]
    first, last = results[0], results[-1]
    growth = (last.counting_s + last.closing_s) / (first.counting_s + first.closing_s)
    lines += ["", f"{last.events / first.events:.0f} times the events take {growth:.1f} times as long."]
    return lines


def _run(spark: Any, directory: Path, count: int) -> Result:
    from penstock.connectors.base import Site
    from penstock.engine.counters import Counters
    from penstock.engine.flow import resolve_flow
    from penstock.engine.plan import plan_run
    from penstock.engine.run import Run

    row = {"id": "seq", "at": "timestamp_millis(1767225600000 + seq % 3600000)"}
    step = {"type": "window", "time": "at", "size": "1h", "keys": ["id"], "aggregates": {"n": "count(*)"}}
    document = {
        "kind": "Pipeline",
        "metadata": {"name": "bench"},
        "spec": {
            "source": {"type": "generate", "count": count, "row": row},
            "processors": [step],
            "sinks": [{"type": "drop"}],
            "batch": {"max_events": 10_000},
        },
    }
    site = Site("pipeline:bench:1", 1, _no_stream, "bench.in", dead="bench.dead", state=directory / "state")
    flow = resolve_flow(document, lambda kind, name: None, site)
    counters = Counters({"drop": "at-least-once"})
    run = Run(plan_run(flow, spark), str(directory / "checkpoint"), counters)
    began = time.monotonic()
    run.start()
    counted_at, state, disk = began, {}, 0
    while not run.observe():
        progress = _progress(run)
        if progress.get("stateOperators") and counters.snapshot()["input_events"] == count and not state:
            counted_at, state = time.monotonic(), progress["stateOperators"][0]
            disk = _size(directory / "checkpoint")
        time.sleep(0.05)
    ended = time.monotonic()
    run.close()
    delivered = counters.snapshot()["sinks"]["drop"]["events"]
    if run.failure or delivered != count or not state:
        raise SystemExit(f"{delivered} windows of {count}: {run.failure}")
    print(f"{count:,}: {ended - began:.1f} s", file=sys.stderr)
    return Result(
        count, counted_at - began, ended - counted_at, state["numRowsTotal"], state["memoryUsedBytes"], disk
    )


def _progress(run: Any) -> dict[str, Any]:
    last = run._query.lastProgress
    return json.loads(last.json) if last is not None else {}


def _size(directory: Path) -> int:
    """Of all files that are still there when it is their turn."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def _no_stream(id: str) -> Any:
    raise LookupError(id)
