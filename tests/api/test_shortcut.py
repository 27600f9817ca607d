"""Single events take a short way past the framework: same answers, same checks, and no stale look-ups."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.api.ingest import Ingest
from penstock.control.documents.service import Service
from penstock.control.registry import Registry
from penstock.control.streams import doors as doors_module
from penstock.control.streams import ingest as entrances_module
from tests.api.kit import Api, codes, pipeline, stream

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
GENERAL = "?tx_end=true"
"""The default of a parameter: it changes nothing, and any parameter needs the general way."""

TYPED = "id BIGINT NOT NULL, name STRING, amount DECIMAL(6,2), at TIMESTAMP"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look-ups stay cached for an hour: no test passes because a cache has expired."""
    monkeypatch.setattr(doors_module, "FRESH_S", 3600.0)
    monkeypatch.setattr(entrances_module, "FRESH_S", 3600.0)


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that went the general way."""
    names: list[str] = []
    for way in ("stream", "source"):
        earlier = getattr(Ingest, way)

        async def seen(self: Ingest, name: str, earlier: Any = earlier) -> Any:
            names.append(name)
            return await earlier(self, name)

        monkeypatch.setattr(Ingest, way, seen)
    return names


def create(client: httpx.Client, kind: str, document: dict[str, Any]) -> None:
    answer = client.post(f"/{kind}s", json=document)
    assert answer.status_code == 201, answer.text


def source(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Source", "metadata": {"name": name}, "spec": {"type": "http", **spec}}


def values(client: httpx.Client, name: str) -> list[Any]:
    found = client.get(f"/streams/{name}/events?limit=10000").json()["events"]
    return [event.get("columns", event.get("value")) for event in found]


# The same answers


EVENT = b'{"id": 1, "name": "a", "amount": 1.5, "at": "2026-01-31T12:00:00Z"}'
REQUESTS: list[tuple[dict[str, str], bytes]] = [
    (JSON, EVENT),
    (JSON, b" \r\n" + EVENT + b"\n"),
    (JSON, b"[" + EVENT + b"," + EVENT + b"]"),
    (JSON, b"[]"),
    (JSON, b""),
    (JSON, b"  "),
    (JSON, b"\xef\xbb\xbf" + EVENT),
    (JSON, b"7"),
    (JSON, b'"text"'),
    (JSON, b"null"),
    (JSON, b"{}"),
    (JSON, b'{"id": 1, "id": 2}'),
    (JSON, b'{"id": 1.0}'),
    (JSON, b'{"id": true}'),
    (JSON, b'{"id": 9223372036854775808}'),
    (JSON, b'{"id": 1, "amount": 1.005}'),
    (JSON, b'{"id": 1, "amount": "12345.6"}'),
    (JSON, b'{"id": 1, "at": "2026-01-31"}'),
    (JSON, b'{"id": 1, "name": "\\ud800"}'),
    (JSON, b'{"id": NaN}'),
    (JSON, b'{"id": 1} {"id": 2}'),
    (JSON, b'{"id": 1'),
    (JSON, b'{"name": "\xff"}'),
    (NDJSON, EVENT),
    (NDJSON, EVENT + b"\n" + b"nothing\n" + EVENT + b"\n"),
    ({"Content-Type": "application/json; charset=utf-8"}, EVENT),
    ({"Content-Type": "APPLICATION/JSON; Charset=UTF8"}, EVENT),
    ({"Content-Type": "application/json; charset=latin-1"}, EVENT),
    ({"Content-Type": "application/x-www-form-urlencoded"}, EVENT),
    ({"Content-Type": "application/x-www-form-urlencoded"}, b"some text"),
    ({}, EVENT),
    ({"Content-Type": "text/csv"}, b"id,name\r\n1,a\r\n"),
    ({"Content-Type": "text/plain"}, b"one\ntwo"),
    ({"Content-Type": "image/png"}, EVENT),
    ({"Content-Type": "nonsense"}, EVENT),
    ({**JSON, "Content-Encoding": "gzip"}, gzip.compress(EVENT, mtime=0)),
    ({**JSON, "Content-Encoding": "gzip"}, EVENT),
    ({**JSON, "Content-Encoding": "br"}, EVENT),
    (JSON, b'{"id": 1, "name": "' + b"x" * 3000 + b'"}'),
    ({**JSON, "Content-Encoding": "gzip"}, gzip.compress(b'{"name": "' + b"x" * 9000 + b'"}', mtime=0)),
    ({**JSON, "Origin": "http://evil.example"}, EVENT),
    ({**JSON, "Origin": "http://{host}"}, EVENT),
    ({**JSON, "Sec-Fetch-Site": "cross-site"}, EVENT),
    ({**JSON, "Sec-Fetch-Site": "same-origin"}, EVENT),
]

SPECS: dict[str, dict[str, Any]] = {
    "raw": {},
    "typed": {"schema": TYPED},
    "epochs": {"schema": "id BIGINT, at TIMESTAMP", "timestamps": "epoch_ms"},
    "transient": {"wal": {"enabled": False}},
    "sqlite": {"schema": TYPED, "storage": "sqlite"},
}


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_both_ways_answer_alike(api: Api, general: list[str], spec: str, atomic: bool) -> None:
    """Two equal sources of equal streams get the same requests, each in its way."""
    for name in ("fast", "slow"):
        create(api.client, "stream", stream(f"{name}_in", **SPECS[spec]))
        limits = {"max_body_bytes": 2000, "atomic": atomic}
        create(api.client, "source", source(name, stream=f"{name}_in", **limits))
    for paths in (["/ingest/fast", "/ingest/slow"], ["/streams/fast_in/events", "/streams/slow_in/events"]):
        for path in paths:
            assert api.client.post(path, content=b"", headers=JSON).status_code == 200
        for headers, body in REQUESTS:
            host = api.url.removeprefix("http://")
            sent = {name: value.replace("{host}", host) for name, value in headers.items()}
            general.clear()
            fast = api.client.post(paths[0], content=body, headers=sent)
            assert not general
            slow = api.client.post(paths[1] + GENERAL, content=body, headers=sent)
            assert general or slow.status_code == 403
            assert told(fast, "fast") == told(slow, "slow"), (headers, body)
    assert values(api.client, "fast_in") == values(api.client, "slow_in") != []
    if "schema" in SPECS[spec]:
        assert values(api.client, "fast_in.dead") == values(api.client, "slow_in.dead")


def told(answer: httpx.Response, name: str) -> tuple[int, dict[str, str], Any]:
    """What an answer tells, apart from the name of the source and the time."""
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    return answer.status_code, headers, json.loads(answer.text.replace(f"{name}_in", "some_in"))


def test_a_path_that_is_none_of_a_stream(api: Api, general: list[str]) -> None:
    create(api.client, "stream", stream("plain"))
    assert api.client.post("/streams/plain/events", content=b"1").status_code == 200
    assert api.client.post("/streams/Plain/events", content=b"1").json()["stream"] == "plain"
    long = "plain" + "%20" * 200
    for path, code in (
        ("/streams/plain/events/", 404),
        ("/streams/plain/more/events", 404),
        ("/streams/events", 405),
        (f"/streams/{long}/events", 422),
        ("/ingest/", 422),
        (f"/ingest/{'x' * 1001}", 422),
    ):
        refused = api.client.post(path, content=b"1")
        assert (refused.status_code, len(codes(refused))) == (code, 1), path
    assert api.client.put("/streams/plain/events", content=b"1").status_code == 405
    unknown = api.client.post("/streams/plain/events?atomc=true", content=b"1")
    assert (unknown.status_code, codes(unknown)) == (422, ["unknown_parameter"])
    assert len(values(api.client, "plain")) == 2


def test_an_unexpected_error_is_an_envelope(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    create(api.client, "stream", stream("plain"))
    assert api.client.post("/streams/plain/events", json=1).status_code == 200

    def broken(*_: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("penstock.api.intake.decode_alone", broken)
    failed = api.client.post("/streams/plain/events", json=1)
    assert (failed.status_code, codes(failed)) == (500, ["internal_error"])


# Changes are noticed at once


@pytest.fixture
def send(api: Api, general: list[str]) -> Any:
    """Sends an event, and before it others until they go the short way."""

    def sending(path: str, body: Any = 1) -> httpx.Response:
        return api.client.post(path, json=body)

    def warm(path: str, body: Any = 1) -> httpx.Response:
        for _ in range(20):
            general.clear()
            answer = sending(path, body)
            if not general:
                return answer
        raise AssertionError("it never went the short way")

    sending.warm = warm  # type: ignore[attr-defined]
    return sending


def test_a_deleted_stream_takes_nothing(api: Api, send: Any) -> None:
    create(api.client, "stream", stream("gone"))
    assert send.warm("/streams/gone/events").status_code == 200
    assert api.client.delete("/streams/gone").status_code in (200, 204)
    refused = send("/streams/gone/events")
    assert (refused.status_code, codes(refused)) == (404, ["not_found"])


def test_a_stream_that_was_made_again_is_another_one(api: Api, send: Any) -> None:
    create(api.client, "stream", stream("again"))
    create(api.client, "source", source("door", stream="again"))
    for path in ("/streams/again/events", "/ingest/door"):
        assert send.warm(path).json()["next"] > 0
    assert api.client.delete("/sources/door").status_code in (200, 204)
    assert api.client.delete("/streams/again").status_code in (200, 204)
    create(api.client, "stream", stream("again", schema="id BIGINT"))
    assert send("/streams/again/events", {"id": 7}).json()["first"] == 0
    assert send("/streams/again/events", {"id": "x"}).status_code == 400
    assert values(api.client, "again") == [{"id": 7}]
    assert send("/ingest/door", {"id": 8}).status_code == 404


def test_a_changed_schema_decodes_the_next_event(api: Api, send: Any) -> None:
    create(api.client, "stream", stream("grows", schema="id BIGINT"))
    assert send.warm("/streams/grows/events", {"id": 1, "extra": 5}).status_code == 200
    changed = api.client.patch("/streams/grows", json={"schema": "id BIGINT, extra INT"})
    assert changed.status_code == 200
    kept = send("/streams/grows/events", {"id": 2, "extra": 5}).json()["first"]
    assert values(api.client, "grows")[kept] == {"id": 2, "extra": 5}


def test_a_changed_source_sends_the_next_event_elsewhere(api: Api, send: Any) -> None:
    for name in ("here", "there"):
        create(api.client, "stream", stream(name))
    create(api.client, "source", source("door", stream="here", path="/in"))
    for path in ("/ingest/door", "/ingest/in"):
        assert send.warm(path).json()["stream"] == "here"
    before = len(values(api.client, "here"))
    assert api.client.patch("/sources/door", json={"stream": "there", "path": "/on"}).status_code == 200
    assert send("/ingest/door").json()["stream"] == "there"
    assert send("/ingest/in").status_code == 404
    assert send("/ingest/on").json()["stream"] == "there"
    assert len(values(api.client, "here")) == before

    assert send.warm("/ingest/door", "x" * 100).status_code == 200
    assert api.client.patch("/sources/door", json={"max_body_bytes": 50}).status_code == 200
    assert send("/ingest/door", "x" * 100).status_code == 413
    assert api.client.delete("/sources/door").status_code in (200, 204)
    assert send("/ingest/door").status_code == 404


def test_one_more_pipeline_gets_the_next_event_too(api: Api, send: Any) -> None:
    create(api.client, "source", source("shared"))
    create(api.client, "pipeline", pipeline("one", source={"ref": "shared"}))
    assert send.warm("/ingest/shared").json()["also"] == []
    create(api.client, "pipeline", pipeline("two", source={"ref": "shared"}))
    assert send("/ingest/shared").json()["also"] == [{"stream": "two.in", "first": 0, "next": 1}]
    assert send.warm("/ingest/shared").json()["also"], "several pipelines go the short way, too"
    assert api.client.delete("/pipelines/two").status_code in (200, 202, 204)
    assert send("/ingest/shared").json()["also"] == []


def test_a_paused_pipeline_still_keeps_events_for_later(api: Api, send: Any) -> None:
    create(api.client, "pipeline", pipeline("busy", status="active", source={"type": "http"}))
    first = send.warm("/ingest/busy").json()["next"]
    assert api.client.post("/pipelines/busy/pause").status_code in (200, 202)
    assert send("/ingest/busy").json()["first"] == first
    full = {"spec": {"buffer": {"limit": 1, "timeout_ms": 100}}}
    assert api.client.patch("/pipelines/busy", json=full).status_code in (200, 202)
    refused = send("/ingest/busy")
    assert (refused.status_code, codes(refused)) == (503, ["max_unread"])
    assert int(refused.headers["retry-after"]) >= 1


@pytest.fixture
def elsewhere(api: Api) -> Iterator[Service]:
    """The same installation, as another process has it."""
    registry = Registry.open(api.service.settings.registry_url)
    yield Service(api.service.loaded, registry)
    registry.close()


def test_a_stream_that_another_process_deletes_takes_nothing(api: Api, send: Any, elsewhere: Service) -> None:
    create(api.client, "stream", stream("gone"))
    assert send.warm("/streams/gone/events").status_code == 200
    elsewhere.delete("Stream", "gone")
    assert send("/streams/gone/events").status_code == 404


def test_a_busy_stream_is_looked_up_ahead(
    api: Api, send: Any, general: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api.client, "stream", stream("busy"))
    create(api.client, "source", source("door", stream="busy"))
    assert send.warm("/ingest/door").status_code == 200
    looked: list[str] = []

    def unanswered(self: Any, kind: str, name: str) -> Any:
        looked.append(name)
        raise OSError("the registry is not responding")

    with monkeypatch.context() as patched:  # the end of the test needs the registry
        patched.setattr("penstock.control.streams.doors.AHEAD_S", 7200.0)
        patched.setattr("penstock.control.streams.ingest.AHEAD_S", 7200.0)
        patched.setattr("penstock.control.registry.store.Registry.find", unanswered)
        general.clear()
        assert send("/ingest/door").status_code == 200
        deadline = time.monotonic() + 20
        while not looked and time.monotonic() < deadline:
            time.sleep(0.01)
        assert looked
        assert send("/ingest/door").status_code == 200, "what is known is used until its time has come"
        assert not general
