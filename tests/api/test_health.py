from __future__ import annotations

import httpx
import pytest

from penstock.control.service import Service
from tests.api.kit import Api, pipeline, running, stream


def test_ready_with_the_status_of_all_that_runs(client: httpx.Client) -> None:
    client.post("/pipelines", json=pipeline("orders"))
    client.post("/streams", json=stream("raw"))
    client.post("/sinks", json={"metadata": {"name": "definition"}, "spec": {"type": "drop"}})
    sink = {"metadata": {"name": "orders"}, "spec": {"type": "drop", "stream": "raw"}, "status": "stopped"}
    client.post("/sinks", json=sink)
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json() == {
        "ready": True,
        "problems": [],
        "pipelines": {"orders": "paused"},
        "sources": {},
        "tasks": {},
        "sinks": {"orders": "stopped"},
    }


def test_not_ready_without_a_worker(service: Service) -> None:
    with running(service) as api:
        found = api.client.get("/readyz")
        assert (found.status_code, found.json()["ready"]) == (503, False)
        assert [problem["code"] for problem in found.json()["problems"]] == ["no_worker"]
        assert api.client.get("/healthz").status_code == 200


def test_not_ready_without_a_registry(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(api.service.registry, "statuses", fail)
    found = api.client.get("/readyz")
    assert found.status_code == 503
    assert [problem["code"] for problem in found.json()["problems"]] == ["registry_down"]


def test_workers_are_listed_without_their_secrets(client: httpx.Client) -> None:
    (worker,) = client.get("/workers").json()
    assert set(worker) == {"id", "host", "pid", "state", "alive", "flows", "started_at", "info"}
    assert (worker["state"], worker["alive"], worker["flows"]) == ("ready", True, 0)
