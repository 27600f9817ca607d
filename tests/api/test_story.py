"""The story of an event over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from tests.api.kit import Api, codes, pipeline, stream
from tests.cli.commands import PATIENCE_S

SCHEMA = "id BIGINT, amount DOUBLE"
STEPS = [
    {"id": "some", "type": "filter", "where": "amount > 0"},
    {"id": "checked", "type": "validate", "expectations": [{"name": "few", "where": "amount < 1000"}]},
    {"id": "gross", "type": "map", "set": {"gross": "amount * 2"}},
    {"id": "route", "type": "route", "rules": [{"when": "amount <= 50", "sinks": ["all"]}], "default": "all"},
]
SINKS = [{"id": "all", "type": "drop"}, {"id": "large", "type": "drop"}]


def made(client: httpx.Client, name: str, status: str = "paused", **spec: Any) -> None:
    assert client.post("/streams", json=stream(f"{name} in", schema=SCHEMA)).status_code == 201
    source = {"type": "stream", "stream": f"{name}_in"}
    created = client.post("/pipelines", json=pipeline(name, status, source=source, **spec))
    assert created.status_code == 201, created.text


def test_what_has_no_story(client: httpx.Client) -> None:
    client.post("/pipelines", json=pipeline("ticks"))
    refused = client.get("/pipelines/ticks/story?offset=0")
    assert (refused.status_code, codes(refused)) == (409, ["no_stream"])
    assert "test run" in refused.json()["hint"]
    made(client, "orders")
    refused = client.get("/pipelines/orders/story?offset=0")
    assert (refused.status_code, codes(refused)) == (404, ["beyond_end"])
    assert "no events yet" in refused.json()["message"]
    client.post("/streams/orders_in/events", json={"id": 1})
    assert "last offset is 0" in client.get("/pipelines/orders/story?offset=1").json()["message"]
    assert client.get("/pipelines/orders/story").status_code == 422
    assert client.get("/pipelines/nobody/story?offset=0").status_code == 404
    client.post("/tasks", json={"metadata": {"name": "part"}, "spec": {"processors": STEPS}})
    assert codes(client.get("/tasks/part/story?offset=0")) == ["not_runnable"]


def test_an_event_that_is_gone(api: Api) -> None:
    small = {"max_segments": 2, "segment_bytes": 1}
    api.client.post("/streams", json=stream("few", wal=small))
    source = {"type": "stream", "stream": "few"}
    api.client.post("/pipelines", json=pipeline("orders", source=source))
    for _ in range(20):
        api.client.post("/streams/few/events", json={"text": "x" * 200})
    log = api.service.streams.log("few")
    log.storage.maintain()
    assert log.bounds().first > 0
    refused = api.client.get("/pipelines/orders/story?offset=0")
    assert (refused.status_code, codes(refused)) == (404, ["gap"])
    assert refused.json()["hint"] == f"the oldest available offset is {log.bounds().first}"


def until(live: Api, name: str, done: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done(info := live.client.get(f"/pipelines/{name}").json()):
        assert time.monotonic() < deadline, info
        time.sleep(0.1)


@pytest.mark.slow
def test_events_tell_their_stories(live: Api) -> None:
    made(live.client, "told story", processors=STEPS, sinks=SINKS)

    def story(offset: int) -> dict[str, Any]:
        answer = live.client.get(f"/pipelines/told_story/story?offset={offset}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def fates(told: dict[str, Any]) -> dict[str, str]:
        return {sink["id"]: sink["state"] for sink in told["sinks"]}

    amounts = [80, 20, -1, 5000]
    events = [{"id": i, "amount": amount} for i, amount in enumerate(amounts)]
    live.client.post("/streams/told_story_in/events", json=events)
    waiting = story(0)
    assert fates(waiting) == {"all": "waiting", "large": "waiting"}
    assert waiting["sinks"][0]["why"].endswith("the flow is paused")

    live.client.post("/pipelines/told_story/resume")
    until(live, "told_story", lambda info: info["ops"]["sinks"].get("all", {}).get("events", 0) == 2)
    until(live, "told_story", lambda info: info["ops"]["dead_letters"] == 1)
    whole = story(0)
    assert (whole["stream"], whole["offset"], whole["revision"]) == ("told_story_in", 0, 1)
    assert whole["time"].startswith("20")
    assert (whole["event"]["amount"], whole["event"]["$meta"]["offset"]) == (80.0, 0)
    assert [step["id"] for step in whole["steps"]] == ["some", "checked", "gross", "route"]
    assert whole["steps"][2]["output"][0]["gross"] == 160.0
    assert (fates(whole), whole["letters"]) == ({"all": "delivered", "large": "delivered"}, [])

    small = story(1)
    assert (fates(small), small["event"]["$meta"]["offset"]) == (
        {"all": "delivered", "large": "not_chosen"},
        1,
    )
    assert small["steps"][0]["output"][0]["$meta"]["offset"] == 1
    dropped = story(2)
    assert fates(dropped) == {"all": "not_chosen", "large": "not_chosen"}
    assert "'some' drops the event" in dropped["sinks"][0]["why"]
    failed = story(3)
    assert fates(failed) == {"all": "failed", "large": "failed"}
    (letter,) = failed["letters"]
    assert (letter["step"], letter["source_offset"], letter["state"]) == ("checked", 3, "new")
    assert "dead letter 0" in failed["sinks"][0]["why"]
    for offset, words in ((0, "→ all (drop) delivered: "), (3, "dead letter 0 of 'checked'")):
        arguments = ["story", "told story", "--offset", str(offset), "--server", live.url]
        shown = CliRunner().invoke(app, arguments)
        assert (shown.exit_code, words in shown.stdout) == (0, True), shown.output
    assert live.client.delete("/pipelines/told_story").status_code == 204


@pytest.mark.slow
def test_a_step_that_remembers_sees_the_event_alone(live: Api) -> None:
    steps = [{"id": "once", "type": "dedupe", "keys": ["id"], "within": "1h"}]
    made(live.client, "alone", processors=steps)
    live.client.post("/streams/alone_in/events", json={"id": 1, "amount": 1})
    told = live.client.get("/pipelines/alone/story?offset=0").json()
    assert [warning["code"] for warning in told["warnings"]] == ["shown_alone"]
    assert [sink["state"] for sink in told["sinks"]] == ["waiting"]


@pytest.mark.slow
def test_the_functions_of_sql(live: Api) -> None:
    found = {each["name"]: each for each in live.client.get("/functions").json()}
    assert len(found) > 400
    assert found["abs"]["usage"].startswith("abs(expr) - Returns the absolute value")
    assert (found["abs"]["group"], found["abs"]["example"]) == ("math", "SELECT abs(-1)")
    assert {"from_json", "explode", "variant_explode", "sum", "window"} <= set(found)
    assert not {"reflect", "java_method", "current_user", "from_protobuf", "!", "+"} & set(found)
