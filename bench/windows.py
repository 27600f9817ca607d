"""A tumbling window that counts events by a unique key: the state is as large as the number of events.

Penstock takes turns with the same query, hand-written in PySpark, over the same source in the same session.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SIZES = (1_000_000, 4_000_000)

BATCH, IN_FLIGHT = 10_000, 48

MIB = 1024 * 1024

LATER = "timestamp_millis(1893456000000)"
"""A time past the end of all windows. The hand-written query closes them with an event of that time."""


@dataclass(frozen=True)
class Result:
    """The figures of one complete run."""

    events: int
    counting_s: float
    """Seconds until the last event is counted; all windows are open."""
    closing_s: float
    """Seconds from then until all windows are closed and delivered."""
    processor_s: float
    """Processor seconds of this process and all processes that it has started, for both parts."""
    memory: int
    disk: int


def measure(work: Path) -> list[str]:
    """Run each size once with each contender, after a small warm-up run. Returns the lines of a report."""
    from penstock.engine.runtime.session import open_session
    from penstock.settings import load

    home = work / "windows"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    contenders: dict[str, Callable[[Any, Path, int], Result]] = {
        "PySpark by hand": _by_hand,
        "PySpark by hand again (A/A)": _by_hand,
        "Penstock": _penstock,
    }
    spark = open_session(load({"home": home}, env={}, cwd=home).settings)
    lines = [
        "Generated events, each with a key of its own, counted in one window and delivered to `drop`. Load "
        f"{os.getloadavg()[0]:.0f} at the start.",
        "",
        "| events and keys | | counted, events/s | to by hand | closed, windows/s "
        "| µs of processor time an event | to by hand | state in memory | on disk |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    try:
        for run in (_by_hand, _penstock):
            run(spark, home / run.__name__, 100_000)
        ours = []
        for size in SIZES:
            results = {
                name: run(spark, home / f"{size}-{number}", size)
                for number, (name, run) in enumerate(contenders.items())
            }
            base = results["PySpark by hand"]
            lines += [_row(name, result, base) for name, result in results.items()]
            ours.append(results["Penstock"])
    finally:
        spark.stop()
    growth = (ours[-1].processor_s / ours[-1].events) / (ours[0].processor_s / ours[0].events)
    times = SIZES[-1] / SIZES[0]
    return [*lines, "", f"{times:.0f} times the state: {growth:.2f} times the processor time an event."]


def _row(name: str, result: Result, base: Result) -> str:
    print(f"{name}, {result.events:,}: {result}", file=sys.stderr)
    return (
        f"| {result.events:,} | {name} | {result.events / result.counting_s:,.0f} "
        f"| {base.counting_s / result.counting_s:.2f} | {result.events / result.closing_s:,.0f} "
        f"| {result.processor_s / result.events * 1e6:.1f} | {result.processor_s / base.processor_s:.2f} "
        f"| {result.memory / MIB:,.0f} MiB | {result.disk / MIB:,.0f} MiB |"
    )


def _by_hand(spark: Any, directory: Path, count: int) -> Result:
    from pyspark.sql import functions as f

    from penstock.connectors.generate_planner import EVENTS, reading
    from penstock.spark.planned_source import FORMAT, options
    from penstock.specs.policies import Batch

    def deliver(windows: Any, _: int) -> None:
        nonlocal delivered
        delivered += windows.count()

    session = spark.newSession()
    source = reading(None, count + 1, Batch(max_events=BATCH, max_inflight=IN_FLIGHT))
    events = session.readStream.format(FORMAT).options(**options(session, source)).schema(EVENTS).load()
    at = f"if(seq = {count}, {LATER}, timestamp_millis(1767225600000 + seq % 3600000)) AS at"
    events = events.selectExpr("seq AS id", at).withWatermark("at", "0 seconds")
    windows = events.groupBy(f.window("at", "1 hour"), "id").agg(f.count("*").alias("n"))
    writer = windows.writeStream.foreachBatch(deliver).option("checkpointLocation", str(directory))
    delivered, used, began = 0, _processor_s(), time.monotonic()
    query = writer.trigger(availableNow=True).start()
    counted_at, state, disk = began, {}, 0
    while query.isActive:
        progress = [json.loads(each.json) for each in query.recentProgress]
        if sum(each["numInputRows"] for each in progress) > count and not state:
            counted_at, state = time.monotonic(), progress[-1]["stateOperators"][0]
            disk = _size(directory)
        time.sleep(0.05)
    ended = time.monotonic()
    if query.exception() or delivered != count or not state:
        raise SystemExit(f"{delivered} windows of {count}: {query.exception()}")
    return Result(
        count,
        counted_at - began,
        ended - counted_at,
        _processor_s() - used,
        state["memoryUsedBytes"],
        disk,
    )


def _penstock(spark: Any, directory: Path, count: int) -> Result:
    from penstock.engine.plan.flow import resolve_flow
    from penstock.engine.plan.plan import plan_run
    from penstock.engine.runtime.counters import Counters
    from penstock.engine.runtime.run import Run
    from penstock.frames.site import Site
    from penstock.policy import UNRESTRICTED

    row = {"id": "seq", "at": "timestamp_millis(1767225600000 + seq % 3600000)"}
    step = {"type": "window", "time": "at", "size": "1h", "keys": ["id"], "aggregates": {"n": "count(*)"}}
    document = {
        "kind": "Pipeline",
        "metadata": {"name": "bench"},
        "spec": {
            "source": {"type": "generate", "count": count, "row": row},
            "processors": [step],
            "sinks": [{"type": "drop"}],
            "batch": {"max_events": BATCH, "max_inflight": IN_FLIGHT},
        },
    }
    site = Site(
        "pipeline:bench:1",
        1,
        _no_stream,
        "bench.in",
        dead="bench.dead",
        state=directory / "state",
        policy=UNRESTRICTED,
    )
    flow = resolve_flow(document, lambda kind, name: None, site)
    counters = Counters({"drop": "at-least-once"})
    run = Run(plan_run(flow, spark), str(directory / "checkpoint"), counters)
    used, began = _processor_s(), time.monotonic()
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
    return Result(
        count,
        counted_at - began,
        ended - counted_at,
        _processor_s() - used,
        state["memoryUsedBytes"],
        disk,
    )


def _progress(run: Any) -> dict[str, Any]:
    last = run._query.lastProgress
    return json.loads(last.json) if last is not None else {}


def _processor_s() -> float:
    """The processor time of this process and all processes that it has started, running or ended."""
    me = psutil.Process()
    used = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            used += sum(process.cpu_times()[:4])
        except psutil.Error:  # it has just ended, and its time counts for its parent
            continue
    return used


def _size(directory: Path) -> int:
    """The size of all files in a directory, ignoring files that are deleted meanwhile."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def _no_stream(name: str) -> Any:
    raise LookupError(name)
