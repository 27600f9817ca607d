"""Every way into a stream in Kafka and out of it: REST, `penstock stream …`, and its deletion."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.streams.storage import Cursor
from tests.api.kit import Api, judging, open_service, running, stream
from tests.cli.commands import wait_for
from tests.cli.test_stream import lines, penstock, told
from tests.kafka_server import Kafka

SCHEMA = "id BIGINT, name STRING"


@pytest.fixture
def api(broker: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    kafka = {"kafka.brokers": broker.address, "kafka.prefix": f"c{uuid.uuid4().hex[:8]}."}
    with open_service(tmp_path, **kafka) as service, judging(service), running(service) as found:
        monkeypatch.setenv("PENSTOCK_SERVER", found.url)
        monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
        yield found


def columns(answer: Any) -> list[Any]:
    return [event["columns"] for event in answer.json()["events"]]


def test_every_way_in_and_out(api: Api, broker: Kafka, tmp_path: Path) -> None:
    made = api.client.post("/streams", json=stream("Typed", schema=SCHEMA, storage="kafka"))
    assert made.status_code == 201, made.text
    prefix = api.service.settings.kafka.prefix

    sent = api.client.post("/streams/typed/events", json=[{"id": 1, "name": "n1"}, {"id": "x"}])
    assert (sent.json()["accepted"], sent.json()["misfits"]) == (1, 1)
    numbered = {"producer": "p", "batch": 7}
    for _ in range(2):
        again = api.client.post("/streams/typed/events", params=numbered, json={"id": 2, "name": "n2"})
        assert (again.json()["first"], again.json()["next"]) == (1, 2)
    done = told("produce", "typed", stdin=lines(3, 4))
    assert (done["first"], done["next"]) == (2, 4)
    assert columns(api.client.get("/streams/typed/events")) == [
        {"id": n, "name": f"n{n}"} for n in (1, 2, 3, 4)
    ]
    assert len(api.client.get("/streams/typed.dead/events").json()["events"]) == 1

    api.service.streams.log("typed").move_cursor(Cursor("somebody", 1))
    items = {item["name"]: item for item in told("ls")["items"]}
    assert items["Typed"]["events"] == 4
    seen = told("inspect", "typed")
    assert seen["readers"][0]["lag_events"] == 3
    assert "on all in-sync replicas in Kafka" in penstock("inspect", "typed").stdout
    shown = penstock("tail", "typed", "--last", "2", "--json").stdout.splitlines()
    assert [json.loads(line)["columns"]["id"] for line in shown] == [3, 4]

    assert told("export", "typed", "--output", str(tmp_path / "e.ndjson"))["events"] == 4
    assert [json.loads(line)["id"] for line in (tmp_path / "e.ndjson").open()] == [1, 2, 3, 4]
    (verified,) = told("verify", "typed")["items"]
    assert (verified["sound"], verified["events"]) == (True, 4)
    assert told("repair", "typed")["items"][0]["left"] == []

    refused = api.client.patch("/streams/typed", json={"spec": {"storage": "local"}})
    assert refused.json()["errors"][0]["code"] == "storage_in_use", refused.text
    assert [topic for topic in broker.topics() if topic.startswith(prefix)]
    assert api.client.delete("/streams/typed").is_success
    wait_for("no topics", lambda: not [topic for topic in broker.topics() if topic.startswith(prefix)])


def test_an_empty_stream_moves_to_another_storage(api: Api) -> None:
    """Whoever has it open finds the new one with the next event."""
    api.client.post("/streams", json=stream("s"))
    api.client.get("/streams/s/stats")
    moved = api.client.patch("/streams/s", json={"spec": {"storage": "kafka"}})
    assert moved.is_success, moved.text
    assert api.client.post("/streams/s/events", json={"a": 1}).is_success
    log = api.service.streams.log("s")
    assert type(log.storage).__name__ == "KafkaStorage"
    assert log.bounds().next == 1


def test_a_stream_without_a_cluster_is_refused(tmp_path: Path) -> None:
    with open_service(tmp_path) as service, judging(service), running(service) as found:
        refused = found.client.post("/streams", json=stream("s", storage="kafka"))
        assert refused.status_code == 422, refused.text
        error = refused.json()["errors"][0]
        assert (error["code"], error["path"]) == ("no_kafka", "spec.storage")
        assert "kafka.brokers" in error["hint"]


def test_a_stream_is_moved_with_its_misfits(api: Api, broker: Kafka) -> None:
    api.client.post("/streams", json=stream("Typed", schema=SCHEMA)).raise_for_status()
    sent = api.client.post("/streams/typed/events", json=[{"id": 1, "name": "n1"}, {"id": "x"}])
    assert sent.json()["accepted"] == 1
    events = {each: api.client.get(f"/streams/{each}/events").json() for each in ("typed", "typed.dead")}
    numbers = api.client.get("/streams/typed/stats").json()
    refused = penstock("move", "typed")
    assert (refused.exit_code, "--to kafka, or --undo" in refused.output) == (2, True)
    assert "not being moved" in penstock("move", "typed", "--undo").output
    edited = api.client.patch("/streams/typed", json={"spec": {"storage": "kafka"}})
    assert (edited.status_code, edited.json()["code"]) == (422, "storage_in_use")
    assert "penstock stream move" in edited.json()["hint"]

    done = penstock("move", "typed", "--to", "kafka")
    assert (done.exit_code, "typed is in Kafka" in done.output) == (0, True), done.output
    assert api.client.get("/streams/typed").json()["spec"]["storage"] == "kafka"
    for each, before in events.items():
        assert api.client.get(f"/streams/{each}/events").json() == before
        assert api.service.streams.log(each).storage.kind == "kafka"
    now = api.client.get("/streams/typed/stats").json()
    same = ("events", "first", "next", "oldest", "newest", "counters", "readers")
    assert {name: now[name] for name in same} == {name: numbers[name] for name in same}
    assert api.client.post("/streams/typed/events", json={"id": 2, "name": "n2"}).json()["first"] == 1
    assert "already in Kafka" in penstock("move", "typed", "--to", "kafka").output
    back = api.client.patch("/streams/typed", json={"spec": {"storage": "local"}})
    assert (back.status_code, back.json()["code"]) == (422, "storage_in_use")
    assert api.client.delete("/streams/typed/move").json()["code"] == "already_moved"
    wrong = api.client.post("/streams/typed/move", json={"to": "sqlite"})
    assert (wrong.status_code, wrong.json()["path"]) == (422, "to")


def test_a_move_that_ended_before_its_document_is_finished_by_the_next_server(api: Api) -> None:
    from penstock.control.streams.moves import Moves
    from penstock.streams.kafka.moving import Move, begin

    api.client.post("/streams", json=stream("Left", storage="local")).raise_for_status()
    api.client.post("/streams/left/events", json={"a": 1}).raise_for_status()
    kafka, directory = api.service.streams.home.kafka, api.service.streams.place("left").directory
    assert kafka is not None
    note = begin(directory, kafka)
    assert api.client.get("/streams/left/move").json()["phase"] == "interrupted"
    for refused in (
        api.client.delete("/streams/left"),
        api.client.post("/bundle?mode=replace", json={"documents": []}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "move_running")
        assert "--undo" in refused.json()["hint"]
    Move(directory, note, lambda done, total: None, lambda: False).run()
    assert api.client.get("/streams/left").json()["spec"].get("storage", "local") == "local"
    assert api.service.streams.place("left").spec.storage == "kafka", "a document does not move a stream back"
    Moves(api.service).settle()
    assert api.client.get("/streams/left").json()["spec"]["storage"] == "kafka"
    assert api.client.get("/streams/left/move").status_code == 404
    assert len(api.client.get("/streams/left/events").json()["events"]) == 1
