from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.api import feed
from tests.api.kit import Api, codes, pipeline, stream


def events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream, each with its `id`, `event` and `data` lines."""
    fields: dict[str, Any] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields:
                yield {"id": fields["id"], "event": fields["event"], **json.loads(fields["data"])}
            fields = {}


def follow(api: Api, count: int, query: str = "", **headers: str) -> list[dict[str, Any]]:
    with api.client.stream("GET", f"/events{query}", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        source = events(response.iter_lines())
        return [next(source) for _ in range(count)]


def test_what_happens_is_told_as_it_happens(api: Api) -> None:
    with api.client.stream("GET", "/events") as response:
        lines = response.iter_lines()
        assert next(lines) == ": connected"
        found = events(lines)
        api.client.post("/pipelines", json=pipeline("orders"))
        began = time.monotonic()
        created = next(found)
        assert time.monotonic() - began < 5
        assert created["event"] == created["type"] == "created"
        assert (created["kind"], created["name"]) == ("Pipeline", "orders")
        assert created["data"]["revision"] == 1
        api.client.patch("/pipelines/orders", json={"batch": {"max_ms": 7}})
        api.client.post("/pipelines/orders/stop")
        api.client.delete("/pipelines/orders")
        told = [next(found) for _ in range(3)]
        assert [event["type"] for event in told] == ["updated", "status", "deleted"]
        assert told[1]["data"]["status"] == "stopped"


@pytest.mark.parametrize("by_header", [True, False])
def test_going_on_after_a_break(api: Api, by_header: bool) -> None:
    before = api.service.registry.last_event_id()
    for name in ("a", "b", "c"):
        api.client.post("/streams", json=stream(name))

    def after(id: object, count: int) -> list[dict[str, Any]]:
        if by_header:  # the header of a browser that reconnects wins over the address it first opened
            return follow(api, count, "?after=0", **{"Last-Event-ID": str(id)})
        return follow(api, count, f"?after={id}")

    first = after(before, 3)
    assert [event["name"] for event in first] == ["a", "b", "c"]
    assert [event["name"] for event in after(first[1]["id"], 1)] == ["c"]


def test_an_id_from_the_future_is_the_end(api: Api) -> None:
    threading.Timer(0.5, lambda: api.client.post("/streams", json=stream("late"))).start()
    (told,) = follow(api, 1, f"?after={2**60}")
    assert told["name"] == "late"


@pytest.mark.parametrize("id", ["x", "-1", str(2**70)])
def test_an_id_that_makes_no_sense(client: httpx.Client, id: str) -> None:
    refused = client.get("/events", headers={"Last-Event-ID": id})
    assert (refused.status_code, codes(refused)) == (422, ["invalid_parameter"])


def test_a_quiet_stream_is_kept_alive(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.1)
    with api.client.stream("GET", "/events") as response:
        lines = response.iter_lines()
        assert [next(lines) for _ in range(5)] == [": connected", "retry: 1000", "", ": ping", ""]


def test_many_followers_see_the_same(api: Api) -> None:
    before = api.service.registry.last_event_id()
    seen: list[list[str]] = []

    def one() -> None:
        with httpx.Client(base_url=api.url, timeout=30, trust_env=False) as client:
            mine = Api(api.url, api.service, client)
            seen.append([event["name"] for event in follow(mine, 10, f"?after={before}")])

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for i in range(10):
        api.client.post("/streams", json=stream(f"s{i}"))
    for thread in threads:
        thread.join()
    assert seen == [[f"s{i}" for i in range(10)]] * 20


def test_one_who_comes_back_too_late_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.control.registry.events.KEPT_EVENTS", 2)
    before = api.service.registry.last_event_id()
    for name in ("a", "b", "c", "d", "e"):
        api.client.post("/streams", json=stream(name))
    with api.client.stream("GET", f"/events?after={before}") as response:
        lines = response.iter_lines()
        assert next(line for line in lines if line.startswith("event:")) == "event: gap"
        assert next(lines) == 'data: {"missed": 3}'
        assert next(events(lines))["name"] == "d"
