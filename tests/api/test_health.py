from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import pytest

from penstock.control.documents.service import Service
from penstock.control.fleet.processes import WorkerStart
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
        "startup": [],
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


def test_a_start_that_goes_on_and_one_that_fails(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    start = WorkerStart(1, "starting_spark", datetime(2026, 1, 1, tzinfo=UTC), 0, None, "/logs/worker-1.log")
    starts = [start]
    monkeypatch.setattr(service, "_processes", SimpleNamespace(starts=lambda: starts))
    with running(service) as api:
        found = api.client.get("/readyz").json()
        assert found["startup"] == [
            {
                "worker": 1,
                "phase": "starting_spark",
                "since": "2026-01-01T00:00:00Z",
                "failures": 0,
                "error": None,
                "log": "/logs/worker-1.log",
            }
        ]
        assert found["problems"][0]["message"] == "no worker is ready: Spark is starting"
        starts[:] = [replace(start, phase="failed", failures=2, error="error[no_java] no Java here")]
        found = api.client.get("/readyz").json()
        assert found["problems"][0] == {
            "code": "worker_failed",
            "message": "worker 1 failed to start: error[no_java] no Java here",
            "path": None,
            "hint": "see its log: /logs/worker-1.log",
        }
    with running(service) as api:
        overview = api.client.get("/overview").json()
        assert [start["phase"] for start in overview["startup"]] == ["failed"]
        assert [(each["severity"], each["message"]) for each in overview["attention"]] == [
            ("error", "Worker 1 failed to start: error[no_java] no Java here")
        ]


def test_not_ready_without_a_registry(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(api.service.registry, "statuses", fail)
    found = api.client.get("/readyz")
    assert found.status_code == 503
    assert [problem["code"] for problem in found.json()["problems"]] == ["registry_down"]


def test_workers_are_listed_without_their_secrets(client: httpx.Client) -> None:
    (worker,) = client.get("/workers").json()
    shown = {"id", "host", "pid", "state", "alive", "flows", "labels", "capacity", "started_at", "info"}
    assert set(worker) == shown
    assert (worker["state"], worker["alive"], worker["flows"]) == ("ready", True, 0)
