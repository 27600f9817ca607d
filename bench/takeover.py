"""Time from kill -9 of a worker to the next batch of its flow, with and without a standby worker."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.product import Product, product

ROUNDS = 3
SETTINGS = "PENSTOCK_STANDBY"

HEAD = """\
One worker runs a pipeline that makes 100 events/s and drops them. It is killed with kill -9, a few times,
each time when the pipeline runs and, with standby, another worker waits. Seconds until the pipeline has
delivered a batch on another worker.

| | median, s | all, s |
|---|---|---|"""


def measure(work: Path) -> list[str]:
    """Start a Penstock without and one with a standby worker. Returns the lines of a report."""
    lines = [HEAD]
    for standby in (0, 1):
        os.environ[SETTINGS] = str(standby)
        try:
            with product(work / f"takeover-{standby}", workers=1) as running:
                took = _rounds(running, standby)
        finally:
            del os.environ[SETTINGS]
        shown = ", ".join(f"{each:.1f}" for each in took)
        lines.append(f"| {standby} on standby | {statistics.median(took):.1f} | {shown} |")
        print(lines[-1], file=sys.stderr)
    return lines


def _rounds(running: Product, standby: int) -> list[float]:
    spec = {"source": {"type": "generate", "rate": 100}, "sinks": [{"type": "drop"}], "batch": {"max_ms": 50}}
    running.create("Pipeline", "numbers", spec)
    return [_round(running, standby) for _ in range(ROUNDS)]


def _round(running: Product, standby: int) -> float:
    while not _is_settled(running, standby):
        time.sleep(0.5)
    time.sleep(3)
    before = _flow(running)
    (victim,) = [each for each in _workers(running) if each["id"] == before["worker"]]
    os.kill(victim["pid"], signal.SIGKILL)
    began = time.monotonic()
    while True:
        now = _flow(running)
        moved = now["worker"] not in (None, victim["id"])
        if moved and now["phase"] == "running" and _batches(now) > _batches(before) + 1:
            return time.monotonic() - began
        time.sleep(0.05)


def _is_settled(running: Product, standby: int) -> bool:
    flow, states = _flow(running), [worker["state"] for worker in _workers(running)]
    return flow["phase"] == "running" and states.count("standby") == standby


def _batches(flow: dict[str, Any]) -> int:
    return int(flow["ops"].get("batches") or 0)


def _flow(running: Product) -> dict[str, Any]:
    return dict(running.client.get("/pipelines/numbers").json())


def _workers(running: Product) -> list[dict[str, Any]]:
    return [worker for worker in running.client.get("/workers").json() if worker["alive"]]
