"""Twenty flows start and run beside a machine's other work. Takes minutes, so it is for `make nightly`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import wait_for
from tests.product import Product
from tests.streams.kit import NIGHTLY

pytestmark = pytest.mark.slow

FLOWS, BUSY, BUSY_S, PATIENCE_S = 20, 8, 180, 600

SPIN = f"import time\nend = time.time() + {BUSY_S}\nwhile time.time() < end: pass"

STEPS: list[dict[str, Any]] = [
    {"type": "filter", "where": "id % 2 = 0"},
    {"type": "filter", "where": "id >= 0"},
    {"type": "javascript", "inline": "function processBatch(events) { return events }"},
    {"type": "filter", "where": "true"},
    {"type": "window", "time": "at", "size": "2s", "aggregates": {"n": "count(*)"}},
]


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Processes that compute, as a compiler does."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(BUSY)]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


def start_and_run(product: Product) -> None:
    """All flows start and deliver, slowly, and no attempt fails."""
    client = product.client
    stream = {"metadata": {"name": "in"}, "spec": {"schema": "id BIGINT, at TIMESTAMP"}}
    client.post("/streams", json=stream).raise_for_status()
    for i in range(FLOWS):
        source, step = {"type": "stream", "stream": "in"}, STEPS[i % len(STEPS)]
        spec = {"source": source, "processors": [step], "sinks": [{"type": "drop"}]}
        product.create({"metadata": {"name": f"flow {i}"}, "spec": spec})

    def flows() -> list[dict[str, Any]]:
        return list(client.get("/pipelines", params={"limit": FLOWS}).json()["items"])

    def all_deliver() -> bool:
        event = {"id": 2, "at": "2026-01-01T00:00:00Z"}
        client.post("/streams/in/events", json=[event]).raise_for_status()
        return all(flow["phase"] == "running" and flow["ops"]["batches"] for flow in flows())

    wait_for("batches of all flows", all_deliver, PATIENCE_S)
    for flow in flows():
        assert flow["attempts"] == [], flow["name"]
        assert flow["ops"]["sinks"]["drop"]["failures"] == 0, flow["name"]


if NIGHTLY:

    def test_twenty_flows_start_beside_a_busy_machine(tmp_path: Path) -> None:
        product = Product(tmp_path)
        try:
            with busy():
                product.up()
                start_and_run(product)
        finally:
            product.close()
