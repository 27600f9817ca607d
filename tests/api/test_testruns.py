"""Test runs over HTTP, with a worker that has Spark."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.kit import Api, codes, pipeline, stream

SOURCE = {"type": "http", "schema": "id BIGINT, amount DOUBLE"}
STEPS = [
    {"id": "some", "type": "filter", "where": "amount > 50"},
    {"id": "gross", "type": "map", "set": {"gross": "round(amount * 1.19, 2)"}},
]
EVENTS = [{"id": 1, "amount": 80}, {"id": 2, "amount": 20}]
GROSS = {"id": 1, "amount": 80.0, "gross": 95.2}
CASES = [
    {"name": "good", "input": EVENTS, "expect": {"output": [GROSS], "steps": {"some": {"dropped": 1}}}},
    {"name": "bad", "input": EVENTS, "expect": {"output": [{**GROSS, "gross": 95}]}},
    {"name": "elsewhere", "input": "events.json", "expect": {"output": {"count": 1}}},
]


def document(**spec: Any) -> dict[str, Any]:
    return pipeline("tried", source=SOURCE, processors=STEPS, **spec)


def plain(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if name != "$meta"} for event in events]


@pytest.mark.slow
def test_documents_are_tried(live: Api) -> None:
    def test(**body: Any) -> httpx.Response:
        return live.client.post("/test", json=body)

    answer = test(document=document(), events=EVENTS)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert (body["ok"], body["errors"], body["cases"]) == (True, [], None)
    assert [(step["id"], step["dropped"], step["errors"]) for step in body["steps"]] == [
        ("some", 1, []),
        ("gross", 0, []),
    ]
    assert plain(body["output"]["drop"]) == [GROSS]
    assert plain(body["steps"][0]["dropped_events"]) == [{"id": 2, "amount": 20.0}]

    # A saved one, on the newest events of a stream, and on text
    assert live.client.post("/pipelines", json=document(tests=CASES)).status_code == 201
    live.client.post("/streams", json=stream("Tried on", schema="id BIGINT, amount INT"))
    for n in range(5):
        live.client.post("/streams/tried_on/events", json={"id": n, "amount": n * 20})
    found = test(name="Tried", events={"stream": "tried_on", "last": 2}).json()
    assert [event["id"] for event in found["output"]["drop"]] == [3, 4]
    assert found["output"]["drop"][0]["$meta"]["time"]
    middle = test(name="Tried", events={"stream": "tried_on", "from": "offset:3", "count": 1}).json()
    assert [event["id"] for event in middle["output"]["drop"]] == [3]
    latest = test(name="Tried", events={"stream": "tried_on", "from": "latest", "count": 2}).json()
    assert latest["output"] == found["output"]
    csv = test(name="tried", text="id,amount\n7,51\n", content_type="text/csv").json()
    assert [event["id"] for event in csv["output"]["drop"]] == [7]

    # Its own tests
    ran = test(name="tried", run="all").json()
    assert not ran["ok"]
    good, bad, elsewhere = ran["cases"]
    assert (good["passed"], good["differences"]) == (True, [])
    assert [(d["where"], d["expected"], d["actual"]) for d in bad["differences"]] == [
        ("output[0].gross", 95, 95.2)
    ]
    assert [problem["code"] for problem in elsewhere["errors"]] == ["file_input"]
    assert test(name="tried", run=["good"]).json()["ok"]
    unknown = test(name="tried", run=["godo"])
    assert (unknown.status_code, codes(unknown)) == (422, ["unknown_test"])

    # What is wrong
    wrong = test(document={**document(), "spec": {**document()["spec"], "tasks": ["x"]}}, events=[]).json()
    assert (wrong["ok"], {p["path"] for p in wrong["errors"]}) == (False, {"spec.tasks", "spec.tasks[0]"})
    misfit = test(name="tried", events=[{"id": "x"}])
    assert (misfit.status_code, codes(misfit), misfit.json()["path"]) == (422, ["wrong_type"], "events[0]")
    assert test(name="nobody", events=[]).status_code == 404
    assert test(name="tried", text="x", content_type="text/html").status_code == 415
    assert live.client.delete("/pipelines/tried").status_code == 204


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"events": []},
        {"name": "x", "document": {}, "events": []},
        {"name": "x", "events": [], "text": ""},
        {"name": "x", "events": {"stream": "s", "last": 0}},
        {"name": "x", "events": {"stream": "s", "from": "newest", "count": 1}},
        {"name": "x", "events": {"stream": "s", "from": "latest", "last": 1}},
        {"name": "x", "run": "some"},
        {"name": "x", "events": [], "colour": "red"},
    ],
)
def test_what_is_no_test_run(client: httpx.Client, body: Any) -> None:
    answer = client.post("/test", json=body)
    assert (answer.status_code, len(codes(answer)) > 0) == (422, True)
