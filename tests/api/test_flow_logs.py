"""The logs of flows over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from penstock.api import feed
from penstock.control.fleet.progress import flow_directory
from penstock.engine.runtime.flow_log import FlowLog
from tests.api.kit import Api, codes, pipeline, stream
from tests.cli.commands import PATIENCE_S

SCRIPT = """
function processBatch(events) {
  for (const event of events) {
    console.log('seen', event.id)
    if (event.id === 2) throw new Error('no such id')
  }
}
"""


def arrays(lines: Iterator[str]) -> Iterator[list[dict[str, Any]]]:
    """The lines of the log in each message."""
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def log_of(api: Api, name: str) -> FlowLog:
    """The log of a pipeline as a worker writes it."""
    record = api.service.get("Pipeline", name)
    log = FlowLog(name, flow_directory(api.service.settings, record))
    log.begin()
    return log


def test_lines_are_read_by_level_and_number(api: Api) -> None:
    api.client.post("/pipelines", json=pipeline("orders"))
    assert api.client.get("/pipelines/orders/logs").json() == {"lines": []}
    log = log_of(api, "orders")
    log.info("started", revision=1)
    log.error("failed: no disk", code="io")
    (started, failed) = api.client.get("/pipelines/orders/logs").json()["lines"]
    assert started["at"].endswith("Z")
    assert {name: value for name, value in failed.items() if name != "at"} == {
        "level": "error",
        "message": "failed: no disk",
        "step": None,
        "sink": None,
        "fields": {"code": "io"},
    }
    assert api.client.get("/pipelines/orders/logs?level=warning").json()["lines"] == [failed]
    assert api.client.get("/pipelines/orders/logs?limit=1").json()["lines"] == [failed]


def test_lines_are_followed_until_the_flow_is_deleted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.1)
    api.client.post("/pipelines", json=pipeline("orders"))
    log = log_of(api, "orders")
    log.info("started")
    with api.client.stream("GET", "/pipelines/orders/logs/follow") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        found = arrays(lines)
        assert [line["message"] for line in next(found)] == ["started"]
        assert ": ping" in (next(lines) for _ in range(10))
        log.info("ready")
        assert [line["message"] for line in next(found)] == ["ready"]
        with httpx.Client(base_url=api.url, trust_env=False) as other:
            assert other.delete("/pipelines/orders").status_code == 204
        assert list(found) == []


@pytest.mark.parametrize("path", ["logs", "logs/follow"])
def test_what_has_no_log(client: httpx.Client, path: str) -> None:
    assert codes(client.get(f"/pipelines/nobody/{path}")) == ["not_found"]
    client.post("/sinks", json={"metadata": {"name": "out"}, "spec": {"type": "drop"}})
    refused = client.get(f"/sinks/out/{path}")
    assert (refused.status_code, codes(refused)) == (409, ["not_runnable"])
    assert client.get(f"/sinks/out/{path}?level=loud").status_code == 422


def until(live: Api, name: str, done: Callable[[list[str]], bool]) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        lines: list[dict[str, Any]] = live.client.get(f"/pipelines/{name}/logs").json()["lines"]
        if done([line["message"] for line in lines]):
            return lines
        assert time.monotonic() < deadline, lines
        time.sleep(0.1)


@pytest.mark.slow
def test_a_flow_tells_of_its_life(live: Api) -> None:
    assert live.client.post("/streams", json=stream("told in", schema="id BIGINT")).status_code == 201
    document = pipeline(
        "told",
        "active",
        source={"type": "stream", "stream": "told_in"},
        processors=[{"id": "tag", "type": "javascript", "inline": SCRIPT}],
    )
    created = live.client.post("/pipelines", json=document)
    assert created.status_code == 201, created.text
    until(live, "told", lambda messages: "ready" in messages)
    live.client.post("/streams/told_in/events", json=[{"id": 1}, {"id": 2}])
    lines = until(
        live, "told", lambda messages: "1 event could not be processed: moved to dead letters" in messages
    )
    assert {"seen 1", "seen 2"} <= {line["message"] for line in lines if line["step"] == "tag"}
    (letter,) = [line for line in lines if line["level"] == "warning"]
    assert (letter["step"], letter["fields"]["code"], letter["fields"]["letters"]) == ("tag", "js_error", 1)

    assert live.client.post("/pipelines/told/restart").json()["phase"] == "running"
    assert live.client.post("/pipelines/told/stop").json()["status"] == "stopped"
    life = [line["message"].partition(":")[0] for line in until(live, "told", lambda _: True)]
    assert [message for message in life if not message.startswith(("seen", "1 event"))] == [
        "taken by a worker",
        "started",
        "ready",
        "asked to restart",
        "draining",
        "drained",
        "ended",
        "taken by a worker",
        "started",
        "ready",
        "draining",
        "drained",
        "ended",
    ]
    assert live.client.delete("/pipelines/told").status_code == 204


@pytest.mark.slow
def test_a_flow_tells_why_it_fails(live: Api, tmp_path: Any) -> None:
    (tmp_path / "taken").write_text("a file, where the sink needs a directory")
    sink = {"id": "lake", "type": "file", "path": str(tmp_path / "taken"), "format": "json", "retries": 0}
    document = pipeline("failing", "active", sinks=[sink], restart={"max_attempts": 2, "backoff_ms": 10})
    assert live.client.post("/pipelines", json=document).status_code == 201
    lines = until(live, "failing", lambda messages: "ended" in messages)
    refused = [line for line in lines if line["sink"] == "lake"]
    assert all(line["message"].startswith("delivery failed: ") for line in refused)
    assert (len(refused) > 0, {line["level"] for line in refused}) == (True, {"warning"})
    failed = [line for line in lines if line["message"].startswith("failed: ")]
    assert [(line["level"], line["fields"]["attempt"]) for line in failed][:1] == [("error", 1)]
    (ended,) = [line for line in lines if line["message"] == "ended"]
    assert ended["fields"]["outcome"] == "failed"
    assert live.client.delete("/pipelines/failing").status_code == 204
