"""A script on V8: how fast events are filtered and mapped, by one process and by a pipeline."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from bench.data import SCHEMA, batch
from bench.product import Product, product
from bench.streams import OUTPUT, QUERY
from penstock.connectors.base import Site
from penstock.processors.base import EVENT, Desk, Stage, Work
from penstock.processors.columns import as_struct
from penstock.processors.javascript import JavascriptProcessor
from penstock.processors.js.sandbox import close_all
from penstock.specs.policies import Batch
from penstock.streams.home import StreamPlace

SCRIPT = """
const gross = amount => Math.round(amount * 119) / 100

function processBatch(events) {
  return events
    .filter(event => event.ok && event.amount > 50)
    .map(event => ({id: event.id, user: event.user, gross: gross(event.amount), at: event.at}))
}
"""
EVENTS = 2_000
"""In a batch."""
MOST = 1_000_000
ROUNDS = 3
KNOWN = pa.struct([("offset", pa.int64()), ("batch", pa.string())])
"""Enough of the hidden column for a script that does not look at it."""


def measure(work: Path, count: int) -> list[str]:
    """The lines of a report."""
    alone = _alone()
    with product(work / "javascript-home", workers=1) as running:
        return [*alone, "", *_pipelines(running, min(count, MOST))]


def _alone() -> list[str]:
    """The step itself: one process for Arrow, one for V8, and no Spark."""
    events = batch(EVENTS)
    hidden = pa.array([{"offset": i} for i in range(EVENTS)], KNOWN)
    whole = pa.RecordBatch.from_arrays([*events.columns, hidden], names=[*events.schema.names, EVENT])
    step = _step(events)
    rates, processors = [], []
    for round_ in range(ROUNDS + 1):
        began, used = time.monotonic(), _cpu_s()
        for _ in range(200):
            step(whole)
        if round_:  # the first compiles the script
            rates.append(200 * EVENTS / (time.monotonic() - began))
            processors.append((_cpu_s() - used) / (200 * EVENTS))
    close_all()
    return [
        f"Batches of {EVENTS:,} events of about 200 bytes, filtered and mapped by a script, without Spark: "
        f"{statistics.median(rates):,.0f} events/s, {statistics.median(processors) * 1e6:.1f} µs of processor"
        f" time an event in both processes together, median of {ROUNDS}."
    ]


def _step(events: pa.RecordBatch) -> Work:
    def nowhere(id: str) -> StreamPlace:
        raise LookupError(id)

    processor = JavascriptProcessor.model_validate({"inline": SCRIPT, "schema": OUTPUT})
    processor.output(as_struct(events.schema), Stage("bench", Site("bench", 0, nowhere, "bench.in"), Batch()))
    return processor.open(Desk("bench", "bench"))


def _cpu_s() -> float:
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (me, *me.children()))


def _pipelines(running: Product, count: int) -> list[str]:
    running.create("Stream", "source", {"schema": SCHEMA, "wal": {"max_segments": 1000}})
    passing = _fill(running, count)
    steps: dict[str, dict[str, Any]] = {
        "stream → javascript → stream": {"type": "javascript", "inline": SCRIPT, "schema": OUTPUT},
        "stream → sql → stream": {"type": "sql", "query": QUERY},
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for round_ in range(ROUNDS + 1):
        for i, (name, step) in enumerate(steps.items()):
            seconds = _timed(running, f"job-{round_}-{i}", step, passing)
            if round_:  # the first warms Spark up
                times[name].append(seconds)
    lines = [
        f"{count:,} such events through a pipeline, {passing:,} pass; on a warm worker, from its start to "
        f"the last event, median of {ROUNDS}:",
        "",
        "| | seconds | events/s |",
        "|---|---|---|",
    ]
    medians = {name: statistics.median(found) for name, found in times.items()}
    return lines + [
        f"| {name} | {seconds:.1f} | {count / seconds:,.0f} |" for name, seconds in medians.items()
    ]


def _fill(running: Product, count: int) -> int:
    """Put events into the stream; how many of them pass."""
    passing = 0
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    for first in range(0, count, EVENTS):
        events = batch(min(EVENTS, count - first), first)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, events.schema) as stream:
            stream.write_batch(events)
        body = sink.getvalue().to_pybytes()
        running.client.post("/streams/source/events", content=body, headers=kind).raise_for_status()
        judged = zip(events.column("ok").to_pylist(), events.column("amount").to_pylist(), strict=True)
        passing += sum(ok and amount > 50 for ok, amount in judged)
    return passing


def _timed(running: Product, name: str, step: dict[str, Any], passing: int) -> float:
    running.create("Stream", f"{name}-out", {"schema": OUTPUT, "wal": {"max_segments": 1000}})
    spec = {
        "source": {"type": "stream", "stream": "source"},
        "batch": {"max_events": EVENTS},
        "processors": [step],
        # A cold start on a busy machine is slow, and no failure.
        "sinks": [{"type": "stream", "stream": f"{name}-out", "deadline_ms": 300_000}],
    }
    began = time.monotonic()
    running.create("Pipeline", name, spec)
    while running.next_offset(f"{name}-out") < passing:
        pipeline = running.client.get(f"/pipelines/{name}").json()
        if pipeline["status"] == "failed":
            raise SystemExit(f"{name}: {pipeline['error']}")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    running.client.delete(f"/pipelines/{name}").raise_for_status()
    return seconds
