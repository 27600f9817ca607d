"""Kill -9 while events go over HTTP through a pipeline, a stream and a task: each arrives once, in order."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx
import pytest

from tests.cli.commands import wait_for
from tests.product import Product

pytestmark = pytest.mark.slow

SCHEMA = "seq BIGINT"


class Sender:
    """Sends numbers, and each batch again until it was acknowledged: it knows its own number."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.acknowledged = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.acknowledged

    def _send(self) -> None:
        batch = 0
        with httpx.Client(trust_env=False, timeout=30) as client:
            while not self._stop.is_set():
                events = [{"seq": self.acknowledged + i} for i in range(10)]
                params = {"producer": "sender", "batch": batch}
                try:
                    # The address changes when the server is started again.
                    url = self._product.client.base_url.join("/ingest/numbers")
                    answer = client.post(url, params=params, json=events)
                except httpx.HTTPError:
                    time.sleep(0.1)
                    continue
                if answer.status_code == 200:
                    self.acknowledged += len(events)
                    batch += 1
                    time.sleep(0.02)
                else:
                    assert answer.status_code >= 500, answer.text
                    time.sleep(0.1)


def save(product: Product, kind: str, name: str, spec: dict[str, Any]) -> None:
    document = {"kind": kind, "metadata": {"name": name}, "spec": spec}
    answer = product.client.post(f"/{kind.lower()}s", json=document)
    assert answer.status_code == 201, answer.text


def numbers(product: Product, stream: str) -> list[int]:
    """All that a stream holds."""
    found: list[int] = []
    position = 0
    while True:
        params = {"position": f"offset:{position}", "limit": 10_000}
        page = product.client.get(f"/streams/{stream}/events", params=params).json()
        assert page["gap"] is None
        if not page["events"]:
            return found
        found += [event["columns"]["seq"] for event in page["events"]]
        position = page["next"]


def test_events_arrive_once_whoever_is_killed(product: Product) -> None:
    for name in ("first", "second"):
        save(product, "Stream", name, {"schema": SCHEMA})
    pipeline = {
        "source": {"type": "http", "path": "/numbers", "schema": SCHEMA},
        "buffer": {"type": "wal"},
        "sinks": [{"type": "stream", "stream": "first"}],
        "restart": {"backoff_ms": 100},
    }
    save(product, "Pipeline", "in", pipeline)
    keep = {"type": "filter", "where": "seq >= 0"}
    task = {"input": "first", "processors": [keep], "outputs": [{"stream": "second"}]}
    save(product, "Task", "copy", {**task, "restart": {"backoff_ms": 100}})
    sender = Sender(product)
    sender.start()
    for kill in (product.kill_worker, product.kill_all):
        before = len(numbers(product, "second"))
        wait_for("events to arrive", lambda seen=before: len(numbers(product, "second")) > seen)
        kill()
        if kill == product.kill_all:
            product.up()
    sent = sender.stop()
    wait_for("all events to arrive", lambda: len(numbers(product, "second")) >= sent)
    for stream in ("first", "second"):
        assert numbers(product, stream) == list(range(sent))
    readers = product.client.get("/streams/first/stats").json()["readers"]
    assert [reader["reader"].rpartition(":")[0] for reader in readers] == ["task:copy"]
