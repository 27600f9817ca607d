"""Numbers that go over HTTP through a pipeline, a stream and a task."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.product import Product

SCHEMA = "seq BIGINT"


class Sender:
    """Sends numbers, and each batch again until it was acknowledged: it knows its own number."""

    def __init__(self, product: Product, path: str = "numbers") -> None:
        self._product, self._path = product, path
        self._batch = 0
        self._settled = True
        self.acknowledged = 0

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send meanwhile, from where the last time ended."""
        stop = threading.Event()
        thread = threading.Thread(target=self._send, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(60)
        assert not thread.is_alive()

    def _send(self, stop: threading.Event) -> None:
        with httpx.Client(trust_env=False, timeout=30) as client:
            while not (stop.is_set() and self._settled):
                events = [{"seq": self.acknowledged + i} for i in range(10)]
                params = {"producer": "sender", "batch": self._batch}
                self._settled = False
                try:
                    # The address changes when the server is started again.
                    url = self._product.client.base_url.join(f"/ingest/{self._path}")
                    answer = client.post(url, params=params, json=events)
                except httpx.HTTPError:
                    time.sleep(0.1)
                    continue
                if answer.status_code == 200:
                    self.acknowledged += len(events)
                    self._batch += 1
                    self._settled = True
                    time.sleep(0.02)
                else:
                    assert answer.status_code >= 500, answer.text
                    time.sleep(0.1)


def lay_pipes(product: Product, before: str = "", storage: str = "local") -> None:
    """HTTP → pipeline → stream `first` → task → stream `second`; `before` begins all their names."""
    for name in ("first", "second"):
        save(product, "Stream", before + name, {"schema": SCHEMA, "storage": storage})
    pipeline = {
        "source": {"type": "http", "path": f"/{before}numbers", "schema": SCHEMA},
        "sinks": [{"type": "stream", "stream": f"{before}first"}],
        "restart": {"backoff_ms": 100},
    }
    save(product, "Pipeline", f"{before}in", pipeline)
    keep = {"type": "filter", "where": "seq >= 0"}
    task = {"input": f"{before}first", "processors": [keep], "outputs": [{"stream": f"{before}second"}]}
    save(product, "Task", f"{before}copy", {**task, "restart": {"backoff_ms": 100}})


def save(product: Product, kind: str, name: str, spec: dict[str, Any]) -> None:
    document = {"kind": kind, "metadata": {"name": name}, "spec": spec}
    answer = product.client.post(f"/{kind.lower()}s", json=document)
    assert answer.status_code == 201, answer.text


def numbers_in(product: Product, stream: str) -> list[int]:
    """All that a stream holds."""
    found: list[int] = []
    position = 0
    while True:
        params = {"position": f"offset:{position}", "limit": 10_000}
        answer = product.client.get(f"/streams/{stream}/events", params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert page["gap"] is None
        if not page["events"]:
            return found
        found += [event["columns"]["seq"] for event in page["events"]]
        position = page["next"]
