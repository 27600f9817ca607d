"""Replays as documents: what is made of a flow, a range and a choice of sinks. Nothing runs here."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from penstock.control.fleet.progress import flow_name
from penstock.streams.storage import Cursor
from tests.api.kit import Api, codes, pipeline, stream

STREAM = {"type": "stream", "stream": "raw", "position": "latest", "metadata": True}
SINKS = [
    {"id": "lake", "type": "file", "path": "out", "format": "json"},
    {"id": "side", "type": "console", "required": False},
]
SHADOW = {"shadow": {"type": "file", "path": "shadow", "format": "json"}}


@pytest.fixture
def orders(api: Api) -> httpx.Client:
    """A pipeline over a stream of ten events."""
    client = api.client
    client.post("/streams", json=stream("raw", schema="id BIGINT"))
    for i in range(2):
        assert client.post("/streams/raw/events", json=[{"id": i * 5 + n} for n in range(5)]).is_success
    spec: dict[str, Any] = {"source": STREAM, "sinks": SINKS, "batch": {"max_events": 3}}
    spec["processors"] = [{"id": "f", "type": "filter", "where": "id > 0"}]
    spec["commit_policy"] = {"mode": "required"}
    created = client.post("/pipelines", json=pipeline("orders", **spec))
    assert created.status_code == 201, created.text
    return client


def replay(client: httpx.Client, **order: Any) -> httpx.Response:
    return client.post("/pipelines/orders/replay", json={"from": "earliest", "sinks": "all", **order})


def made(client: httpx.Client, **order: Any) -> dict[str, Any]:
    answer = replay(client, **order)
    assert answer.status_code == 201, answer.text
    return dict(client.get(f"/pipelines/{answer.json()['replay']['id']}").json())


def test_a_dry_run_counts_and_starts_nothing(orders: httpx.Client) -> None:
    answer = replay(orders, **{"from": "offset:2", "to": "offset:8", "dry_run": True})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    found = told["range"]
    assert (found["stream"], found["first"], found["next"], found["events"]) == ("raw", 2, 8, 6)
    assert found["bytes"] > 0
    assert found["first_time"] <= found["last_time"]
    assert [(s["id"], s["guarantee"], s["again"]) for s in told["sinks"]] == [
        ("lake", "exactly-once", True),
        ("side", "at-least-once", True),
    ]
    assert (told["replay"], told["warnings"]) == (None, [])
    assert [item["name"] for item in orders.get("/pipelines").json()["items"]] == ["orders"]
    shadow = replay(orders, sinks=SHADOW, dry_run=True).json()["sinks"]
    assert [(s["id"], s["type"], s["again"]) for s in shadow] == [("shadow", "file", False)]


def test_a_replay_is_a_pipeline_with_an_end(orders: httpx.Client, api: Api) -> None:
    first = made(orders, **{"from": "offset:2", "to": "offset:8"})
    assert (first["name"], first["metadata"]["labels"]) == ("orders replay 1", {"replay_of": "orders"})
    assert first["spec"]["source"] == {
        "type": "stream",
        "stream": "raw",
        "position": "offset:2",
        "until": "offset:8",
        "metadata": True,
        "gap": "skip",
    }
    live = orders.get("/pipelines/orders").json()["spec"]
    for same in ("processors", "sinks", "batch", "commit_policy"):
        assert first["spec"][same] == live[same]
    second = made(orders, sinks=["side"], name="Again")
    assert (second["name"], [sink["id"] for sink in second["spec"]["sinks"]]) == ("Again", ["side"])
    assert second["spec"]["source"]["until"] == "offset:10", "the end as it was then"

    record = api.service.get("Pipeline", first["id"])
    api.service.streams.log("raw").move_cursor(Cursor(flow_name(record), 5))
    listed = orders.get("/pipelines/orders/replays").json()
    assert [(r["name"], r["delivered"], r["total"], r["percent"], r["status"]) for r in listed] == [
        ("Again", 0, 10, 0.0, "active"),
        ("orders replay 1", 3, 6, 50.0, "active"),
    ]
    assert orders.delete(f"/pipelines/{first['id']}").status_code == 204
    assert len(orders.get("/pipelines/orders/replays").json()) == 1


def test_sinks_that_steps_choose_by_id_are_there_and_drop(orders: httpx.Client) -> None:
    route = {"type": "route", "rules": [{"when": "id > 5", "sinks": ["lake"]}], "default": ["side"]}
    assert orders.patch("/pipelines/orders", json={"processors": [route]}).status_code == 200
    one = made(orders, sinks=["lake"])["spec"]
    assert [(sink["id"], sink["type"]) for sink in one["sinks"]] == [("lake", "file"), ("side", "drop")]
    assert one["processors"] == [route]
    shadow = made(orders, sinks=SHADOW)["spec"]
    assert [sink["id"] for sink in shadow["sinks"]] == ["shadow", "lake", "side"]
    assert {sink["type"] for sink in shadow["sinks"][1:]} == {"drop"}
    assert shadow["processors"][1]["default"] == "all", "one that stands for all gets everything"


def test_a_task_is_replayed_with_the_conditions_of_its_outputs(orders: httpx.Client) -> None:
    for name in ("large", "rest"):
        orders.post("/streams", json=stream(name, schema="id BIGINT"))
    outputs = [{"stream": "large", "when": "id > 5"}, {"stream": "rest"}]
    spec = {"input": "raw", "processors": [{"type": "filter", "where": "true"}], "outputs": outputs}
    assert orders.post(
        "/tasks", json={"metadata": {"name": "t"}, "spec": spec, "status": "paused"}
    ).is_success
    answer = orders.post("/tasks/t/replay", json={"from": "earliest", "sinks": ["large"]})
    assert answer.status_code == 201, answer.text
    made = orders.get(f"/pipelines/{answer.json()['replay']['id']}").json()
    assert (made["name"], made["metadata"]["labels"]) == ("task t replay 1", {"replay_of": "task/t"})
    assert [(sink["id"], sink["type"]) for sink in made["spec"]["sinks"]] == [
        ("large", "stream"),
        ("rest", "drop"),
    ]
    assert [rule["when"] for rule in made["spec"]["processors"][1]["rules"]] == ["id > 5", "true"]
    assert len(orders.get("/tasks/t/replays").json()) == 1
    assert orders.get("/pipelines/orders/replays").json() == []


def test_what_is_pushed_to_a_pipeline_is_replayed_from_its_input(client: httpx.Client) -> None:
    source = {"type": "http", "schema": "id BIGINT"}
    client.post("/pipelines", json=pipeline("orders", source=source, buffer={"type": "wal"}))
    assert client.post("/ingest/orders", json=[{"id": 1}, {"id": 2}]).is_success
    spec = made(client, sinks=SHADOW)["spec"]
    assert (spec["source"]["stream"], spec["source"]["until"]) == ("orders.in", "offset:2")
    refused = client.delete("/pipelines/orders")
    assert (refused.status_code, codes(refused)) == (409, ["referenced"])
    assert client.delete("/pipelines/orders_replay_1").status_code == 204
    assert client.delete("/pipelines/orders").status_code == 204


def test_a_name_that_belongs_to_no_input_is_no_stream(orders: httpx.Client) -> None:
    source = {"type": "stream", "stream": "nobody.in"}
    refused = orders.post("/pipelines", json=pipeline("p", "active", source=source))
    assert (refused.status_code, codes(refused)) == (422, ["unknown_reference"])


@pytest.mark.parametrize(
    ("order", "status", "code", "path"),
    [
        ({"from": "offset:10"}, 409, "empty_range", "from"),
        ({"from": "offset:5", "to": "offset:5"}, 409, "empty_range", "from"),
        ({"from": "soon"}, 422, "invalid_value", "from"),
        ({"sinks": ["lakes"]}, 422, "unknown_sink", "sinks[0]"),
        ({"sinks": {"shadow": {"type": "file"}}}, 422, "missing_field", "sinks.shadow.path"),
        (
            {"sinks": {"shadow": {"type": "stream", "stream": "x"}}},
            422,
            "unknown_reference",
            "sinks.shadow.stream",
        ),
        ({"name": "?"}, 422, "invalid_name", "name"),
        ({"colour": "red"}, 422, "unknown_field", "colour"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_orders_that_make_no_sense(
    orders: httpx.Client, order: dict[str, Any], status: int, code: str, path: str, dry_run: bool
) -> None:
    refused = replay(orders, **order, dry_run=dry_run)
    assert (refused.status_code, refused.json()["code"], refused.json()["path"]) == (status, code, path)
    assert orders.get("/pipelines/orders/replays").json() == []


def test_what_reads_no_stream_cannot_be_replayed(client: httpx.Client) -> None:
    client.post("/pipelines", json=pipeline("orders"))
    refused = replay(client)
    assert (refused.status_code, codes(refused)) == (409, ["not_replayable"])
    assert codes(client.post("/pipelines/nobody/replay", json={"from": "earliest", "sinks": "all"})) == [
        "not_found"
    ]


def test_what_is_gone_is_told(client: httpx.Client, api: Api) -> None:
    wal = {"max_segments": 2, "segment_bytes": 1024}
    client.post("/streams", json=stream("raw", wal=wal))
    for i in range(30):
        assert client.post("/streams/raw/events", json=[{"value": f"{i}" * 200}]).is_success
    first = api.service.streams.log("raw").bounds().first
    assert first > 0
    client.post("/pipelines", json=pipeline("orders", source={"type": "stream", "stream": "raw"}))
    refused = replay(client, **{"from": "offset:0"})
    assert (refused.status_code, codes(refused)) == (409, ["range_gone"])
    assert f"offset:{first}" in refused.json()["hint"]
    told = replay(client, **{"from": "time:2020-01-01T00:00:00Z", "dry_run": True}).json()
    assert (told["range"]["first"], [w["code"] for w in told["warnings"]]) == (first, ["gap"])
    assert replay(client, **{"from": "earliest", "dry_run": True}).json()["warnings"] == []
