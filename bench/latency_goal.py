"""HTTP → pipeline → stream with `latency: 200ms` at several rates, and with the default batching.

All pipelines run in the same Penstock, and take turns: while one is measured, the others get no events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.latency import MEASURED_S, WARM_S, Delays, delays, from_stream
from bench.product import Product, product

RATES = (10, 1_000, 50_000)
WARM_RATE = 1_000
GOAL_MS = 200

CONTENDERS: dict[str, dict[str, Any]] = {
    f"latency: {GOAL_MS}ms": {"latency": f"{GOAL_MS}ms"},
    "default batching": {},
    "default batching, again": {},
}


@dataclass(frozen=True)
class Turn:
    """The figures of one pipeline at one rate."""

    delays: Delays
    micro_batches: float
    """Micro-batches per second."""
    cpu: float
    """Processor seconds of the worker and its children per second, including idle pipelines."""
    linger_ms: int | None


def measure(work: Path, rates: Sequence[int] = RATES) -> list[str]:
    """The lines of a report."""
    lines = [
        "HTTP → pipeline → stream, in up to 100 bodies a second on each of up to five connections: from the "
        f"request until the event can be read at the other end. Turns of {MEASURED_S} s.",
        "",
        "| events/s | arrived/s | batching | p50, ms | p99, ms | micro-batches/s | processor time, cores "
        "| linger, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with product(work / "goal-home", workers=1) as running:
        for number, spec in enumerate(CONTENDERS.values()):
            _create(running, number, spec)
        for number, _ in enumerate(CONTENDERS):  # otherwise the first one would pay for the start of the JVM
            _turn(running, number, WARM_RATE)
        for rate in rates:
            for number, name in enumerate(CONTENDERS):
                turn = _turn(running, number, rate)
                found = turn.delays
                lines.append(
                    f"| {rate:,} | {found.events / MEASURED_S:,.0f} | {name} | {found.p50:.0f} "
                    f"| {found.p99:.0f} | {turn.micro_batches:.1f} | {turn.cpu:.2f} "
                    f"| {'' if turn.linger_ms is None else turn.linger_ms} |"
                )
    return lines


def _create(running: Product, number: int, spec: dict[str, Any]) -> None:
    running.create("Stream", f"goal{number}_out", {"schema": "sent DOUBLE"})
    source = {"type": "http", "path": f"/goal{number}", "schema": "sent DOUBLE"}
    sink = {"type": "stream", "stream": f"goal{number}_out"}
    running.create("Pipeline", f"goal{number}", {"source": source, "sinks": [sink], **spec})


def _turn(running: Product, number: int, rate: int) -> Turn:
    name = f"goal{number}"
    (worker,) = running.workers()
    cpu, batches, began = _cpu_s(worker), _ops(running, name)["batches"], time.monotonic()
    url = f"{running.url}/ingest/{name}"
    found = delays(url, lambda until: from_stream(running, f"{name}_out", until), rate)
    took = time.monotonic() - began
    used = (_cpu_s(worker) - cpu) / took
    time.sleep(2)  # the counters are reported once a second
    ops = _ops(running, name)
    linger = (ops.get("latency") or {}).get("linger_ms")
    return Turn(found, (ops["batches"] - batches) / (WARM_S + MEASURED_S), used, linger)


def _ops(running: Product, name: str) -> dict[str, Any]:
    found: dict[str, Any] = running.client.get(f"/pipelines/{name}").raise_for_status().json()["ops"]
    return found


def _cpu_s(pid: int) -> float:
    """Processor time of a worker and of all processes that it has started."""
    process = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:2]) for each in [process, *process.children(recursive=True)])
