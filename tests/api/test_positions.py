"""Moving the position of a flow in its stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.control.fleet.progress import state_directory
from penstock.streams.storage import Cursor
from tests.api.kit import Api, begun, codes, pipeline, stream
from tests.cli.commands import wait_for

NDJSON = {"Content-Type": "application/x-ndjson"}


def send(client: httpx.Client, name: str, *values: Any) -> None:
    body = "\n".join(map(json.dumps, values))
    assert client.post(f"/streams/{name}/events", content=body, headers=NDJSON).status_code == 200


def reading(name: str, status: str = "paused", **spec: Any) -> dict[str, Any]:
    return pipeline(name, status, source={"type": "stream", "stream": "numbers"}, **spec)


def move(client: httpx.Client, name: str, to: str, **more: Any) -> httpx.Response:
    return client.post(f"/pipelines/{name}/position", json={"to": to, **more})


def test_a_move_is_counted_before_it_is_made(api: Api) -> None:
    client, service = api.client, api.service
    client.post("/streams", json=stream("numbers"))
    send(client, "numbers", *range(10))
    client.post("/pipelines", json=reading("reader"))
    reader, log = begun(service, "reader"), service.streams.log("numbers")
    log.move_cursor(Cursor(reader, 6))

    def effect(to: str) -> tuple[int, int, int]:
        found = move(client, "reader", to, dry_run=True).json()
        assert (found["stream"], found["before"], found["applied"]) == ("numbers", 6, False)
        return found["after"], found["again"], found["skipped"]

    assert effect("earliest") == (0, 6, 0)
    assert effect("offset:8") == (8, 0, 2)
    assert effect("latest") == (10, 0, 4)
    assert effect("time:2020-01-01T00:00:00Z") == (0, 6, 0)
    assert effect("offset:6") == (6, 0, 0)
    directory = Path(state_directory(service.settings, service.get("Pipeline", "reader")))
    assert len(list(directory.iterdir())) == 1

    made = move(client, "reader", "offset:2")
    assert made.status_code == 200, made.text
    assert (made.json()["again"], made.json()["applied"], made.json()["restarts"]) == (4, True, False)
    assert [cursor.next for cursor in log.storage.cursors() if cursor.reader == reader] == [2]
    assert list(directory.iterdir()) == []  # else the flow would continue with its checkpoint


def test_what_cannot_be_moved(api: Api) -> None:
    client = api.client
    client.post("/streams", json=stream("numbers"))
    send(client, "numbers", 1, 2)
    client.post("/pipelines", json=reading("reader"))
    client.post("/pipelines", json=pipeline("makes"))
    outside = move(client, "reader", "offset:3")
    assert (outside.status_code, codes(outside)) == (409, ["outside_stream"])
    assert "offset:0 to offset:2" in outside.json()["hint"]
    none = move(client, "makes", "earliest")
    assert (none.status_code, codes(none)) == (409, ["no_position"])
    assert move(client, "nobody", "earliest").status_code == 404
    assert move(client, "reader", "somewhere").status_code == 422
    assert client.post("/pipelines/reader/position", json={}).status_code == 422


@pytest.mark.slow
def test_a_running_flow_reads_again_and_skips(live: Api) -> None:
    client = live.client
    for name in ("numbers", "copies"):
        client.post("/streams", json=stream(name))
    send(client, "numbers", *range(4))
    spec = {"sinks": [{"type": "stream", "stream": "copies"}], "batch": {"max_ms": 20}}
    client.post("/pipelines", json=reading("copier", "active", **spec))

    def copies() -> list[int]:
        events = client.get("/streams/copies/events").json()["events"]
        return [int(event["value"]) for event in events]

    wait_for("copies", lambda: len(copies()) == 4, 120)
    found = move(client, "copier", "offset:2")
    assert found.status_code == 200, found.text
    assert (found.json()["again"], found.json()["restarts"]) == (2, True)
    wait_for("copies again", lambda: len(copies()) == 6, 120)
    assert copies() == [0, 1, 2, 3, 2, 3]

    client.post("/pipelines/copier/pause").raise_for_status()
    send(client, "numbers", 4, 5)
    assert move(client, "copier", "offset:5").json()["skipped"] == 1
    client.post("/pipelines/copier/resume").raise_for_status()
    wait_for("what was not skipped", lambda: len(copies()) == 7, 120)
    assert copies()[-1] == 5
