"""A script on V8: the rate of filtering and mapping events, in one process and in a pipeline."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from bench import bento
from bench.data import OUTPUT, batch, events
from bench.file_jobs import compare, json_lines
from bench.processes import cpu_s
from bench.product import Product, product
from bench.stream_jobs import fill, stream_job
from bench.streams import STEP
from bench.turns import AGAIN, ROUNDS, median_seconds, speed_table
from penstock.frames.columns import as_struct
from penstock.frames.hidden import EVENT
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.processors.base import Desk, Stage, Work
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
EVENTS = 2_000_000
BATCHES = (2_000, 10_000, 50_000)
ALONE = 2_000
"""Events per batch in the measurement without Spark."""
KNOWN = pa.struct([("offset", pa.int64()), ("batch", pa.string())])
"""The part of the hidden column that is required by a script that does not use it."""


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """The lines of a report."""
    alone = _alone()
    with product(work / "javascript-home", workers=1) as running:
        return [*alone, "", *_pipelines(running, work, count)]


def _alone() -> list[str]:
    """The step itself: one process for Arrow, one for V8, and no Spark."""
    made = batch(ALONE)
    hidden = pa.array([{"offset": i} for i in range(ALONE)], KNOWN)
    whole = pa.RecordBatch.from_arrays([*made.columns, hidden], names=[*made.schema.names, EVENT])
    step = _step(made)
    rates, processors = [], []
    for round_ in range(ROUNDS + 1):
        began, used = time.monotonic(), cpu_s(psutil.Process())
        for _ in range(200):
            step(whole)
        if round_:  # the first round compiles the script
            rates.append(200 * ALONE / (time.monotonic() - began))
            processors.append((cpu_s(psutil.Process()) - used) / (200 * ALONE))
    close_all()
    return [
        f"Batches of {ALONE:,} events of about 200 bytes, filtered and mapped by a script, without Spark: "
        f"{statistics.median(rates):,.0f} events/s, {statistics.median(processors) * 1e6:.1f} µs of processor"
        f" time an event in both processes together, median of {ROUNDS}."
    ]


def _step(made: pa.RecordBatch) -> Work:
    def nowhere(name: str) -> StreamPlace:
        raise LookupError(name)

    processor = JavascriptProcessor.model_validate({"inline": SCRIPT, "schema": OUTPUT})
    site = Site("bench", 0, nowhere, "bench.in", policy=UNRESTRICTED)
    processor.output(as_struct(made.schema), Stage("bench", site, Batch()))
    return processor.open(Desk("bench", "bench", policy=UNRESTRICTED))


def _pipelines(running: Product, work: Path, count: int) -> list[str]:
    passing = sum(fill(running, count))
    script = {"type": "javascript", "inline": SCRIPT, "schema": OUTPUT}
    numbers = itertools.count()

    def job(step: dict[str, Any], max_events: int) -> Callable[[], float]:
        batch = {"max_events": max_events}
        return lambda: stream_job(running, f"job-{next(numbers)}", step, passing, batch)

    contenders = {
        f"stream → {name} → stream, batches of {size:,}": job(step, size)
        for size in BATCHES
        for name, step in (("javascript", script), ("sql", STEP))
    }
    again = next(iter(contenders))
    medians = median_seconds({again + AGAIN: contenders[again], **contenders})
    base = f"stream → sql → stream, batches of {BATCHES[1]:,}"
    return [
        f"{count:,} such events through a pipeline, {passing:,} pass; on a warm worker, from its start to "
        f"the last event, median of {ROUNDS}:",
        "",
        *speed_table(medians, count, base),
        *_bento(work, count),
    ]


def _bento(work: Path, count: int) -> list[str]:
    """The script in Bento, from JSON lines to JSON lines; no lines if Bento is not installed."""
    if not bento.installed():
        return []
    source = work / "script-events"
    expected = events(source, count)
    name = "bento, JSON lines → javascript → JSON lines"
    contenders = {name: bento.command("bento_javascript.yaml", source)}
    medians = compare(work, contenders, json_lines, expected)
    return ["", "For scale, a whole process:", "", *speed_table(medians, count, name)]
