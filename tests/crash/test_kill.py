"""Kill -9 of a worker, its JVM, the server, everything: nothing lost or repeated, and nobody has to help."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import wait_for
from tests.crash.sender import Sender, lay_pipes, numbers_in
from tests.flows import json_rows
from tests.product import Product

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EVENTS, RATE = 2400, 400


def numbers(name: str, out: Path, **changes: Any) -> dict[str, Any]:
    """A finite stream of numbers, slow enough to be killed in, into exactly-once files."""
    return {
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "source": {"type": "generate", "rate": RATE, "count": EVENTS},
            "processors": [{"type": "sql", "query": "SELECT seq, seq * 2 AS twice FROM input"}],
            "sinks": [{"type": "file", "path": str(out), "format": "json"}],
            "batch": {"max_ms": 100},
            "restart": {"backoff_ms": 100},
        },
        **changes,
    }


def check_a_reader_sees_whole_batches(out: Path) -> int:
    """What is visible now: a prefix of the numbers, each once, every line complete (invariants 3, 4)."""
    seen = sorted(row["seq"] for row in json_rows(out))
    assert seen == list(range(len(seen)))
    return len(seen)


def kill(product: Product, victim: str) -> None:
    {
        "worker": product.kill_worker,
        "jvm": product.kill_jvm,
        "server": product.kill_server,
        "all": product.kill_all,
    }[victim]()


@pytest.fixture(scope="module")
def sender(shared: Product) -> Sender:
    """Somebody who can send numbers over HTTP, and a pipeline, a stream and a task that they go through."""
    if shared.process is None or shared.process.poll() is not None:
        shared.up()
    lay_pipes(shared)
    return Sender(shared)


@pytest.mark.parametrize("victim", ["worker", "jvm", "server", "all"])
def test_pipelines_survive_a_kill(sender: Sender, product: Product, tmp_path: Path, victim: str) -> None:
    """A pipeline that makes numbers and writes files, one that is paused, and numbers that come over HTTP."""
    out, kept = tmp_path / "out", f"kept {victim}"
    product.create(numbers(kept, tmp_path / "kept", status="paused"))
    changed = product.client.patch(f"/pipelines/{kept}", json={"spec": {"batch": {"max_ms": 200}}})
    assert changed.status_code == 200, changed.text

    with sender.sending():
        arrived = len(numbers_in(product, "second"))
        wait_for("events to arrive", lambda: len(numbers_in(product, "second")) > arrived)
        product.create(numbers(victim, out))
        product.wait_for_batches(victim)
        time.sleep(random.uniform(0, 0.5))
        kill(product, victim)
        check_a_reader_sees_whole_batches(out)
        if victim in ("server", "all"):
            product.up()
        arrived = len(numbers_in(product, "second"))
        wait_for("events to arrive again", lambda: len(numbers_in(product, "second")) > arrived)
    info = product.wait_for_status(victim, "completed")
    assert info["error"] is None
    assert check_a_reader_sees_whole_batches(out) == EVENTS

    wait_for("all events", lambda: len(numbers_in(product, "second")) >= sender.acknowledged)
    for stream in ("first", "second"):
        assert numbers_in(product, stream) == list(range(sender.acknowledged)), "each once, in order"
    readers = product.client.get("/streams/first/stats").json()["readers"]
    assert [reader["reader"].rpartition(":")[0] for reader in readers] == ["task:copy"]

    saved = product.get(kept)
    assert (saved["status"], saved["revision"], saved["spec"]["batch"]["max_ms"]) == ("paused", 2, 200)
    assert not (tmp_path / "kept").exists()


def holder(product: Product, name: str) -> tuple[str, int] | None:
    """The worker that has a pipeline, if one has it now: on a busy machine a short lease may have ended."""
    worker = product.get(name)["worker"]
    pids = {w["id"]: w["pid"] for w in product.client.get("/workers").json()}
    return (worker, pids[worker]) if worker in pids else None


def test_the_same_on_postgresql_with_a_worker_that_wakes_up_too_late(
    postgres_database: str, tmp_path: Path
) -> None:
    """SIGSTOP: the process is there and does nothing, until it wakes up after its lease has ended."""
    env = {"PENSTOCK_WORKER_LEASE_MS": "3000", "PENSTOCK_REGISTRY_URL": postgres_database}
    product = Product(tmp_path, options=("--workers", "2"), env=env)
    out = tmp_path / "out"
    product.up()
    try:
        document = numbers("numbers", out)
        del document["spec"]["source"]["count"]  # or a busy machine might look when all is done
        document["spec"]["sinks"].append({"type": "stream", "stream": "copy"})
        copy = {
            "kind": "Stream",
            "metadata": {"name": "copy"},
            "spec": {"schema": "seq BIGINT, twice BIGINT"},
        }
        assert product.client.post("/streams", json=copy).status_code == 201
        product.create(document)
        product.wait_for_batches("numbers")
        first, pid = wait_for("a worker that has the pipeline", lambda: holder(product, "numbers"))
        os.kill(pid, signal.SIGSTOP)
        wait_for("another worker", lambda: product.get("numbers")["worker"] not in (first, None))
        os.kill(pid, signal.SIGCONT)
        seen = check_a_reader_sees_whole_batches(out)
        wait_for("more numbers", lambda: check_a_reader_sees_whole_batches(out) > seen + 2 * RATE)
        product.act("numbers", "pause")
        product.wait_for_status("numbers", "paused")
        written = check_a_reader_sees_whole_batches(out)
        assert written > seen + 2 * RATE
        assert numbers_in(product, "copy") == list(range(written)), "each once, in order"
        assert product.down() == 0
    finally:
        product.close()
