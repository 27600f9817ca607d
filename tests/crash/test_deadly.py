"""A flow at whose batches the JVM dies: it fails after its attempts, and the flows beside it go on."""

from __future__ import annotations

import pytest

from tests.cli.commands import wait_for
from tests.flows import pipeline
from tests.product import Product

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def delivers(product: Product, name: str) -> bool:
    """Whether a flow has a batch under way."""
    return any(mark.read_bytes()[:1] == b"d" for mark in product.directory.rglob(f"{name}/*/work"))


def test_a_flow_at_which_the_jvm_dies_fails_and_its_neighbour_goes_on(product: Product) -> None:
    """The JVM is killed, as it is when memory runs out, each time this flow has a batch under way."""
    full = {"metadata": {"name": "full"}, "spec": {"buffer": {"max_unread": 1, "mode": "block"}}}
    assert product.client.post("/streams", json=full).status_code == 201
    reader = pipeline("reader", source={"type": "stream", "stream": "full"})
    product.create({**reader, "status": "paused"})
    assert product.client.post("/streams/full/events", json=[1]).status_code == 200
    product.create(pipeline("neighbour", source={"type": "generate", "rate": 5}))
    product.wait_for_batches("neighbour")

    deadly = pipeline("deadly", sinks=[{"type": "stream", "stream": "full"}])  # which never has room
    deadly["spec"]["restart"] = {"max_attempts": 2, "backoff_ms": 100}
    product.create(deadly)
    for _ in range(2):
        wait_for("a batch under way", lambda: delivers(product, "deadly"))
        product.kill_jvm()
        wait_for("the next worker", lambda: not delivers(product, "deadly"))
    failed = product.wait_for_status("deadly", "failed")
    assert failed["error"]["code"] == "worker_died"
    assert failed["error"]["message"].endswith("this flow was processing a batch, 2 times in a row")
    assert "memory" in failed["error"]["hint"]

    product.wait_for_batches("neighbour", 3)
    neighbour = product.get("neighbour")
    assert (neighbour["status"], neighbour["error"], neighbour["attempts"]) == ("active", None, [])

    product.act("deadly", "start")
    wait_for("a new beginning", lambda: delivers(product, "deadly"))
    assert product.get("deadly")["status"] == "active"
    for name in ("reader", "deadly", "neighbour"):  # without a reader there is room
        assert product.client.delete(f"/pipelines/{name}").status_code in (200, 204)
