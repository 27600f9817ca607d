"""Events over HTTP: every kind of body, what does not fit, repeats, and streams that are full."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest

from penstock.api import ingest
from penstock.streams.storage import Cursor
from tests.api.kit import Api, codes, pipeline, stream

NDJSON = {"Content-Type": "application/x-ndjson"}
TYPED = "id BIGINT, name STRING"


def post(
    client: httpx.Client, name: str, body: bytes | str, query: str = "", **headers: str
) -> httpx.Response:
    return client.post(f"/streams/{name}/events{query}", content=body, headers={**NDJSON, **headers})


def values(client: httpx.Client, name: str) -> list[Any]:
    found = client.get(f"/streams/{name}/events?limit=10000").json()["events"]
    return [event.get("columns", event.get("value")) for event in found]


@pytest.fixture
def typed(client: httpx.Client) -> str:
    assert client.post("/streams", json=stream("Orders raw", schema=TYPED)).status_code == 201
    return "orders_raw"


@pytest.fixture
def raw(client: httpx.Client) -> str:
    assert client.post("/streams", json=stream("plain")).status_code == 201
    return "plain"


def test_the_answer_tells_where_events_are_and_what_that_means(client: httpx.Client, typed: str) -> None:
    answer = post(client, "Orders raw", '{"id": 1, "name": "a"}\n{"id": 2}\n')
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert "survives a killed process" in told.pop("guarantee")
    assert told == {
        "stream": typed,
        "first": 0,
        "next": 2,
        "accepted": 2,
        "duplicate": False,
        "also": [],
    }
    assert post(client, typed, '{"id": 3}').json()["first"] == 2
    assert values(client, typed) == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": None},
        {"id": 3, "name": None},
    ]


def arrow() -> bytes:
    table = pa.table({"id": [7], "name": ["arrow"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("type", "body"),
    [
        ("application/json", b'{"id": 7, "name": "arrow"}'),
        ("application/json; charset=utf-8", b'[{"id": 7, "name": "arrow"}]'),
        ("application/x-ndjson", b'\n{"id": 7, "name": "arrow"}\n\n'),
        ("text/csv", b"name,id\r\narrow,7\r\n"),
        ("application/vnd.apache.arrow.stream", arrow()),
        ("application/vnd.penstock.events+json", b'[{"columns": {"id": 7, "name": "arrow"}}]'),
    ],
)
def test_bodies_of_a_typed_stream(client: httpx.Client, typed: str, type: str, body: bytes) -> None:
    answer = post(client, typed, body, **{"Content-Type": type})
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1), answer.text
    assert values(client, typed) == [{"id": 7, "name": "arrow"}]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_bodies_may_be_compressed(client: httpx.Client, typed: str, encoding: str) -> None:
    plain = b'{"id": 1}\n' * 1000
    packed = gzip.compress(plain) if encoding == "gzip" else pa.compress(plain, "zstd", asbytes=True)
    answer = post(client, typed, packed, **{"Content-Encoding": encoding})
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1000), answer.text
    broken = post(client, typed, b"nothing packed", **{"Content-Encoding": encoding})
    assert (broken.status_code, broken.json()["code"]) == (400, "bad_encoding")
    bomb = post(client, typed, gzip.compress(bytes(20 * 2**20)), **{"Content-Encoding": "gzip"})
    assert (bomb.status_code, codes(bomb)) == (413, ["body_too_large"])
    assert len(values(client, typed)) == 1000


def test_what_a_raw_stream_takes(client: httpx.Client, raw: str) -> None:
    post(client, raw, b"one\ntwo\n", "?key=k", **{"Content-Type": "text/plain"})
    post(client, raw, b"\xff\x00\n", **{"Content-Type": "application/octet-stream"})
    post(client, raw, b'{"a":1}\n')
    assert values(client, raw) == ["one", "two", {"base64": "/wAK"}, '{"a":1}']
    (first, *_) = client.get(f"/streams/{raw}/events").json()["events"]
    assert (first["key"], first["headers"], first["offset"]) == ("k", {}, 0)


def test_a_type_that_cannot_be_read_is_415(client: httpx.Client, typed: str) -> None:
    for type in ("image/png", "text/plain"):
        refused = post(client, typed, b"x", **{"Content-Type": type})
        assert refused.status_code == 415, refused.text
        assert codes(refused)
    assert post(client, typed, b"{}", **{"Content-Encoding": "br"}).status_code == 415


def test_a_body_that_is_too_large_is_413(client: httpx.Client, raw: str) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(17):
            yield b"x" * 2**20

    whole = post(client, raw, b"x" * (16 * 2**20 + 1))
    assert (whole.status_code, codes(whole)) == (413, ["body_too_large"])
    in_parts = client.post(f"/streams/{raw}/events", content=chunks(), headers=NDJSON)
    assert in_parts.status_code == 413
    assert values(client, raw) == []


BAD = '{"id": 1}\n{"id": "x"}\nnothing\n{"id": 4}\n'


def test_what_does_not_fit_is_told_by_line_and_kept_as_dead_letters(api: Api, typed: str) -> None:
    answer = post(api.client, typed, BAD)
    assert answer.status_code == 400
    told = answer.json()
    assert [problem["path"] for problem in told["errors"]] == ["line 2", "line 3"]
    assert (told["path"], told["misfits"], told["accepted"], told["first"], told["next"]) == (
        "line 2",
        2,
        2,
        0,
        2,
    )
    assert told["dead_letters"] == {"stream": "orders_raw.dead", "first": 0, "next": 2}
    assert [row["id"] for row in values(api.client, typed)] == [1, 4]
    first, second = api.client.get("/streams/orders_raw.dead/events").json()["events"]
    assert (first["value"], second["value"]) == ('{"id": "x"}', "nothing")
    assert first["headers"]["line"] == "2"
    assert first["headers"]["stream"] == typed
    assert {"code", "reason", "at"} <= first["headers"].keys()
    assert api.client.get(f"/streams/{typed}/stats").json()["counters"]["dead_letters"] == 2


def test_times_are_integers_where_the_stream_says_so(client: httpx.Client) -> None:
    document = stream("timed", schema="id INT, at TIMESTAMP", timestamps="epoch_ms")
    assert client.post("/streams", json=document).status_code == 201
    lines = ['{"id": 1, "at": 1700000000123}', '{"id": 2, "at": "2026-01-31T12:00:00Z"}']
    told = post(client, "timed", "\n".join(lines)).json()
    assert (told["accepted"], [error["code"] for error in told["errors"]]) == (1, ["wrong_type"])
    assert values(client, "timed") == [{"id": 1, "at": "2023-11-14T22:13:20.123Z"}]
    assert post(client, "timed", "id,at\n3,0\n", **{"Content-Type": "text/csv"}).json()["accepted"] == 1
    assert values(client, "timed")[1]["at"] == "1970-01-01T00:00:00Z"


def test_atomic_keeps_all_or_nothing(client: httpx.Client, typed: str) -> None:
    answer = post(client, typed, BAD, "?atomic=true")
    assert answer.status_code == 400
    told = answer.json()
    assert (told["misfits"], told["accepted"], told["first"], told["dead_letters"]) == (2, 0, None, None)
    assert values(client, typed) == values(client, "orders_raw.dead") == []
    assert post(client, typed, '{"id": 1}', "?atomic=true").status_code == 200


def test_a_raw_stream_keeps_the_good_lines_and_has_no_dead_letters(client: httpx.Client, raw: str) -> None:
    told = post(client, raw, '{"a": 1}\nnothing\n').json()
    assert (told["misfits"], told["accepted"], told["dead_letters"]) == (1, 1, None)
    assert values(client, raw) == ['{"a": 1}']
    assert client.get(f"/streams/{raw}.dead/events").status_code == 404


def test_many_misfits_are_counted_and_the_first_are_named(client: httpx.Client, typed: str) -> None:
    told = post(client, typed, "nothing\n" * 500).json()
    assert (told["misfits"], len(told["errors"]), told["accepted"]) == (500, ingest.MOST_TOLD, 0)
    assert told["dead_letters"]["next"] == 500


def test_a_repeated_batch_of_a_producer_is_kept_once(client: httpx.Client, typed: str) -> None:
    first = post(client, typed, BAD, "?producer=till&batch=1").json()
    again = post(client, typed, BAD, "?producer=till&batch=1").json()
    assert (again["first"], again["next"], again["dead_letters"]) == (
        first["first"],
        first["next"],
        first["dead_letters"],
    )
    third = post(client, typed, '{"id": 9}', "?producer=till&batch=2&epoch=3")
    assert (third.status_code, third.json()["duplicate"]) == (200, False)
    repeated = post(client, typed, '{"id": 9}', "?producer=till&batch=2&epoch=3").json()
    assert (repeated["duplicate"], repeated["first"]) == (True, third.json()["first"])
    assert [row["id"] for row in values(client, typed)] == [1, 4, 9]
    assert client.get(f"/streams/{typed}/stats").json()["counters"]["dead_letters"] == 2

    fenced = post(client, typed, '{"id": 9}', "?producer=till&batch=9&epoch=2")
    assert (fenced.status_code, codes(fenced)) == (409, ["fenced"])


PLACES = {
    "local": stream("kept"),
    "sqlite": stream("kept", storage="sqlite"),
    "transient": stream("kept", wal={"enabled": False}),
    "source": {"kind": "Source", "metadata": {"name": "door"}, "spec": {"type": "http", "stream": "kept"}},
}


@pytest.mark.parametrize("place", PLACES)
def test_batches_that_arrive_out_of_order_are_kept(client: httpx.Client, place: str) -> None:
    client.post("/streams", json=PLACES.get(place, stream("kept")) if place != "source" else stream("kept"))
    path = "/streams/kept/events"
    if place == "source":
        assert client.post("/sources", json=PLACES[place]).status_code == 201
        path = "/ingest/door"

    def send(batch: int, body: str) -> httpx.Response:
        return client.post(path, params={"producer": "p", "batch": batch}, content=body, headers=NDJSON)

    def told(answer: httpx.Response) -> tuple[int, int, bool]:
        return answer.json()["first"], answer.json()["accepted"], answer.json()["duplicate"]

    assert told(send(12, '{"n": 12}')) == (0, 1, False)
    assert told(send(11, '{"n": 11}\n{"n": 11}')) == (1, 2, False)
    assert told(send(12, '{"n": 12}')) == (0, 1, True)
    assert told(send(11, '{"n": 11}\n{"n": 11}')) == (1, 2, True)
    refused = send(12, '{"n": "another"}')
    assert (refused.status_code, codes(refused)) == (409, ["batch_conflict"])
    assert "batch 12 of producer 'p' was stored with a different body" in refused.json()["message"]
    for batch in range(100, 132):
        assert send(batch, '{"n": 1}').status_code == 200
    refused = send(1, '{"n": 1}')  # a producer that counts from the start again
    assert (refused.status_code, codes(refused), refused.json()["path"]) == (409, ["batch_too_old"], "batch")
    assert "batches from 100 on" in refused.json()["message"]
    assert "such as 132" in refused.json()["hint"]
    assert len(values(client, "kept")) == 35


def test_a_refused_batch_leaves_no_dead_letters(client: httpx.Client, typed: str) -> None:
    assert post(client, typed, '{"id": 1}', "?producer=till&batch=1").status_code == 200
    refused = post(client, typed, '{"id": 1}\n{"id": "x"}', "?producer=till&batch=1")
    assert (refused.status_code, codes(refused)) == (409, ["batch_conflict"])
    assert values(client, f"{typed}.dead") == []


def test_transactions_are_marked(api: Api, typed: str) -> None:
    post(api.client, typed, '{"id": 1}\n{"id": 2}', "?tx=t1&tx_end=false")
    post(api.client, typed, '{"id": 3}', "?tx=t1")
    marks = api.service.streams.log(typed).storage.transactions(0, 3)
    assert marks == [(0, 2, "t1", False), (2, 3, "t1", True)]
    empty = post(api.client, typed, "", "?tx=t2")
    assert (empty.status_code, codes(empty)) == (422, ["empty_transaction"])


@pytest.mark.parametrize("query", ["?producer=x", "?batch=1", "?batch=-1&producer=x", "?tx_end=maybe"])
def test_parameters_that_make_no_sense(client: httpx.Client, typed: str, query: str) -> None:
    assert post(client, typed, "{}", query).status_code == 422


def test_nothing_is_a_body_too(client: httpx.Client, typed: str) -> None:
    answer = post(client, typed, "")
    assert (answer.status_code, answer.json()["accepted"], answer.json()["next"]) == (200, 0, 0)


def test_a_stream_that_is_not_there(client: httpx.Client, typed: str) -> None:
    refused = post(client, "orders_row", "{}")
    assert (refused.status_code, codes(refused)) == (404, ["not_found"])
    assert "orders_raw" in refused.json()["hint"]
    client.delete(f"/streams/{typed}")
    assert post(client, typed, "{}").status_code == 404


def test_a_change_of_the_schema_takes_effect_at_once(client: httpx.Client, typed: str) -> None:
    post(client, typed, '{"id": 1, "extra": 5}')
    client.patch(f"/streams/{typed}", json={"schema": f"{TYPED}, extra INT"})
    post(client, typed, '{"id": 2, "extra": 5}')
    assert [row["extra"] for row in values(client, typed)] == [None, 5]


@pytest.fixture
def stuck(api: Api) -> Iterator[httpx.Client]:
    """A stream of two small segments whose only reader does not move: it is soon full."""
    yield api.client
    for cursor in api.service.streams.log("stuck").storage.cursors():
        api.service.streams.log("stuck").storage.forget_cursor(cursor.reader)


def fill(api: Api, **buffer: Any) -> httpx.Response:
    wal = {"max_segments": 2, "segment_bytes": 2000, "on_full": "block", "compression": "none"}
    buffer = {"max_events": 10, "timeout_ms": 100, **buffer}
    assert api.client.post("/streams", json=stream("stuck", wal=wal, buffer=buffer)).status_code == 201
    api.service.streams.log("stuck").move_cursor(Cursor("slow", 0))
    for number in range(200):
        answer = post(api.client, "stuck", json.dumps({"n": number, "text": "x" * 100}))
        if answer.status_code != 200:
            return answer
    raise AssertionError("it never was full")


def have_patience(api: Api, ms: int) -> None:
    """Let senders to the full stream wait longer from now on."""
    assert api.client.patch("/streams/stuck", json={"buffer": {"timeout_ms": ms}}).status_code == 200


def test_a_stream_that_is_full_answers_503_and_keeps_nothing_of_it(api: Api, stuck: httpx.Client) -> None:
    refused = fill(api)
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    kept = len(values(stuck, "stuck"))
    assert post(stuck, "stuck", "1\n2\n3\n").status_code == 503
    assert len(values(stuck, "stuck")) == kept
    storage = api.service.streams.log("stuck").storage
    assert not [name for name, count in storage.counts().items() if count and name.startswith("dropped")]
    storage.move_cursor(Cursor("slow", kept))
    answer = post(stuck, "stuck", "4")
    assert (answer.status_code, answer.json()["first"]) == (200, kept)


def test_a_stream_that_drops_answers_429_and_counts(api: Api, stuck: httpx.Client) -> None:
    refused = fill(api, mode="timeout")
    assert (refused.status_code, codes(refused)) == (429, ["timeout"]), refused.text
    assert int(refused.headers["retry-after"]) >= 1
    counters = stuck.get("/streams/stuck/stats").json()["counters"]
    assert counters["dropped_timeout"] == 1


def test_the_server_answers_while_senders_wait(api: Api, stuck: httpx.Client) -> None:
    fill(api)
    have_patience(api, 600)

    def send(_: int) -> int:
        with httpx.Client(base_url=api.url, timeout=30, trust_env=False) as client:
            return post(client, "stuck", "1\n" * 5).status_code

    with ThreadPoolExecutor(12) as pool:
        waiting = pool.map(send, range(12))
        time.sleep(0.3)
        began = time.monotonic()
        assert stuck.get("/healthz").status_code == 200
        assert time.monotonic() - began < 1
        assert set(waiting) == {503}


def test_an_append_whose_sender_has_gone_is_taken_back(api: Api, stuck: httpx.Client) -> None:
    fill(api)
    have_patience(api, 120_000)
    kept = len(values(stuck, "stuck"))
    with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=api.url, timeout=0.3, trust_env=False) as c:
        post(c, "stuck", '"gone"')
    log = api.service.streams.log("stuck")
    deadline = time.monotonic() + 60
    while log.fill["events"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert log.fill["events"] == 0
    log.move_cursor(Cursor("slow", kept))
    assert post(stuck, "stuck", '"here"').json()["first"] == kept


def test_many_clients_share_writes(api: Api) -> None:
    spec = {"wal": {"sync": True, "batch": {"max_ms": 20}}}
    assert api.client.post("/streams", json=stream("shared", **spec)).status_code == 201

    async def send() -> list[int]:
        async with httpx.AsyncClient(base_url=api.url, timeout=30, trust_env=False) as client:

            async def one(number: int) -> int:
                answer = await client.post("/streams/shared/events", json={"n": number})
                return int(answer.json()["first"])

            return await asyncio.gather(*map(one, range(64)))

    offsets = asyncio.run(send())
    assert sorted(offsets) == list(range(64))
    found = values(api.client, "shared")
    assert sorted(json.loads(value)["n"] for value in found) == list(range(64))
    assert [json.loads(found[offset])["n"] for offset in offsets] == list(range(64))
    frames = {event["time"] for event in api.client.get("/streams/shared/events").json()["events"]}
    assert len(frames) < 40


def test_bodies_at_once_are_bounded(api: Api, raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.api.intake.MOST_HELD", 1000)
    begun = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield b"x" * 900
        begun.set()
        time.sleep(1.5)
        yield b"\n"

    def send() -> int:
        with httpx.Client(base_url=api.url, timeout=30, trust_env=False) as client:
            return client.post(
                f"/streams/{raw}/events", content=slowly(), headers={"Content-Type": "text/plain"}
            ).status_code

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(send)
        begun.wait(60)
        time.sleep(0.3)
        refused = post(api.client, raw, b"1" * 200)
        assert (refused.status_code, codes(refused)) == (503, ["busy"])
        assert slow.result() == 200
    assert post(api.client, raw, b"1").status_code == 200


# Sources


def test_events_for_a_source_go_to_its_stream(client: httpx.Client, typed: str) -> None:
    source = {"metadata": {"name": "Shop"}, "spec": {"type": "http", "path": "/in/shop", "stream": typed}}
    assert client.post("/sources", json=source).status_code == 201
    for name in ("shop", "in/shop"):
        answer = client.post(f"/ingest/{name}", content='{"id": 1}\n', headers=NDJSON)
        assert (answer.status_code, answer.json()["stream"]) == (200, typed), answer.text
    assert len(values(client, typed)) == 2
    refused = client.post("/ingest/shep", json={})
    assert (refused.status_code, codes(refused)) == (404, ["not_found"])


def test_a_source_has_limits_of_its_own(client: httpx.Client, typed: str) -> None:
    spec = {"type": "http", "stream": typed, "atomic": True, "max_body_bytes": 100}
    client.post("/sources", json={"metadata": {"name": "strict"}, "spec": spec})
    assert client.post("/ingest/strict", content=b" " * 101, headers=NDJSON).status_code == 413
    refused = client.post("/ingest/strict", content=BAD, headers=NDJSON)
    assert (refused.status_code, refused.json()["accepted"]) == (400, 0)
    kept = client.post("/ingest/strict?atomic=false", content=BAD, headers=NDJSON)
    assert (kept.status_code, kept.json()["accepted"]) == (400, 2)


def test_events_for_pipelines_wait_in_their_inputs(client: httpx.Client) -> None:
    source = {"metadata": {"name": "shared"}, "spec": {"type": "http"}}
    assert client.post("/sources", json=source).status_code == 201
    nobody = client.post("/ingest/shared", json=1)
    assert (nobody.status_code, codes(nobody)) == (409, ["nobody_reads"])
    for name in ("one", "two"):
        created = client.post("/pipelines", json=pipeline(name, source={"ref": "shared"}))
        assert created.status_code == 201, created.text
    answer = client.post("/ingest/shared", json=[1, 2])
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["stream"], told["accepted"]) == ("one.in", 2)
    assert told["also"] == [{"stream": "two.in", "first": 0, "next": 2}]
    assert values(client, "one.in") == values(client, "two.in") == ["1", "2"]


def test_an_answer_names_the_pipelines_that_kept_what_another_one_refused(client: httpx.Client) -> None:
    client.post("/sources", json={"metadata": {"name": "shared"}, "spec": {"type": "http"}})
    small = {"limit": 2, "mode": "block", "timeout_ms": 100}
    for name, buffer in (("one", {}), ("two", small)):
        created = client.post("/pipelines", json=pipeline(name, source={"ref": "shared"}, buffer=buffer))
        assert created.status_code == 201, created.text
    assert client.post("/ingest/shared?producer=p&batch=1", json=[1, 2]).status_code == 200

    partly = client.post("/ingest/shared?producer=p&batch=2", json=[3])
    told = partly.json()
    assert (partly.status_code, told["code"]) == (503, "partly_kept"), partly.text
    assert partly.headers["retry-after"]
    assert told["kept"] == [{"stream": "one.in", "first": 2, "next": 3}]
    assert "'one.in' stored the events, but 'two.in' did not" in told["message"]
    assert "same producer and batch again" in told["hint"]
    plain = client.post("/ingest/shared", json=[4])
    assert plain.status_code == 503
    assert "nothing was stored" in plain.json()["message"], "the full one is asked first"
    assert values(client, "one.in") == ["1", "2", "3"]

    wide = {"spec": {"buffer": {"limit": 100}}}
    assert client.patch("/pipelines/two", json=wide).status_code in (200, 202)
    again = client.post("/ingest/shared?producer=p&batch=2", json=[3])
    assert (again.status_code, again.json()["duplicate"]) == (200, False), again.text
    assert client.post("/ingest/shared?producer=p&batch=2", json=[3]).json()["duplicate"]
    assert values(client, "one.in") == values(client, "two.in") == ["1", "2", "3"], "each once"


def test_what_does_not_fit_a_pipeline_is_kept_beside_its_input(client: httpx.Client) -> None:
    source = {"type": "http", "schema": TYPED}
    assert client.post("/pipelines", json=pipeline("direct", source=source)).status_code == 201
    told = client.post("/ingest/direct", content=BAD, headers=NDJSON).json()
    assert (told["accepted"], told["dead_letters"]["stream"]) == (2, "direct.in.dead")
    assert values(client, "direct.in.dead") == ['{"id": "x"}', "nothing"]
