"""Start time of a pipeline on a warm worker, and the cost of 50 idle pipelines."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.processes import cpu_s, pss
from bench.product import product

STARTS, IDLE, WATCH_S = 5, 50, 30


def measure(work: Path) -> list[str]:
    """Start a new Penstock and measure it. Returns the lines of a report."""
    with product(work / "idle-home", workers=1) as running:
        return _measure(work, running.client)


def _measure(work: Path, client: httpx.Client) -> list[str]:
    (work / "inbox").mkdir(exist_ok=True)
    _start(client, "warm-up", work)
    starts = [_start(client, f"start-{i}", work) for i in range(STARTS)]
    for i in range(STARTS):
        client.delete(f"/pipelines/start-{i}").raise_for_status()
    worker = psutil.Process(client.get("/workers").json()[0]["pid"])
    before = pss(worker)
    for i in range(IDLE):
        print(f"starting idle pipeline {i + 1} of {IDLE}", end="\r", file=sys.stderr)
        _start(client, f"idle-{i}", work)
    time.sleep(5)
    began, used = time.monotonic(), cpu_s(worker)
    time.sleep(WATCH_S)
    cores = (cpu_s(worker) - used) / (time.monotonic() - began)
    after = pss(worker)
    return [
        f"Start of a pipeline on a warm worker, from the request to `running`: median "
        f"{statistics.median(starts):.2f} s, longest {max(starts):.2f} s of {STARTS}.",
        "",
        f"{IDLE} idle pipelines that watch a directory, on one worker: {cores:.2f} cores over {WATCH_S} s;"
        f" the worker's processes hold {after / 2**20:,.0f} MiB, {(after - before) / 2**20:,.0f} MiB more"
        " than before.",
    ]


def _start(client: httpx.Client, name: str, work: Path) -> float:
    document: dict[str, Any] = {
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "source": {"type": "file", "path": str(work / "inbox"), "format": "json", "schema": "id BIGINT"},
            "processors": [{"type": "filter", "where": "id > 0"}],
            "sinks": [{"type": "drop"}],
        },
    }
    began = time.monotonic()
    client.post("/pipelines", json=document).raise_for_status()
    while client.get(f"/pipelines/{name}").json()["phase"] != "running":
        time.sleep(0.02)
    return time.monotonic() - began
