"""The sinks of what runs: how far they have come, and letting them catch up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.monitor.pulse import Pulse
from tests.api.kit import Api, codes, pipeline, stream
from tests.cli.commands import wait_for
from tests.flows import json_rows


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
        "path": "spec.sinks[0]",
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
    assert (lake["id"], lake["path"], lake["guarantee"]) == ("lake", "spec.sinks[1]", "exactly-once")
    assert not lake["required"]


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
    assert [(sink["id"], sink["path"]) for sink in found] == [
        ("raw", "spec.outputs[0]"),
        ("raw:2", "spec.outputs[1]"),
    ]


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
    assert behind["last_error"].startswith("spec.sinks[1]: sink 'lake': ")
    assert behind["gaps"][-1]["kept"] == "stream"
    (tmp_path / "file").unlink()
    asked = client.post("/pipelines/behind/sinks/lake/catch-up")
    assert asked.status_code == 200, asked.text
    wait_for("in sync", lambda: lake()["state"] == "in_sync")
    assert (lake()["gaps"], lake()["lag"], lake()["cursor"]) == ([], 0, 5)
    client.delete("/pipelines/behind").raise_for_status()
    client.delete("/streams/numbers").raise_for_status()


def lake(blocked: Path, **options: Any) -> dict[str, Any]:
    where = {"id": "lake", "type": "file", "path": str(blocked / "out"), "format": "json"}
    return {**where, "retries": 0, "backoff_ms": 600_000, **options}


@pytest.mark.slow
def test_an_error_names_the_sink_and_its_place(live: Api, blocked: Path) -> None:
    client = live.client
    body = pipeline(
        "orders",
        "active",
        source={"type": "generate", "count": 10},
        sinks=[{"type": "drop"}, lake(blocked)],
        restart={"max_attempts": 4, "backoff_ms": 1},
    )
    client.post("/pipelines", json=body).raise_for_status()
    wait_for("the end", lambda: client.get("/pipelines/orders").json()["status"] == "failed")
    found = client.get("/pipelines/orders").json()
    for told in (found["error"], *found["attempts"]):
        assert told["path"] == "spec.sinks[1]"
        assert told["message"].startswith("sink 'lake': ")
    drop, sink = client.get("/pipelines/orders/sinks").json()
    assert (drop["state"], drop["failures"]) == ("in_sync", 0)
    assert (sink["state"], sink["failures"], sink["last_ack_at"]) == ("failing", 4, None)
    assert sink["last_error"].startswith("spec.sinks[1]: sink 'lake': ")
    assert found["ops"]["sinks"]["lake"]["last_error"] == sink["last_error"]
    lines = client.get("/pipelines/orders/logs", params={"limit": 100}).json()["lines"]
    failed = [line for line in lines if line["message"].startswith("delivery failed: sink 'lake': ")]
    assert len(failed) == 4
    assert {(line["sink"], line["fields"]["path"]) for line in failed} == {("lake", "spec.sinks[1]")}
    told = CliRunner().invoke(app, ["sinks", "orders", "--server", live.url]).stdout
    assert "lake last error at spec.sinks[1]: sink 'lake': " in told


@pytest.mark.slow
@pytest.mark.parametrize("status", ["completed", "paused", "stopped"])
def test_the_advice_for_a_sink_that_is_behind_works(live: Api, blocked: Path, status: str) -> None:
    client, finite = live.client, status == "completed"
    source = {"type": "generate", "count": 10} if finite else {"type": "generate", "rate": 50}
    sinks = [{"type": "drop"}, lake(blocked, required=False)]
    client.post(
        "/pipelines", json=pipeline("orders", "active", source=source, sinks=sinks)
    ).raise_for_status()

    def behind() -> dict[str, Any]:
        return dict(client.get("/pipelines/orders/sinks").json()[1])

    wait_for("a gap", lambda: behind()["gaps"])
    if not finite:
        client.post(f"/pipelines/orders/{'pause' if status == 'paused' else 'stop'}").raise_for_status()
    wait_for(status, lambda: client.get("/pipelines/orders").json()["status"] == status)
    assert behind()["state"] == "behind"
    missed = [gap["events"] for gap in behind()["gaps"]]
    told = Pulse(live.service).look().attention
    advice = next(each.advice for each in told if each.code == "sink_behind")
    blocked.unlink()
    for command in re.findall(r"`penstock ([^`]+)`", advice):
        result = CliRunner().invoke(app, [*command.split(), "--server", live.url])
        assert result.exit_code == 0, result.output
    wait_for("what it missed", lambda: not behind()["gaps"])
    wait_for("in sync", lambda: behind()["state"] == "in_sync")
    assert len(json_rows(blocked / "out")) >= sum(missed)
