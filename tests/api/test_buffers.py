"""The buffer of a pipeline that is pushed to: its limits, and what a restart leaves of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.control.documents.service import Service
from penstock.control.fleet.server_start import take_up
from penstock.control.monitor.pulse import Pulse
from penstock.errors import Invalid
from penstock.streams.local import tail
from penstock.streams.log import Log
from penstock.streams.storage import Cursor
from tests.api.kit import Api, codes, judging, open_service, pipeline, running, stream
from tests.streams.kit import events, values

SOURCE = {"type": "http", "path": "/orders"}


def pushed(name: str = "orders", **spec: Any) -> dict[str, Any]:
    return pipeline(name, source=SOURCE, **spec)


def send(api: Api, count: int = 1, name: str = "orders") -> httpx.Response:
    body = "\n".join(f'{{"id": {number}}}' for number in range(count))
    return api.client.post(f"/ingest/{name}", content=body, headers={"Content-Type": "application/x-ndjson"})


def kept(service: Service, name: str = "orders") -> int:
    log = service.streams.log(f"{name}.in")
    return len(values(log, log.bounds().first))


def test_a_default_pipeline_keeps_what_it_acknowledges(tmp_path: Path) -> None:
    """The first service is not stopped: it ends as a killed process does."""
    with open_service(tmp_path) as first, judging(first):
        take_up(first)
        first.create("Pipeline", pushed())
        with running(first) as api:
            answer = send(api, 751).json()
            shown = api.client.get("/pipelines/orders").json()
        assert "survives a killed process" in answer["guarantee"]
        assert shown["guarantee"] == answer["guarantee"]
        with open_service(tmp_path) as second:
            take_up(second)
            assert kept(second) == answer["accepted"] == 751
            assert second.streams.lost == {}
            second.streams.stop()
        first.streams.stop()


@pytest.mark.parametrize("spill", [False, True])
@pytest.mark.parametrize("end", ["kill", "stop", "reboot"])
def test_what_a_restart_takes_from_memory_is_counted_and_announced(
    tmp_path: Path, end: str, spill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_service(tmp_path) as first, judging(first):
        take_up(first)
        first.create("Pipeline", pushed(buffer={"type": "memory", "spill": spill, "limit": 1000}))
        with running(first) as api:
            answer = send(api, 700).json()
            assert "only in memory" in answer["guarantee"]
            assert "not a restart of Penstock" in answer["guarantee"]
            assert api.client.get("/pipelines/orders").json()["guarantee"] == answer["guarantee"]
            send(api, 51)
        if end == "stop":
            first.streams.stop()
    with open_service(tmp_path) as second, judging(second):
        if end == "reboot":
            monkeypatch.setattr(tail, "boot_id", lambda: b"another boot id.")
            second.streams.home.forget_transient()
        take_up(second)
        assert kept(second) == 0
        counters = second.streams.log("orders.in").storage.counts()
        assert counters["lost_restart"] == 751
        (told,) = [each for each in Pulse(second).look().attention if each.code == "lost_restart"]
        assert (told.severity, told.id) == ("error", "orders.in")
        assert "751 events" in told.message
        assert "buffer: {type: wal}" in told.advice
        with running(second) as api:
            (line,) = api.client.get("/pipelines/orders/logs").json()["lines"]
            stats = api.client.get("/streams/orders.in/stats").json()
        assert line["level"] == "warning"
        assert line["message"].startswith("751 events of 'orders.in' were lost")
        assert (stats["counters"]["lost_restart"], stats["events"]) == (751, 0)
        assert [reader["lag_events"] for reader in stats["readers"]] == [0]
        second.streams.stop()
    with open_service(tmp_path) as third:  # and is not counted again
        take_up(third)
        assert third.streams.log("orders.in").storage.counts()["lost_restart"] == 751
        assert third.streams.lost == {}
        third.streams.stop()


def test_events_that_were_read_are_not_lost_by_a_restart(tmp_path: Path) -> None:
    with open_service(tmp_path) as first:
        take_up(first)
        first.registry.create(stream("s", wal={"enabled": False}))
        log = first.streams.log("s")
        log.append(events(10))
        log.move_cursor(Cursor("r", 8))
    with open_service(tmp_path) as second:
        take_up(second)
        assert second.streams.lost == {"s": 2}
        second.streams.stop()


def test_a_buffer_that_is_moved_to_disk_is_there_after_a_restart(tmp_path: Path) -> None:
    """Also without any maintenance of the stream between the change and the kill."""
    with open_service(tmp_path) as first, judging(first):
        first.create("Pipeline", pushed(buffer={"type": "memory"}))
        first.streams.log("orders.in").append(events(5))
        first.patch("Pipeline", "orders", {"buffer": {"type": "wal"}})
    with open_service(tmp_path) as second:
        take_up(second)
        assert kept(second) == 5
        second.streams.stop()


@pytest.mark.parametrize("kind", ["wal", "sqlite", "memory"])
@pytest.mark.parametrize(("mode", "status"), [("block", 503), ("drop", 429), ("timeout", 429)])
def test_at_its_limit_a_buffer_refuses_and_loses_nothing(api: Api, kind: str, mode: str, status: int) -> None:
    buffer = {"type": kind, "limit": 40, "mode": mode, "timeout_ms": 50}
    assert api.client.post("/pipelines", json=pushed(buffer=buffer)).status_code == 201
    taken = 0
    while (answer := send(api, 5)).status_code == 200:
        taken += 5
        assert taken <= 40
    assert taken >= 30
    assert answer.status_code == status
    assert int(answer.headers["retry-after"]) > 0
    assert len(codes(answer)) == 1
    log = api.service.streams.log("orders.in")
    assert (log.bounds().first, log.bounds().next) == (0, taken)
    counts = log.storage.counts()
    assert counts["dropped_buffer_full"] + counts["dropped_timeout"] == (0 if mode == "block" else 5)
    read_all(log)
    assert send(api, 5).status_code == 200


def read_all(log: Log) -> None:
    """As the pipeline does when it runs."""
    (cursor,) = log.storage.cursors()
    assert not cursor.has_run
    log.move_cursor(Cursor(cursor.reader, log.bounds().next))


@pytest.mark.parametrize("kind", ["wal", "sqlite", "memory"])
def test_a_buffer_has_a_limit_of_bytes(api: Api, kind: str) -> None:
    least = 128 * 1024  # of a database
    buffer = {"type": kind, "limit_bytes": least, "timeout_ms": 50}
    assert api.client.post("/pipelines", json=pushed(buffer=buffer)).status_code == 201
    log = api.service.streams.log("orders.in")
    for number in range(100):
        body = random.Random(number).randbytes(3000).hex().encode()
        answer = api.client.post("/ingest/orders", content=body, headers={"Content-Type": "text/plain"})
        if answer.status_code != 200:
            break
    assert (answer.status_code, log.bounds().first) == (503, 0)
    assert log.storage.usage().bytes <= least + 64 * 1024


def test_a_buffer_in_memory_spills_before_its_mode_applies(api: Api) -> None:
    buffer = {"type": "memory", "limit": 40, "mode": "drop", "spill": True}
    assert api.client.post("/pipelines", json=pushed(buffer=buffer)).status_code == 201
    for _ in range(20):
        assert send(api, 5).status_code == 200
    log = api.service.streams.log("orders.in")
    usage = log.storage.usage()
    assert (log.bounds().first, log.bounds().next) == (0, 100)
    assert usage.bytes > usage.memory_bytes > 0


def test_a_source_of_several_pipelines_tells_the_promise_of_each(api: Api) -> None:
    door = {"kind": "Source", "metadata": {"name": "door"}, "spec": {"type": "http"}}
    assert api.client.post("/sources", json=door).status_code == 201
    for name, kind in (("one", "wal"), ("two", "memory")):
        taker = pipeline(name, source={"ref": "door"}, buffer={"type": kind})
        assert api.client.post("/pipelines", json=taker).status_code == 201
    told = send(api, name="door").json()["guarantee"]
    assert "In 'one.in': An acknowledged event is written" in told
    assert "In 'two.in': An acknowledged event is only in memory" in told
    assert api.client.get("/sources/door").json()["guarantee"] == told
    assert api.client.get("/pipelines/one").json()["guarantee"] in told


def test_the_type_of_a_buffer_is_not_changed_under_events(api: Api) -> None:
    assert api.client.post("/pipelines", json=pushed()).status_code == 201
    send(api, 3)
    refused = api.client.patch("/pipelines/orders", json={"buffer": {"type": "sqlite"}})
    assert (refused.status_code, codes(refused)) == (422, ["storage_in_use"])
    assert "3 events" in refused.json()["message"]
    changed = {**pushed(buffer={"type": "sqlite"}), "apiVersion": "penstock/v1"}
    with pytest.raises(Invalid):
        api.service.import_([changed], "merge", dry_run=False)
    read_all(api.service.streams.log("orders.in"))
    assert api.client.patch("/pipelines/orders", json={"buffer": {"type": "sqlite"}}).status_code == 200
    assert send(api, 3).status_code == 200


def test_a_stream_keeps_events_for_a_reader_that_has_not_run(api: Api) -> None:
    api.client.post("/streams", json=stream("s", wal={"enabled": False}, buffer={"max_events": 40}))
    api.client.post("/streams", json=stream("t", wal={"enabled": False}))
    source = {"type": "stream", "stream": "s"}
    api.client.post("/pipelines", json=pipeline("late", source={**source, "position": "latest"}))
    log = api.service.streams.log("s")
    assert log.storage.cursors() == []
    api.client.post("/pipelines", json=pipeline("first", source=source))
    (cursor,) = log.storage.cursors()
    assert (cursor.reader.split(":")[:2], cursor.has_run) == (["pipeline", "first"], False)
    log.append(events(30))
    changed = api.client.patch("/pipelines/first", json={"source": {"stream": "t"}})
    assert changed.status_code == 200, changed.text
    assert log.storage.cursors() == []
    assert len(api.service.streams.log("t").storage.cursors()) == 1
    api.client.delete("/pipelines/first")
    assert api.service.streams.log("t").storage.cursors() == []
