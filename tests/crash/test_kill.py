"""Kill -9 of a worker, of the server, of everything: nothing lost, nothing repeated, nobody has to help."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows import json_rows
from tests.product import Product

pytestmark = pytest.mark.slow

EVENTS = 4000


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    found = Product(tmp_path)
    found.up()
    yield found
    found.close()


def counted(directory: Path) -> dict[str, Any]:
    """A finite stream of numbers, slow enough to be killed in, into exactly-once files."""
    return {
        "kind": "Pipeline",
        "metadata": {"name": "numbers"},
        "spec": {
            "source": {"type": "generate", "rate": 400, "count": EVENTS},
            "processors": [{"type": "sql", "query": "SELECT seq, seq * 2 AS twice FROM input"}],
            "sinks": [{"type": "file", "path": str(directory / "out"), "format": "json"}],
            "batch": {"max_ms": 100},
            "restart": {"backoff_ms": 100},
        },
    }


def check_a_reader_sees_whole_batches(directory: Path) -> list[int]:
    """What is visible now: a prefix of the numbers, each once, every line complete (invariants 3, 4)."""
    numbers = sorted(row["seq"] for row in json_rows(directory / "out"))
    assert numbers == list(range(len(numbers)))
    return numbers


@pytest.mark.parametrize(("victim", "times"), [("worker", 2), ("jvm", 1), ("server", 1), ("all", 2)])
def test_a_pipeline_survives_kills(product: Product, tmp_path: Path, victim: str, times: int) -> None:
    product.create(counted(tmp_path))
    for _ in range(times):
        product.wait_for_batches("numbers")
        time.sleep(random.uniform(0, 0.5))
        if victim in ("worker", "jvm"):
            product.kill_worker() if victim == "worker" else product.kill_jvm()
            check_a_reader_sees_whole_batches(tmp_path)
        else:
            product.kill_server() if victim == "server" else product.kill_all()
            check_a_reader_sees_whole_batches(tmp_path)
            product.up()
    info = product.wait_for_status("numbers", "completed")
    assert info["error"] is None
    assert check_a_reader_sees_whole_batches(tmp_path) == list(range(EVENTS))
    assert product.down() == 0


def test_what_was_saved_is_there_after_a_kill(product: Product, tmp_path: Path) -> None:
    product.create(counted(tmp_path) | {"status": "paused"})
    changed = product.client.patch("/pipelines/numbers", json={"spec": {"batch": {"max_ms": 200}}})
    assert changed.status_code == 200, changed.text
    product.kill_all()
    product.up()
    info = product.get("numbers")
    assert (info["status"], info["revision"], info["spec"]["batch"]["max_ms"]) == ("paused", 2, 200)
    assert not (tmp_path / "out").exists()


def test_a_worker_that_stops_answering_is_replaced_and_fenced(tmp_path: Path) -> None:
    """SIGSTOP: the process is there and does nothing, until it wakes up after its lease has ended."""
    import os
    import signal

    product = Product(tmp_path, options=("--workers", "2"), env={"PENSTOCK_WORKER_LEASE_MS": "3000"})
    product.up()
    try:
        product.create(counted(tmp_path))
        product.wait_for_batches("numbers")
        workers = {w["id"]: w["pid"] for w in product.client.get("/workers").json()}
        first = product.get("numbers")["worker"]
        os.kill(workers[first], signal.SIGSTOP)
        deadline = time.monotonic() + 60
        while product.get("numbers")["worker"] in (first, None) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert product.get("numbers")["worker"] not in (first, None)
        os.kill(workers[first], signal.SIGCONT)
        product.wait_for_status("numbers", "completed")
        assert check_a_reader_sees_whole_batches(tmp_path) == list(range(EVENTS))
    finally:
        product.close()
