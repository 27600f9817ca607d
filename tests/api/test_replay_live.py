"""Replays and resets with a worker that runs them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.control.fleet.progress import state_directory
from tests.api.kit import Api, codes, pipeline, stream
from tests.flows import json_rows

pytestmark = pytest.mark.slow

QUICK = {"max_ms": 20}


@pytest.fixture
def client(live: Api) -> Iterator[httpx.Client]:
    yield live.client
    live.service.import_([], "replace", dry_run=False)


def wait_for(what: str, done: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := done()):
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.1)
    return answer


def events(client: httpx.Client, name: str) -> list[dict[str, Any]]:
    answer = client.get(f"/streams/{name}/events", params={"position": "earliest", "limit": 10_000}).json()
    return [event["columns"] for event in answer["events"]]


def send(client: httpx.Client, name: str, rows: list[dict[str, Any]]) -> None:
    answer = client.post(f"/streams/{name}/events", json=rows)
    assert answer.is_success, answer.text


def completed(client: httpx.Client, replay: dict[str, Any]) -> dict[str, Any]:
    def done() -> Any:
        (found,) = [r for r in client.get("/pipelines/orders/replays").json() if r["id"] == replay["id"]]
        return found if found["status"] not in ("active", "paused") else None

    ended = dict(wait_for("end of the replay", done))
    assert (ended["status"], ended["percent"]) == ("completed", 100.0), ended
    return ended


def test_a_replay_gives_what_the_flow_gave(client: httpx.Client, tmp_path: Path) -> None:
    for name, schema in {"raw": "id BIGINT", "clean": "id BIGINT, twice BIGINT"}.items():
        assert client.post("/streams", json=stream(name, schema=schema)).is_success
    assert client.post("/streams", json=stream("copy", schema="id BIGINT, twice BIGINT")).is_success
    steps = [
        {"type": "sql", "query": "SELECT id, id * 2 AS twice FROM input"},
        {"type": "filter", "where": "id % 3 <> 0"},
    ]
    sinks = [{"id": "clean", "type": "stream", "stream": "clean"}]
    source = {"type": "stream", "stream": "raw"}
    spec = {"source": source, "processors": steps, "sinks": sinks, "batch": QUICK}
    created = client.post("/pipelines", json=pipeline("orders", "active", **spec))
    assert created.status_code == 201, created.text
    send(client, "raw", [{"id": n} for n in range(30)])
    wait_for("live events", lambda: len(events(client, "clean")) == 20)

    shadow = {"shadow": {"type": "file", "path": str(tmp_path / "shadow"), "format": "json"}}
    order = {"from": "offset:6", "to": "offset:21", "sinks": shadow}
    started = client.post("/pipelines/orders/replay", json=order)
    assert started.status_code == 201, started.text
    ended = completed(client, started.json()["replay"])
    assert (ended["delivered"], ended["total"]) == (15, 15)
    expected = [event for event in events(client, "clean") if 6 <= event["id"] < 21]
    assert sorted(json_rows(tmp_path / "shadow"), key=lambda row: row["id"]) == expected

    order = {"from": "earliest", "sinks": {"shadow": {"type": "stream", "stream": "copy"}}}
    started = client.post("/pipelines/orders/replay", json=order)
    send(client, "raw", [{"id": 31}])
    completed(client, started.json()["replay"])
    assert events(client, "copy") == events(client, "clean")[:20], "as the stream was when it began"
    wait_for("the last event", lambda: {"id": 31, "twice": 62} in events(client, "clean"))
    assert len(events(client, "clean")) == 21, "what goes elsewhere is not seen here"


def test_a_reset_goes_on_where_the_flow_is(client: httpx.Client, live: Api) -> None:
    client.post("/streams", json=stream("ticks", schema="id BIGINT, at TIMESTAMP"))
    client.post("/streams", json=stream("counts", schema="window_start TIMESTAMP, n BIGINT"))

    def at(*seconds: int) -> list[dict[str, Any]]:
        return [{"id": s, "at": f"2026-01-01T00:{s // 60:02}:{s % 60:02}Z"} for s in seconds]

    def spec(size: str) -> dict[str, Any]:
        window = {"id": "w", "type": "window", "time": "at", "size": size, "aggregates": {"n": "count(*)"}}
        shape = {"type": "drop_fields", "fields": ["window_end"]}
        sinks = [{"type": "stream", "stream": "counts"}]
        source = {"type": "stream", "stream": "ticks"}
        return {"source": source, "processors": [window, shape], "sinks": sinks, "batch": QUICK}

    def counts() -> list[int]:
        return [event["n"] for event in events(client, "counts")]

    assert client.post("/pipelines", json=pipeline("orders", "active", **spec("1m"))).status_code == 201
    send(client, "ticks", at(1, 2, 61, 62))
    wait_for("the first window", lambda: counts() == [2])
    directory = Path(state_directory(live.service.settings, live.service.get("Pipeline", "orders")))
    (before,) = directory.glob("*-????????")

    plan = client.post("/pipelines/orders/plan", json=spec("30s")).json()
    effects = {step["id"]: step["effect"] for step in plan["steps"]}
    assert (effects["source"], effects["w"], effects["drop_fields"]) == ("restarts", "resets", "keeps")
    refused = client.patch("/pipelines/orders", json=spec("30s"))
    assert (refused.status_code, codes(refused)) == (409, ["would_reset"])
    accepted = client.patch("/pipelines/orders?accept_reset=true", json=spec("30s"))
    assert accepted.is_success, accepted.text
    send(client, "ticks", at(63, 64, 65, 200))
    wait_for("a window of the new size", lambda: counts() == [2, 3])
    wait_for("the end of the old checkpoint", lambda: not before.exists())

    send(client, "ticks", at(201))
    again = client.patch("/pipelines/orders?accept_reset=true&from=earliest", json=spec("1m"))
    assert again.is_success, again.text
    wait_for("windows from the start", lambda: counts() == [2, 3, 2, 5])
    assert json.dumps(client.get("/pipelines/orders").json()["error"]) == "null"
