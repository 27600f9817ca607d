"""The sinks of what runs: how far they have come, and letting them catch up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.kit import Api, codes, pipeline, stream
from tests.cli.commands import wait_for


def test_the_sinks_of_what_rests_are_shown(client: httpx.Client) -> None:
    sinks = [
        {"type": "drop"},
        {"id": "lake", "type": "file", "path": "out", "format": "json", "required": False},
    ]
    client.post("/pipelines", json=pipeline("orders", sinks=sinks)).raise_for_status()
    drop, lake = client.get("/pipelines/orders/sinks").json()
    assert drop == {
        "id": "drop",
        "type": "drop",
        "guarantee": "at-least-once",
        "required": True,
        "state": "in_sync",
        "cursor": None,
        "lag": 0,
        "last_ack_at": None,
        "failures": 0,
        "last_error": None,
        "gaps": [],
    }
    assert (lake["id"], lake["guarantee"], lake["required"]) == ("lake", "exactly-once", False)


def test_a_task_has_one_for_each_of_its_outputs(client: httpx.Client) -> None:
    client.post("/streams", json=stream("raw")).raise_for_status()
    spec = {
        "processors": [{"type": "filter", "where": "true"}],
        "input": "raw",
        "outputs": [{"stream": "raw"}, {"stream": "Raw"}],
    }
    body = {"metadata": {"name": "one"}, "spec": spec, "status": "paused"}
    client.post("/tasks", json=body).raise_for_status()
    found = client.get("/tasks/one/sinks").json()
    assert [(sink["id"], sink["type"]) for sink in found] == [("raw", "stream"), ("raw:2", "stream")]


def test_what_cannot_catch_up_is_told_why(client: httpx.Client) -> None:
    client.post("/pipelines", json=pipeline("orders")).raise_for_status()
    paused = client.post("/pipelines/orders/sinks/drop/catch-up")
    assert (paused.status_code, codes(paused)) == (409, ["not_running"])
    assert "resume it" in paused.json()["hint"]
    unknown = client.post("/pipelines/orders/sinks/drops/catch-up")
    assert (unknown.status_code, codes(unknown)) == (404, ["not_found"])
    assert "'drop'" in unknown.json()["hint"]
    assert client.get("/pipelines/nobody/sinks").status_code == 404
    steps = [{"type": "filter", "where": "true"}]
    body = {"metadata": {"name": "shared"}, "spec": {"processors": steps}}
    client.post("/tasks", json=body).raise_for_status()
    assert codes(client.get("/tasks/shared/sinks")) == ["not_runnable"]


@pytest.mark.slow
def test_a_sink_that_is_behind_is_shown_and_catches_up(live: Api, tmp_path: Path) -> None:
    client = live.client
    client.post("/streams", json=stream("numbers", schema="id BIGINT")).raise_for_status()
    (tmp_path / "file").write_text("in the way")
    sinks = [
        {"type": "drop"},
        {
            "id": "lake",
            "type": "file",
            "path": str(tmp_path / "file" / "out"),
            "format": "json",
            "required": False,
            "retries": 0,
            "backoff_ms": 600_000,
        },
    ]
    source = {"type": "stream", "stream": "numbers"}
    body = pipeline("behind", "active", source=source, sinks=sinks)
    client.post("/pipelines", json=body).raise_for_status()

    def lake() -> dict[str, Any]:
        return dict(client.get("/pipelines/behind/sinks").json()[1])

    def send(*ids: int) -> None:
        client.post("/streams/numbers/events", json=[{"id": id} for id in ids]).raise_for_status()

    send(1, 2, 3)
    wait_for("a sink that is behind", lambda: lake()["gaps"])
    send(4, 5)
    wait_for("another gap", lambda: sum(gap["batches"] for gap in lake()["gaps"]) == 2)
    behind = lake()
    assert (behind["state"], behind["failures"]) == ("behind", 1)
    assert behind["last_error"]
    assert behind["gaps"][-1]["kept"] == "stream"
    (tmp_path / "file").unlink()
    asked = client.post("/pipelines/behind/sinks/lake/catch-up")
    assert asked.status_code == 200, asked.text
    wait_for("in sync", lambda: lake()["state"] == "in_sync")
    assert (lake()["gaps"], lake()["lag"], lake()["cursor"]) == ([], 0, 5)
    client.delete("/pipelines/behind").raise_for_status()
    client.delete("/streams/numbers").raise_for_status()
