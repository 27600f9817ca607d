"""Events of a stream that meet a condition, and ranges of a stream."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from penstock.control.streams import search
from tests.api.kit import codes, stream

NDJSON = {"Content-Type": "application/x-ndjson"}


def send(client: httpx.Client, name: str, *events: Any) -> None:
    body = "\n".join(map(json.dumps, events))
    assert client.post(f"/streams/{name}/events", content=body, headers=NDJSON).status_code == 200


@pytest.fixture
def orders(client: httpx.Client) -> str:
    """Orders 0 to 99; every tenth is of ada."""
    client.post("/streams", json=stream("orders", schema="id INT, customer STRING"))
    send(client, "orders", *({"id": i, "customer": "bob" if i % 10 else "ada"} for i in range(100)))
    return "orders"


def find(client: httpx.Client, name: str, **query: str | int) -> dict[str, Any]:
    answer = client.get(f"/streams/{name}/events", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ids(found: dict[str, Any]) -> list[int]:
    return [event["columns"]["id"] for event in found["events"]]


def test_events_are_found_page_by_page(client: httpx.Client, orders: str) -> None:
    found = find(client, orders, where="customer = 'ada'", limit=3)
    assert ids(found) == [0, 10, 20]
    assert (found["first"], found["next"], found["end"], found["searched"]) == (0, 21, 100, 21)
    rest = find(client, orders, where="customer = 'ada'", position="offset:21")
    assert ids(rest) == [30, 40, 50, 60, 70, 80, 90]
    assert (rest["next"], rest["searched"]) == (100, 79)


def test_the_most_recent_events_are_searched_from_the_end(
    client: httpx.Client, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PIECE", 7)
    found = find(client, orders, where="customer = 'ada'", last=3)
    assert ids(found) == [70, 80, 90]
    assert (found["first"], found["next"]) == (70, 100)
    assert ids(find(client, orders, where="customer = 'ada'", last=3, to="offset:70")) == [40, 50, 60]
    all_of_them = find(client, orders, where="customer = 'ada'", last=1000)
    assert ids(all_of_them) == list(range(0, 100, 10))
    assert (all_of_them["first"], all_of_them["searched"]) == (0, 100)


def test_one_request_searches_a_limited_number_of_events(
    client: httpx.Client, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PIECE", 10)
    monkeypatch.setattr(search, "MOST", 20)
    found = find(client, orders, where="id = 99")
    assert (ids(found), found["next"], found["searched"]) == ([], 20, 20)
    back = find(client, orders, where="id = 0", last=5)
    assert (ids(back), back["first"], back["searched"]) == ([], 80, 20)


def test_a_range_has_an_end(client: httpx.Client, orders: str) -> None:
    assert ids(find(client, orders, position="offset:5", to="offset:8")) == [5, 6, 7]
    assert ids(find(client, orders, last=2, to="offset:8")) == [6, 7]
    assert find(client, orders, position="offset:8", to="offset:8")["events"] == []
    time.sleep(0.01)
    send(client, orders, {"id": 100, "customer": "eve"})
    moment = find(client, orders, last=1)["events"][0]["time"]
    assert len(find(client, orders, to=f"time:{moment}", limit=1000)["events"]) == 100
    assert ids(find(client, orders, position=f"time:{moment}", where="id > 1")) == [100]


def test_a_condition_that_is_wrong_is_told_at_its_place(client: httpx.Client, orders: str) -> None:
    refused = client.get(f"/streams/{orders}/events", params={"where": "custmer = 'ada'"})
    assert (refused.status_code, codes(refused)) == (422, ["invalid_filter"])
    assert refused.json()["path"] == "where"
    assert refused.json()["message"] == "there is no field 'custmer' (line 1, column 1)"
    assert refused.json()["hint"] == "did you mean 'customer'?"
