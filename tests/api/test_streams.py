"""Looking into streams: pages of events, the live tail, numbers and readers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.api import feed
from penstock.control.fleet.progress import flow_name
from penstock.control.streams import pages as reading
from penstock.streams.storage import Cursor
from tests.api.kit import Api, codes, open_service, pipeline, running, stream


def send(client: httpx.Client, name: str, *values: Any) -> None:
    body = "\n".join(map(json.dumps, values))
    answer = client.post(
        f"/streams/{name}/events", content=body, headers={"Content-Type": "application/x-ndjson"}
    )
    assert answer.status_code == 200, answer.text


@pytest.fixture
def numbers(client: httpx.Client) -> str:
    """A raw stream with the events 0 to 9."""
    client.post("/streams", json=stream("numbers"))
    send(client, "numbers", *range(10))
    return "numbers"


def page(client: httpx.Client, query: str = "", name: str = "numbers") -> dict[str, Any]:
    answer = client.get(f"/streams/{name}/events{query}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def shown(found: dict[str, Any]) -> list[int]:
    return [int(event["value"]) for event in found["events"]]


def test_positions(client: httpx.Client, numbers: str) -> None:
    assert shown(page(client)) == list(range(10))
    assert shown(page(client, "?position=earliest&limit=3")) == [0, 1, 2]
    assert page(client, "?position=earliest&limit=3")["next"] == 3
    assert shown(page(client, "?position=offset:7")) == [7, 8, 9]
    nothing = {"events": [], "searched": 0, "gap": None, "end": 10}
    assert page(client, "?position=latest") == {**nothing, "first": 10, "next": 10}
    assert page(client, "?position=offset:99") == {**nothing, "first": 99, "next": 99}
    assert shown(page(client, "?position=time:2020-01-01T00:00:00Z&limit=1")) == [0]
    assert page(client, "?position=time:2999-01-01T00:00:00Z")["events"] == []
    assert shown(page(client, "?last=3")) == [7, 8, 9]
    assert shown(page(client, "?last=500")) == list(range(10))
    moment = page(client, "?last=1")["events"][0]["time"]
    time.sleep(0.01)
    send(client, numbers, 10)
    later = page(client, "?last=1")["events"][0]["time"]
    assert later > moment
    assert shown(page(client, f"?position=time:{later}")) == [10]


@pytest.mark.parametrize(
    "query",
    [
        *("position=oldest", "position=offset:-1", "position=offset:99999999999999999999", "position=time:x"),
        *("limit=0", "limit=10001", "last=0", "last=3&position=latest"),
    ],
)
def test_what_is_no_position(client: httpx.Client, numbers: str, query: str) -> None:
    refused = client.get(f"/streams/{numbers}/events?{query}")
    assert refused.status_code == 422
    assert codes(refused)


def test_an_event_has_all_that_was_sent(client: httpx.Client) -> None:
    client.post("/streams", json=stream("typed", schema="id BIGINT, at TIMESTAMP"))
    events = [{"key": "k", "headers": {"h": "1"}, "columns": {"id": 2**53 + 1, "at": "2026-01-02T03:04:05Z"}}]
    type = {"Content-Type": "application/vnd.penstock.events+json"}
    assert client.post("/streams/typed/events", json=events, headers=type).status_code == 200
    (event,) = page(client, name="typed")["events"]
    assert {name: event[name] for name in ("key", "headers", "columns")} == events[0]
    assert event["offset"] == 0


def test_a_page_ends_when_it_is_large(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 3000)
    client.post("/streams", json=stream("large"))
    send(client, "large", *(str(i) * 1000 for i in range(8)))
    seen, position = 0, 0
    while found := page(client, f"?position=offset:{position}&limit=1000", "large")["events"]:
        assert 0 < len(found) < 8
        seen, position = seen + len(found), found[-1]["offset"] + 1
    assert seen == 8


def evict(api: Api, name: str) -> int:
    """Let retention remove the oldest segments; the first offset there still is."""
    wal = {"max_segments": 3, "segment_bytes": 300, "compression": "none"}
    assert api.client.patch(f"/streams/{name}", json={"wal": wal}).status_code == 200
    for number in range(10, 16):
        send(api.client, name, number)
    storage = api.service.streams.log(name).storage
    storage.maintain()
    first = storage.bounds().first
    assert first > 10
    return first


def test_evicted_events_are_a_gap(api: Api, numbers: str) -> None:
    first = evict(api, numbers)
    found = page(api.client, "?position=offset:2")
    assert found["gap"] == {"first": 2, "next": first, "reason": "evicted"}
    assert shown(found)[0] == first
    assert page(api.client)["gap"] is None


def test_numbers_of_a_stream(api: Api, numbers: str) -> None:
    log = api.service.streams.log(numbers)
    log.move_cursor(Cursor("somebody", 4, at=time.time(), skipped=1))
    log.move_cursor(Cursor("done", 10))
    found = api.client.get(f"/streams/{numbers}/stats").json()
    assert (found["stream"], found["events"], found["first"], found["next"]) == (numbers, 10, 0, 10)
    assert found["bytes"] > 0
    assert found["segments"] == 1
    assert found["oldest_age_ms"] >= found["newest_age_ms"] >= 0
    assert found["buffer"]["events"] == 0
    assert found["buffer"]["max_events"] == 100_000
    assert "survives" in found["guarantee"]
    assert (found["transient"], found["note"]) == (False, None)
    readers = {reader["reader"]: reader for reader in found["readers"]}
    assert (readers["somebody"]["cursor"], readers["somebody"]["lag_events"]) == (4, 6)
    assert readers["somebody"]["lag_ms"] >= 0
    assert readers["somebody"]["skipped"] == 1
    assert (readers["done"]["lag_events"], readers["done"]["lag_ms"]) == (0, None)

    api.client.post("/streams", json=stream("fleeting", wal={"enabled": False}))
    fleeting = api.client.get("/streams/fleeting/stats").json()
    assert fleeting["transient"]
    assert "lost when Penstock restarts" in fleeting["note"]


def test_a_reader_can_be_forgotten_once_it_is_gone(api: Api, numbers: str) -> None:
    api.client.post("/pipelines", json=pipeline("reads"))
    owner = flow_name(api.service.get("Pipeline", "reads"))
    log = api.service.streams.log(numbers)
    for reader in (owner, "pipeline:reads:00000000", "a b/c"):
        log.move_cursor(Cursor(reader, 0))
    place = f"/streams/{numbers}/readers"
    refused = api.client.delete(f"{place}/{owner}")
    assert (refused.status_code, codes(refused)) == (409, ["reader_in_use"])
    assert api.client.delete(f"{place}/pipeline:reads:00000000").status_code == 204
    missing = api.client.delete(f"{place}/nobody")
    assert (missing.status_code, codes(missing)) == (404, ["not_found"])
    assert {cursor.reader for cursor in log.storage.cursors()} == {owner, "a b/c"}


# The tail


def messages(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields:
                yield {"event": fields["event"], "id": fields["id"], "data": json.loads(fields["data"])}
            fields = {}


def follow(client: httpx.Client, count: int, query: str = "", **headers: str) -> list[int]:
    """The first so many values of a tail."""
    found: list[int] = []
    with client.stream("GET", f"/streams/numbers/tail{query}", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for message in messages(response.iter_lines()):
            found += [int(event["value"]) for event in message["data"]]
            assert int(message["id"]) == message["data"][-1]["offset"] + 1
            if len(found) >= count:
                break
    return found


def test_events_are_told_as_they_come(client: httpx.Client, numbers: str) -> None:
    with client.stream("GET", f"/streams/{numbers}/tail") as response:
        lines = response.iter_lines()
        assert next(lines) == ": connected"
        told = messages(lines)
        for number in (10, 11):
            send(client, numbers, number)
            message = next(told)
            assert message["event"] == "events"
            assert [event["value"] for event in message["data"]] == [str(number)]
            assert message["id"] == str(number + 1)


def test_a_tail_begins_anywhere_and_goes_on(client: httpx.Client, numbers: str) -> None:
    assert follow(client, 10, "?position=earliest") == list(range(10))
    assert follow(client, 3, "?position=offset:7") == [7, 8, 9]
    assert follow(client, 2, "?position=earliest", **{"Last-Event-ID": "8"}) == [8, 9]


def test_a_tail_can_be_filtered(client: httpx.Client, numbers: str) -> None:
    client.post("/streams", json=stream("words"))
    send(client, "words", *(["apple", "pear", "apfel"] * 400))
    with client.stream("GET", "/streams/words/tail?position=earliest&filter=pear") as response:
        told = messages(response.iter_lines())
        found = []
        while len(found) < 400:
            found += next(told)["data"]
    assert {event["value"] for event in found} == {'"pear"'}


def test_a_tail_tells_of_a_gap(api: Api, numbers: str) -> None:
    first = evict(api, numbers)
    with api.client.stream("GET", f"/streams/{numbers}/tail?position=offset:3") as response:
        gap = next(messages(response.iter_lines()))
    assert (gap["event"], gap["id"]) == ("gap", str(first))
    assert gap["data"] == {"first": 3, "next": first, "reason": "evicted"}


def test_a_quiet_tail_is_kept_alive(
    client: httpx.Client, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.1)
    with client.stream("GET", f"/streams/{numbers}/tail") as response:
        lines = response.iter_lines()
        assert any(line == ": ping" for line, _ in zip(lines, range(20), strict=False))


def test_a_tail_of_nothing(client: httpx.Client, numbers: str) -> None:
    assert client.get("/streams/nothing/tail").status_code == 404
    assert client.get(f"/streams/{numbers}/tail?position=x").status_code == 422


def test_a_tail_ends_with_its_stream(client: httpx.Client, numbers: str) -> None:
    with client.stream("GET", f"/streams/{numbers}/tail?position=earliest") as response:
        lines = response.iter_lines()
        next(messages(lines))
        assert client.delete(f"/streams/{numbers}").status_code == 204
        assert not [line for line in lines if line.startswith("event")]


def test_those_who_follow_do_not_hold_up_the_end(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.api.server.GRACE_S", 100)
    with open_service(tmp_path) as service:
        service.registry.create(stream("numbers"))
        with running(service) as api:
            began = threading.Event()

            def watch() -> None:
                url = f"{api.url}/streams/numbers/tail"
                with httpx.stream("GET", url, trust_env=False, timeout=60) as response:
                    began.set()
                    list(response.iter_lines())

            watcher = threading.Thread(target=watch)
            watcher.start()
            assert began.wait(60)
            ended = time.monotonic()
        assert time.monotonic() - ended < 60
        watcher.join(60)
