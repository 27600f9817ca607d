"""How everything is: at once, as it changes, as a graph and over time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from penstock.control.documents.service import Service
from penstock.control.monitor.history import STEP_MS
from tests.api.kit import Api, codes, pipeline, running, stream
from tests.cli.commands import wait_for

Message = tuple[str, dict[str, Any]]


def messages(lines: Iterator[str]) -> Iterator[Message]:
    """The messages of a stream, by name and content."""
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def keys(parts: list[dict[str, Any]]) -> list[str]:
    return [part["key"] for part in parts]


def awaited(client: httpx.Client, seen: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The overview once it shows something: it is some seconds old at times."""
    wait_for("overview", lambda: seen(client.get("/overview").json()))
    found: dict[str, Any] = client.get("/overview").json()
    return found


def test_everything_at_once(client: httpx.Client) -> None:
    client.post("/streams", json=stream("Raw")).raise_for_status()
    source = {"type": "stream", "stream": "raw"}
    client.post("/pipelines", json=pipeline("Orders", source=source)).raise_for_status()
    found = awaited(client, lambda now: keys(now["flows"]) == ["Pipeline/orders"] and now["streams"])
    assert set(found) == {
        *("at", "version", "started_at", "totals", "flows", "streams", "workers", "startup"),
        *("attention", "gone"),
    }
    (flow,), (raw,), (worker,) = found["flows"], found["streams"], found["workers"]
    assert (flow["key"], flow["name"], flow["status"], flow["phase"]) == (
        "Pipeline/orders",
        "Orders",
        "paused",
        "idle",
    )
    assert flow["sinks"] == [
        {"id": "drop", "type": "drop", "state": "in_sync", "rate": 0.0, "events": 0, "failures": 0}
    ]
    assert (raw["key"], raw["name"]) == ("Stream/raw", "Raw")
    assert [(reader["key"], reader["lag_events"]) for reader in raw["readers"]] == [("Pipeline/orders", 0)]
    assert (worker["alive"], worker["flow_keys"], worker["cpu_percent"]) == (True, [], None)
    assert "token" not in json.dumps(found)
    assert found["gone"] == []


def test_what_changes_is_told_to_those_who_follow(api: Api) -> None:
    client = api.client
    client.post("/streams", json=stream("raw")).raise_for_status()
    client.post("/streams", json=stream("quiet")).raise_for_status()
    awaited(client, lambda now: {"Stream/raw", "Stream/quiet"} <= set(keys(now["streams"])))
    with client.stream("GET", "/overview/follow") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        told = messages(response.iter_lines())
        name, first = next(told)
        assert name == "overview"
        assert {"Stream/raw", "Stream/quiet"} <= set(keys(first["streams"]))
        client.post("/streams/raw/events", json=[{"id": 1}]).raise_for_status()
        client.post("/pipelines", json=pipeline("orders")).raise_for_status()
        changed: dict[str, Any] = {}
        while not {"Stream/raw", "Pipeline/orders"} <= changed.keys():
            name, change = next(told)
            assert name == "change"
            assert change["at"] > first["at"]
            changed |= {part["key"]: part for part in change["flows"] + change["streams"]}
        assert "Stream/quiet" not in changed
        assert changed["Stream/raw"]["events"] == 1
        client.delete("/pipelines/orders").raise_for_status()
        while "Pipeline/orders" not in (change := next(told)[1])["gone"]:
            pass
        assert keys(change["flows"]) == []


def test_all_who_follow_see_the_same(api: Api) -> None:
    seen: list[list[str]] = []

    def one() -> None:
        with (
            httpx.Client(base_url=api.url, timeout=60, trust_env=False) as client,
            client.stream("GET", "/overview/follow") as response,
        ):
            told = messages(response.iter_lines())
            seen.append([next(told)[0] for _ in range(3)])

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [["overview", "change", "change"]] * 10


def test_those_who_follow_are_sent_away_when_the_server_ends(service: Service) -> None:
    ended = threading.Event()

    def follow(url: str) -> None:
        with httpx.stream("GET", f"{url}/overview/follow", timeout=60, trust_env=False) as response:
            began.set()
            for _ in response.iter_lines():
                pass
        ended.set()

    began = threading.Event()
    with running(service) as api:
        threading.Thread(target=follow, args=(api.url,), daemon=True).start()
        assert began.wait(30)
        (told,) = api.client.get("/overview").json()["attention"]
        assert (told["code"], told["severity"]) == ("no_worker", "info")  # it has just begun
    assert ended.wait(30)


def test_the_graph(client: httpx.Client) -> None:
    client.post("/streams", json=stream("raw")).raise_for_status()
    source = {"type": "stream", "stream": "raw"}
    client.post("/pipelines", json=pipeline("orders", source=source)).raise_for_status()
    found = client.get("/topology").json()
    assert keys(found["nodes"]) == ["Stream/raw", "Pipeline/orders", "Pipeline/orders#sinks/drop"]
    reads, writes = found["edges"]
    assert reads == {
        "key": reads["key"],
        "from": "Stream/raw",
        "to": "Pipeline/orders",
        "flow": "Pipeline/orders",
        "sink": None,
        "kind": "data",
    }
    assert (writes["to"], writes["sink"]) == ("Pipeline/orders#sinks/drop", "drop")


@pytest.mark.parametrize("path", ["/history", "/pipelines/orders/history", "/streams/raw/history"])
def test_numbers_over_time(client: httpx.Client, path: str) -> None:
    client.post("/streams", json=stream("raw")).raise_for_status()
    client.post("/pipelines", json=pipeline("orders")).raise_for_status()
    wait_for("history", lambda: len(client.get(path).json()["at"]) >= 2)
    found = client.get(path, params={"minutes": 1}).json()
    assert found["step_ms"] == STEP_MS
    assert found["at"] == sorted(found["at"])
    assert abs(found["at"][-1] - time.time() * 1000) < 60_000
    assert {len(numbers) for numbers in found["series"].values()} == {len(found["at"])}
    assert "in_rate" in found["series"]


def test_numbers_of_what_is_not_there(client: httpx.Client) -> None:
    assert client.get("/pipelines/nobody/history").status_code == 404
    assert client.get("/streams/nobody/history").status_code == 404
    client.post("/sinks", json={"metadata": {"name": "lake"}, "spec": {"type": "drop"}}).raise_for_status()
    assert codes(client.get("/sinks/lake/history")) == ["not_runnable"]
    for minutes in ("0", "1441", "x"):
        refused = client.get("/history", params={"minutes": minutes})
        assert (refused.status_code, codes(refused)) == (422, ["invalid_parameter"])


@pytest.mark.slow
def test_what_runs_has_rates_and_its_worker_uses_something(live: Api) -> None:
    client = live.client
    client.post("/streams", json=stream("pulsing", schema="id BIGINT")).raise_for_status()
    source = {"type": "stream", "stream": "pulsing"}
    body = pipeline("pulse", "active", source=source, batch={"max_ms": 10})
    client.post("/pipelines", json=body).raise_for_status()

    def overview() -> dict[str, Any] | None:
        """What is shown while events come, once it shows all that is to be seen."""
        client.post("/streams/pulsing/events", json=[{"id": i} for i in range(100)]).raise_for_status()
        found = client.get("/overview").json()
        parts = {part["key"]: part for part in [*found["flows"], *found["streams"]]}
        flow, raw = parts.get("Pipeline/pulse"), parts.get("Stream/pulsing")
        (worker,) = found["workers"]
        if not flow or not raw or not raw["readers"] or worker["cpu_percent"] is None:
            return None
        seen = flow["in_rate"] and flow["out_rate"] and flow["latency_ms"] and raw["in_rate"]
        return {"flow": flow, "stream": raw, "worker": worker} if seen else None

    found = wait_for("rates", overview)
    assert (found["flow"]["phase"], found["flow"]["status"]) == ("running", "active")
    assert found["flow"]["batch_ms"] > 0
    assert found["flow"]["lag_events"] is not None
    assert [reader["key"] for reader in found["stream"]["readers"]] == ["Pipeline/pulse"]
    assert found["worker"]["memory_bytes"] > 0
    assert "Pipeline/pulse" in found["worker"]["flow_keys"]

    def remembered() -> bool:
        client.post("/streams/pulsing/events", json=[{"id": 1}]).raise_for_status()
        series = client.get("/pipelines/pulse/history").json()["series"]
        return any(series["latency_ms"]) and any(series["batch_ms"]) and any(series["sink:drop"])

    wait_for("history", remembered)
    client.delete("/pipelines/pulse").raise_for_status()
    client.delete("/streams/pulsing").raise_for_status()
