"""Dead letters over HTTP: read, edited, discarded, restored, replayed."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from penstock.connectors.base import DeliveryId
from penstock.control.fleet.progress import flow_directory, flow_name
from penstock.control.streams.logs import dead_letters_id, input_id
from penstock.engine.letters.notes import Note
from penstock.engine.letters.writer import Letters
from penstock.engine.plan.flow import resolve_flow
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from tests.api.kit import Api, codes, pipeline, stream

PATH = "/pipelines/orders/dead-letters"


def write(api: Api, *notes: tuple[str, str, str], name: str = "orders", batch: int = 0) -> None:
    """Letters as a batch of a pipeline leaves them: of a step, with a code, and an event."""
    service = api.service
    record = service.get("Pipeline", name)
    site = Site(
        flow_name(record),
        0,
        service.streams.place,
        input_id(record.id),
        dead=dead_letters_id(record),
        revision=record.revision,
        state=flow_directory(service.settings, record),
        policy=UNRESTRICTED,
    )
    flow = resolve_flow(record.document, lambda *_: None, site)
    faults = [
        Note("fault", step, code, f"it is {code}", row, {"offset": i, "key": "k", "headers": {"a": "b"}})
        for i, (step, code, row) in enumerate(notes)
    ]
    Letters(flow).write(faults, DeliveryId(record.id, "$notes", "query", batch))


@pytest.fixture
def client(api: Api) -> httpx.Client:
    assert api.client.post("/pipelines", json=pipeline("Orders")).status_code == 201
    return api.client


def offsets(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [letter["offset"] for letter in answer.json()["letters"]]


def test_letters_are_read_with_all_that_is_known_of_them(api: Api, client: httpx.Client) -> None:
    streams = len(list(api.service.streams.all()))
    assert client.get(PATH).json() == {
        "letters": [],
        "next": None,
        "total": 0,
        "counts": [],
        "states": {"new": 0},
        "complete": True,
    }
    assert len(list(api.service.streams.all())) == streams, "a look into the box creates no stream"
    write(api, ("clean", "bad", '{"id":1}'), ("source", "malformed", "{no json"))
    first, second = client.get(PATH).json()["letters"]
    assert abs(time.time() - time.mktime(time.strptime(first.pop("time")[:19], "%Y-%m-%dT%H:%M:%S"))) < 86400
    assert first == {
        "offset": 0,
        "code": "bad",
        "reason": "it is bad",
        "step": "clean",
        "attempt": 1,
        "revision": 1,
        "event": {"id": 1},
        "key": "k",
        "headers": {"a": "b"},
        "source_offset": 0,
        "state": "new",
        "edited": False,
        "original": None,
        "replay_of": None,
        "replays": [],
        "obstacle": {
            "code": "unknown_step",
            "message": "step 'clean' no longer exists",
            "path": None,
            "hint": "replay it from the start",
        },
        "in_input": False,
    }
    assert second["event"] == "{no json"
    assert client.get(f"{PATH}/1").json() == second
    assert codes(client.get(f"{PATH}/2")) == ["not_found"]
    assert client.get("/streams/orders.dead/events").json()["next"] == 2


def test_letters_are_found_by_step_code_text_and_place(api: Api, client: httpx.Client) -> None:
    write(api, ("a", "x", '{"id":1}'), ("a", "y", '{"id":2}'), ("b", "x", '{"id":3}'))
    write(api, *[("c", "z", f'{{"n":{i}}}') for i in range(5)], batch=1)
    assert offsets(client.get(PATH, params={"step": "a"})) == [0, 1]
    assert offsets(client.get(PATH, params={"code": "x"})) == [0, 2]
    assert offsets(client.get(PATH, params={"contains": '"id":2'})) == [1]
    assert offsets(client.get(PATH, params={"contains": "it is y"})) == [1]
    assert offsets(client.get(PATH, params={"position": "offset:6"})) == [6, 7]
    page = client.get(PATH, params={"limit": 2, "code": "z"})
    assert (offsets(page), page.json()["next"]) == ([3, 4], 5)
    assert client.get(PATH, params={"limit": 3, "position": "offset:5"}).json()["next"] is None
    told = client.get(PATH, params={"limit": 1}).json()
    assert (told["total"], told["complete"]) == (8, True)
    assert told["counts"] == [
        {"step": "c", "code": "z", "letters": 5},
        {"step": "a", "code": "x", "letters": 1},
        {"step": "a", "code": "y", "letters": 1},
        {"step": "b", "code": "x", "letters": 1},
    ]
    write(api, ("a", "x", "{}"), batch=2)
    assert client.get(PATH).json()["counts"][1] == {"step": "a", "code": "x", "letters": 2}


def test_the_newest_letters_come_first_on_request(api: Api, client: httpx.Client) -> None:
    write(api, *[("a" if i % 2 else "b", "x", f'{{"n":{i}}}') for i in range(300)])
    write(api, *[("c", "z", f'{{"n":{i}}}') for i in range(5)], batch=1)
    newest = {"order": "newest"}
    page = client.get(PATH, params={**newest, "limit": 3})
    assert (offsets(page), page.json()["next"]) == ([304, 303, 302], 302)
    assert offsets(client.get(PATH, params={**newest, "limit": 2, "position": "offset:302"})) == [301, 300]
    assert offsets(client.get(PATH, params={**newest, "step": "a", "limit": 2})) == [299, 297]
    assert offsets(client.get(PATH, params={**newest, "contains": '"n":4}'})) == [304, 4]
    last = client.get(PATH, params={**newest, "position": "offset:2"})
    assert (offsets(last), last.json()["next"]) == ([1, 0], None)


def test_a_letter_that_cannot_be_replayed_says_so_and_is_sent_to_the_input(api: Api) -> None:
    client = api.client
    client.post("/streams", json=stream("raw in", schema="id BIGINT"))
    steps = [
        {"id": "clean", "type": "filter", "where": "id > 0"},
        {"id": "once", "type": "dedupe", "keys": ["id"], "within": "1m"},
    ]
    source = {"type": "stream", "stream": "raw_in"}
    created = client.post("/pipelines", json=pipeline("Orders", source=source, processors=steps))
    assert created.status_code == 201, created.text
    client.post("/streams/raw_in/events?key=k", json=[{"id": 7}, {"id": 8}])
    write(api, ("clean", "bad", '{"id":7}'), ("drop", "refused", '{"id":8}'), ("clean", "bad", '{"id":9}'))
    first, second, third = client.get(PATH).json()["letters"]
    assert first["obstacle"]["code"] == "stateful_replay"
    assert "step 'once' keeps state" in first["obstacle"]["message"]
    assert [each["in_input"] for each in (first, second, third)] == [True, True, False]
    assert codes(client.post(f"{PATH}/2/send")) == ["not_in_input"]

    sent = client.post(f"{PATH}/0/send")
    assert sent.status_code == 200, sent.text
    assert (sent.json()["state"], [each["outcome"] for each in sent.json()["replays"]]) == (
        "replayed",
        ["sent"],
    )
    events = client.get("/streams/raw_in/events").json()["events"]
    assert [(event["columns"], event["key"]) for event in events] == [
        ({"id": 7}, "k"),
        ({"id": 8}, "k"),
        ({"id": 7}, "k"),
    ]
    again = client.post(f"{PATH}/0/send")
    assert (again.status_code, codes(again)) == (409, ["letter_replayed"])
    assert client.get("/streams/raw_in/events").json()["next"] == 3, "nothing was sent twice"


def test_an_edit_keeps_the_original(api: Api, client: httpx.Client) -> None:
    write(api, ("clean", "bad", '{"id": "x"}'))
    edited = client.put(f"{PATH}/0", json={"event": {"id": 1}}).json()
    assert (edited["event"], edited["original"], edited["edited"]) == ({"id": 1}, {"id": "x"}, True)
    assert client.get(PATH).json()["letters"] == [edited]
    back = client.put(f"{PATH}/0", json={"event": {"id": "x"}}).json()
    assert (back["event"], back["original"], back["edited"]) == ({"id": "x"}, None, False)
    assert client.put(f"{PATH}/0", json={"event": 1}).status_code == 422
    assert codes(client.put(f"{PATH}/7", json={"event": {}})) == ["not_found"]


def test_a_letter_that_is_discarded_stays_and_can_be_restored(api: Api, client: httpx.Client) -> None:
    write(api, ("clean", "bad", "{}"), ("clean", "bad", "{}"))
    assert client.delete(f"{PATH}/0").json()["state"] == "discarded"
    assert offsets(client.get(PATH, params={"state": "discarded"})) == [0]
    assert offsets(client.get(PATH, params={"state": "new"})) == [1]
    assert client.get(PATH).json()["states"] == {"new": 1, "discarded": 1}
    refused = client.put(f"{PATH}/0", json={"event": {}})
    assert (refused.status_code, codes(refused)) == (409, ["letter_discarded"])
    assert client.post(f"{PATH}/0/restore").json()["state"] == "new"
    assert offsets(client.get(PATH, params={"state": "new"})) == [0, 1]


def test_each_flow_has_its_own_letters(api: Api, client: httpx.Client) -> None:
    client.post("/streams", json=stream("shared"))
    for name in ("one", "two"):
        client.post("/pipelines", json=pipeline(name, dead_letters="shared"))
        write(api, (name, "bad", "{}"), name=name)
    assert [letter["step"] for letter in client.get("/pipelines/two/dead-letters").json()["letters"]] == [
        "two"
    ]
    assert client.get("/pipelines/two/dead-letters").json()["total"] == 1
    assert client.get("/streams/shared/events").json()["next"] == 2
    assert codes(client.get("/pipelines/none/dead-letters")) == ["not_found"]
    task = {
        "kind": "Task",
        "metadata": {"name": "t"},
        "spec": {"processors": [{"type": "filter", "where": "true"}]},
    }
    client.post("/tasks", json=task)
    refused = client.get("/tasks/t/dead-letters")
    assert (refused.status_code, codes(refused)) == (409, ["not_runnable"])


def test_a_typed_stream_of_the_same_name_has_letters_of_its_own(api: Api, client: httpx.Client) -> None:
    client.post("/streams", json=stream("orders", schema="id INT"))
    client.post("/streams/orders/events", json={"id": "x"})
    write(api, ("clean", "bad", "{}"))
    assert client.get(PATH).json()["total"] == 1
    assert client.get("/streams/orders.dead/events").json()["events"][0]["value"] == '{"id":"x"}'
    assert client.get("/streams/pipeline:orders.dead/events").json()["events"][0]["value"] == "{}"


def test_a_replay_names_its_letters(client: httpx.Client) -> None:
    assert codes(client.post(f"{PATH}/replay", json={})) == ["nothing_chosen"]
    assert client.post(f"{PATH}/replay", json={"offsets": []}).status_code == 422
    assert client.post(f"{PATH}/replay", json={"all": True, "from": "nowhere"}).status_code == 422


def until(client: httpx.Client, letters: int) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while (found := client.get(PATH).json())["total"] < letters:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return dict(found)


@pytest.mark.slow
def test_what_failed_is_mended_and_replayed_while_the_pipeline_runs_and_while_it_rests(live: Api) -> None:
    client = live.client
    client.post("/streams", json=stream("in", schema="id BIGINT, s STRING, at TIMESTAMP"))
    client.post("/streams", json=stream("out", schema="id BIGINT, n BIGINT, at TIMESTAMP"))
    query = "SELECT id, 100 DIV CAST(s AS INT) AS n, at FROM input"
    document = pipeline(
        "orders",
        "active",
        source={"type": "stream", "stream": "in"},
        processors=[{"id": "divide", "type": "sql", "query": query}],
        sinks=[{"type": "stream", "stream": "out", "deadline_ms": 120_000}],  # the machine may be busy
        batch={"max_ms": 10},
    )
    created = client.post("/pipelines", json=document)
    assert created.status_code == 201, created.text
    at = "2026-01-02T03:04:05.123456Z"
    events = [{"id": i, "s": s, "at": at} for i, s in enumerate(("5", "x", "0", "y"))]
    client.post("/streams/in/events", json=events)
    found = until(client, 3)
    assert found["counts"] == [
        {"step": "divide", "code": "cast_invalid_input", "letters": 2},
        {"step": "divide", "code": "divide_by_zero", "letters": 1},
    ]
    assert found["letters"][0]["event"] == {"id": 1, "s": "x", "at": at}
    client.put(f"{PATH}/0", json={"event": {"id": 1, "s": "2", "at": at}})

    dry = client.post(f"{PATH}/replay", json={"all": True, "dry_run": True}).json()
    assert (dry["dry_run"], dry["replayed"], dry["failed_again"], dry["refused"]) == (True, 3, 0, [])
    done = client.post(f"{PATH}/replay", json={"filter": {"code": "cast_invalid_input"}}).json()
    assert (done["replayed"], done["failed_again"], done["refused"], done["error"]) == (1, 1, [], None)
    letters = client.get(PATH).json()["letters"]
    assert [(each["state"], each["attempt"], each["replay_of"]) for each in letters] == [
        ("replayed", 1, None),
        ("new", 1, None),
        ("replayed", 1, None),
        ("new", 2, 2),
    ]
    assert [each["outcome"] for each in letters[2]["replays"]] == ["failed_again"]
    again = client.post(f"{PATH}/replay", json={"offsets": [0, 99]}).json()
    assert {each["code"] for each in again["refused"]} == {"letter_replayed", "not_found"}

    client.post("/pipelines/orders/pause")
    mended = query.replace("CAST(s AS INT)", "nullif(try_cast(s AS INT), 0)")
    client.patch("/pipelines/orders", json={"processors": [{"id": "divide", "type": "sql", "query": mended}]})
    done = client.post(f"{PATH}/replay", json={"all": True, "from": "start"}).json()
    assert (done["replayed"], done["failed_again"], done["refused"], done["error"]) == (2, 0, [], None)
    rows = [event["columns"] for event in client.get("/streams/out/events").json()["events"]]
    assert [(row["id"], row["n"]) for row in rows] == [(0, 20), (1, 50), (2, None), (3, None)]
    assert {row["at"] for row in rows} == {at}
    assert client.get("/pipelines/orders").json()["ops"]["dead_letters"] == 3
    assert client.delete("/pipelines/orders").status_code == 204
    assert client.get("/streams/orders.dead/events").status_code == 404
