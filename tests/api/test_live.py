"""The API in front of a worker that runs pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.kit import Api, codes, pipeline, stream
from tests.flows import json_rows

pytestmark = pytest.mark.slow


@pytest.fixture
def client(live: Api) -> httpx.Client:
    return live.client


def until(client: httpx.Client, name: str, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while True:
        info: dict[str, Any] = client.get(f"/pipelines/{name}").json()
        if done(info):
            return info
        assert time.monotonic() < deadline, info
        time.sleep(0.1)


def test_the_life_of_a_pipeline(client: httpx.Client, tmp_path: Path) -> None:
    sink = {"id": "out", "type": "file", "path": str(tmp_path / "out"), "format": "json"}
    created = client.post("/pipelines", json=pipeline("Main line", "active", sinks=[sink]))
    assert created.status_code == 201, created.text
    running = until(client, "Main line", lambda info: info["ops"]["input_events"] > 0)
    assert (running["status"], running["phase"], running["error"]) == ("active", "running", None)
    assert running["worker"] == client.get("/workers").json()[0]["id"]
    assert client.get("/readyz").json()["pipelines"]["Main line"] == "active"

    paused = client.post("/pipelines/Main line/pause")
    assert (paused.status_code, paused.json()["status"], paused.json()["worker"]) == (200, "paused", None)
    seen = client.get("/pipelines/main_line/progress").json()
    assert seen["sinks"]["out"]["events"] == seen["input_events"] > 0
    assert client.post("/pipelines/Main line/pause").status_code == 200

    resumed = client.post("/pipelines/Main line/resume").json()
    assert (resumed["status"], resumed["phase"]) == ("active", "running")
    patched = client.patch("/pipelines/Main line", json={"batch": {"max_events": 5}})
    assert (patched.is_success, patched.json()["revision"]) == (True, 2), patched.text
    until(client, "Main line", lambda info: info["ops"]["input_events"] > seen["input_events"])

    stopped = client.post("/pipelines/Main line/stop").json()
    assert (stopped["status"], stopped["worker"]) == ("stopped", None)
    refused = client.post("/pipelines/Main line/pause")
    assert (refused.status_code, codes(refused)) == (409, ["invalid_transition"])
    assert client.post("/pipelines/Main line/start").json()["status"] == "active"

    assert client.delete("/pipelines/Main line").status_code == 204
    assert client.get("/pipelines/Main line").status_code == 404


def test_a_restart_goes_on_where_it_was(client: httpx.Client, tmp_path: Path) -> None:
    sink = {"id": "out", "type": "file", "path": str(tmp_path / "out"), "format": "json"}
    client.post("/pipelines", json=pipeline("again", "active", sinks=[sink]))
    before = until(client, "again", lambda info: info["ops"]["input_events"] > 0)
    answer = client.post("/pipelines/again/restart")
    assert answer.status_code == 200, answer.text
    after = answer.json()
    assert (after["status"], after["phase"], after["revision"]) == ("active", "running", 1)
    assert after["worker"] == before["worker"]
    until(client, "again", lambda info: info["ops"]["batches"] > after["ops"]["batches"])
    assert client.post("/pipelines/again/stop").json()["status"] == "stopped"
    numbers = sorted(row["seq"] for row in json_rows(tmp_path / "out"))
    assert numbers == list(range(len(numbers))), "each event once, whatever was restarted"
    assert client.post("/pipelines/again/restart").json()["status"] == "active"
    assert client.delete("/pipelines/again").status_code == 204


def test_a_stale_delete_does_not_even_stop(client: httpx.Client) -> None:
    etag = client.post("/pipelines", json=pipeline("careful", "active")).headers["etag"]
    until(client, "careful", lambda info: info["phase"] == "running")
    client.patch("/pipelines/careful", json={"metadata": {"description": "changed"}})
    assert client.delete("/pipelines/careful", headers={"If-Match": etag}).status_code == 412
    assert client.get("/pipelines/careful").json()["status"] == "active"
    assert client.delete("/pipelines/careful").status_code == 204


def test_a_finite_pipeline_completes(client: httpx.Client) -> None:
    client.post("/pipelines", json=pipeline("finite", "active", source={"type": "generate", "count": 7}))
    done = until(client, "finite", lambda info: info["status"] == "completed")
    assert done["ops"]["input_events"] == 7
    assert client.delete("/pipelines/finite").status_code == 204


def test_sql_that_spark_refuses(client: httpx.Client) -> None:
    step = {"type": "sql", "query": "SELECT amuont FROM input"}
    refused = client.post("/pipelines", json=pipeline("broken", "active", processors=[step]))
    assert refused.status_code == 422
    assert refused.json()["path"] == "spec.processors[0].query"

    client.post("/pipelines", json=pipeline("running", "active"))
    until(client, "running", lambda info: info["phase"] == "running")
    patched = client.patch("/pipelines/running", json={"processors": [step]})
    assert patched.status_code == 422
    now = client.get("/pipelines/running").json()
    assert (now["revision"], now["status"], now["phase"]) == (1, "active", "running")
    assert client.delete("/pipelines/running").status_code == 204


def test_a_revision_that_does_not_start_is_rolled_back(client: httpx.Client, tmp_path: Path) -> None:
    client.post("/pipelines", json=pipeline("steady", "active"))
    until(client, "steady", lambda info: info["phase"] == "running")
    (tmp_path / "taken").write_text("a file, where the sink needs a directory")
    sink = {"type": "file", "path": str(tmp_path / "taken"), "format": "json"}
    refused = client.patch("/pipelines/steady", json={"sinks": [sink]})
    assert refused.status_code in (202, 409), refused.text  # by how long it took
    now = until(client, "steady", lambda info: info["revision"] == 3)
    assert now["error"]["code"] == "rolled_back"
    assert (now["status"], now["spec"]["sinks"]) == ("active", [{"type": "drop"}])
    assert client.delete("/pipelines/steady").status_code == 204


def test_the_columns_between_steps(client: httpx.Client) -> None:
    step = {"id": "tag", "type": "sql", "query": "SELECT seq, 'x' AS tag FROM input"}
    judged = client.post("/validate", json=pipeline("columns", processors=[step])).json()
    assert judged["valid"] is True
    assert [s["id"] for s in judged["documents"][0]["steps"]] == ["source", "tag"]
    assert judged["documents"][0]["steps"][1]["columns"] == [
        {"name": "seq", "type": "bigint"},
        {"name": "tag", "type": "string"},
    ]


def test_a_format_that_spark_does_not_have(client: httpx.Client) -> None:
    source = {"type": "spark", "format": "iceberg"}
    refused = client.post("/pipelines", json=pipeline("typo", "active", source=source))
    assert (refused.status_code, codes(refused)) == (422, ["unknown_format"])
    assert refused.json()["path"] == "spec.source.format"


def test_what_spark_alone_can_refuse_never_hides_the_rest(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a plugin fell over")

    monkeypatch.setattr("penstock.connectors.generate.GenerateSource.read", fail)
    judged = client.post("/validate", json=[pipeline("odd"), stream("fine")]).json()["documents"]
    assert [each["valid"] for each in judged] == [False, True]
    assert judged[0]["errors"][0]["message"] == "a plugin fell over"
