"""The `redis` connectors against a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.probe import Probe
from penstock.connectors.redis.entries import parse_start
from penstock.engine.plan.connections import ConnectorRole
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import SOURCE, SinkSuite
from penstock.testing.source_suite import SOME, Events, SourceSuite, ids
from tests.messaging import COLUMNS, LOGIN, WRONG_LOGIN, QueuePlace, QueueTarget, codes, probe
from tests.redis_server import RedisServer


class RedisTarget(QueueTarget):
    def __init__(self, server: RedisServer) -> None:
        self.server, self.stream = server, server.name()

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "redis", "address": self.server.address, "key": self.stream, "max_event_bytes": 1000,
        }  # fmt: skip
        return {**given, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [json.loads(fields["value"]) for fields in self.server.entries(self.stream)]

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        self.server.client.set(f"{self.stream}:text", "x")
        return {
            "address": (self.spec(address="127.0.0.1:9"), "unreachable"),
            "login": (self.spec(security=WRONG_LOGIN), "redis_login"),
            "database": (self.spec(database=99), "unknown_database"),
            "key": (self.spec(key=f"{self.stream}:text"), "wrong_type"),
            "tls": (self.spec(address=self.server.tls_address, security={"tls": {}}), "redis_tls"),
        }


class RedisPlace(QueuePlace):
    lag = True

    def __init__(self, server: RedisServer) -> None:
        self.server, self.stream = server, server.name()

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "redis", "address": self.server.address, "key": self.stream, "schema": COLUMNS,
            "prefetch": 50,
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        self.server.add(self.stream, *map(dict, events), key=key, headers=headers)

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        entries = self.server.client.xrange(self.stream)
        # The last one that is the first of its millisecond: all of them may have come in the same.
        number = max(i for i, (name, _) in enumerate(entries) if name.endswith("-0"))
        moment = datetime.fromtimestamp(int(entries[number][0].partition("-")[0]) / 1000, UTC)
        return {
            "earliest": ("earliest", len(SOME)),
            "latest": ("latest", 0),
            "id": (f"id:{entries[290][0]}", 10),
            "time": (f"time:{moment.isoformat()}", len(SOME) - number),
        }

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        self.server.client.set(f"{self.stream}:text", "x")
        return {
            "address": (self.spec(address="127.0.0.1:9"), "unreachable"),
            "login": (self.spec(security=WRONG_LOGIN), "redis_login"),
            "key": (self.spec(key=f"{self.stream}:text"), "wrong_type"),
        }


class TestRedisSource(SourceSuite):
    @pytest.fixture
    def system(self, redis_server: RedisServer) -> RedisPlace:
        return RedisPlace(redis_server)


def test_an_entry_of_others_is_an_object_of_its_fields(bench: Bench, redis_server: RedisServer) -> None:
    place = RedisPlace(redis_server)
    out = bench.root / "out"
    with bench.running(place.spec(schema="name STRING, bytes STRING"), to_files(out)) as kept:
        wait_until("the start", lambda: kept.state.ops.get("lag_events") == 0)
        redis_server.client.xadd(place.stream, {"name": "ä", "bytes": b"\xff"})
        wait_until("the event", lambda: files(out))
    assert files(out) == [{"name": "ä", "bytes": "/w=="}]


@pytest.mark.parametrize("how", ["trim", "delete", "anew"])
@pytest.mark.parametrize("gap", ["skip", "fail"])
def test_entries_that_were_removed(gap: str, how: str, bench: Bench, redis_server: RedisServer) -> None:
    place, client = RedisPlace(redis_server), redis_server.client
    place.put(SOME[:20])
    out = bench.root / "out"
    with bench.running(place.spec(gap=gap), to_files(out)):
        wait_until("the events", lambda: len(files(out)) >= 20)
    if how == "anew":
        client.delete(place.stream)
    place.put(SOME[20:40])
    if how == "trim":
        client.xtrim(place.stream, maxlen=10, approximate=False)
    elif how == "delete":
        client.xdel(place.stream, *(entry for entry, _ in client.xrange(place.stream)[20:30]))
    if gap == "fail" and how != "anew":
        error = bench.run(place.spec(gap=gap), to_files(out)).error or {}
        assert (error["code"], error["path"]) == ("gap", "spec.source.gap")
        return
    with bench.running(place.spec(gap=gap), to_files(out)):
        wait_until("the last event", lambda: 39 in ids(files(out)))
    missing = range(20) if how == "anew" else range(30)
    assert ids(files(out)) == [*range(20), *range(len(missing), 40)]


def test_entries_that_were_read_may_be_removed(bench: Bench, redis_server: RedisServer) -> None:
    place, client = RedisPlace(redis_server), redis_server.client
    place.put(SOME[:20])
    client.xdel(place.stream, *(entry for entry, _ in client.xrange(place.stream)[5:10]))
    out = bench.root / "out"
    with bench.running(place.spec(), to_files(out)):
        wait_until("the events", lambda: len(files(out)) >= 15)
        client.xtrim(place.stream, maxlen=2, approximate=False)
        place.put(SOME[20:30])
        wait_until("the events", lambda: len(files(out)) >= 25)
    client.xtrim(place.stream, maxlen=0, approximate=False)
    place.put(SOME[30:40])
    with bench.running(place.spec(), to_files(out)) as kept:
        wait_until("the events", lambda: len(files(out)) >= 35)
        wait_until("no lag", lambda: kept.state.ops.get("lag_events") == 0)
    assert ids(files(out)) == [*range(5), *range(10, 40)]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("earliest", (0, 0)),
        ("latest", None),
        ("id:5-3", (5, 2)),
        ("id:5", (4, 2**64 - 1)),
        ("id:0-0", (0, 0)),
        ("time:1970-01-01T00:00:01.0005Z", (1000, 2**64 - 1)),
        ("time:1960-01-01T00:00:00Z", (0, 0)),
    ],
)
def test_where_a_reader_begins(text: str, after: tuple[int, int] | None) -> None:
    assert parse_start(text) == after


@pytest.mark.parametrize("text", ["offset:5", "id:x", "id:", "id:-1", "now"])
def test_what_is_no_position(text: str) -> None:
    with pytest.raises(ValueError, match=": use "):
        parse_start(text)


class TestRedisSink(SinkSuite):
    @pytest.fixture
    def system(self, redis_server: RedisServer) -> RedisTarget:
        return RedisTarget(redis_server)


def test_an_entry_has_the_key_and_the_headers(bench: Bench, redis_server: RedisServer) -> None:
    target = RedisTarget(redis_server)
    row = {
        "id": "seq", "to": "concat('x', seq)", "_key": "concat('k', seq)",
        "_headers": "map('h', 'ä', 'g', '')",
    }  # fmt: skip
    spec = target.spec(key=f"{target.stream}:{{to}}")
    state = bench.run({"type": "generate", "count": 2, "row": row}, spec)
    assert state.outcome == "completed", state.error
    (entry,) = redis_server.entries(f"{target.stream}:x1")
    assert json.loads(entry.pop("value")) == {"id": 1, "to": "x1"}
    assert entry == {"key": "k1", "headers": '{"h": "ä", "g": ""}'}


def test_a_key_of_another_type_is_a_letter(bench: Bench, redis_server: RedisServer) -> None:
    target = RedisTarget(redis_server)
    redis_server.client.set(f"{target.stream}:0", "x")
    spec = target.spec(key=f"{target.stream}:{{id}}")
    state = bench.run({**SOURCE, "count": 3}, spec)
    assert state.outcome == "completed", state.error
    assert [(letter["code"], json.loads(letter["event"])["id"]) for letter in bench.letters()] == [
        ("wrong_type", 0)
    ]
    assert (
        len(redis_server.entries(f"{target.stream}:1"))
        == len(redis_server.entries(f"{target.stream}:2"))
        == 1
    )


def test_a_stream_is_trimmed(bench: Bench, redis_server: RedisServer) -> None:
    target = RedisTarget(redis_server)
    state = bench.run(SOURCE, target.spec(max_length=200))
    assert state.outcome == "completed", state.error
    found = [event["id"] for event in target.received(bench)]
    assert 200 <= len(found) <= 400  # whole nodes of 100 entries are removed
    assert found[-1] == 999


def test_a_server_without_memory_makes_the_flow_wait(bench: Bench, redis_server: RedisServer) -> None:
    target, client = RedisTarget(redis_server), redis_server.client
    client.config_set("maxmemory", "1")
    try:
        kept = bench.keeper({**SOURCE, "count": 10}, target.spec(retries=0))
        kept.start()
        time.sleep(5)
        assert not kept.ended, kept.state
    finally:
        client.config_set("maxmemory", "0")
    kept.join(60)
    assert kept.state.outcome == "completed", kept.state
    assert len(target.received(bench)) == 10


def test_tls_and_a_login(bench: Bench, redis_server: RedisServer) -> None:
    target = RedisTarget(redis_server)
    security = {"tls": {"ca_file": str(redis_server.ca_file)}, **LOGIN}
    spec = target.spec(address=redis_server.tls_address, security=security)
    state = bench.run({**SOURCE, "count": 10}, spec)
    assert state.outcome == "completed", state.error
    assert len(target.received(bench)) == 10


def test_a_file_that_is_missing_is_named(bench: Bench, redis_server: RedisServer) -> None:
    spec = RedisTarget(redis_server).spec(security={"tls": {"ca_file": "/no/such.pem"}}, retries=0)
    error = bench.run(SOURCE, spec, restart={"policy": "never"}).error or {}
    assert (error["code"], error["path"]) == ("tls_file", "spec.sinks[0].security.tls.ca_file"), error
    assert "/no/such.pem" in error["message"]


def probed(spark: SparkSession, role: ConnectorRole, server: RedisServer, **spec: Any) -> Probe:
    return probe(spark, role, **{"type": "redis", "address": server.address, **spec})


def test_the_connection_test_of_the_sink(spark: SparkSession, redis_server: RedisServer) -> None:
    stream = redis_server.name()
    redis_server.add(stream, *({"id": i} for i in range(8)))
    redis_server.client.set(f"{stream}:text", "x")
    found = probed(spark, "sink", redis_server, key=stream)
    assert found.problems == []
    assert stream in found.offers["streams"]
    assert [json.loads(entry["value"])["id"] for entry in found.sample] == [3, 4, 5, 6, 7]
    assert codes(probed(spark, "sink", redis_server, key=f"{stream}:text")) == [("wrong_type", "key")]
    assert codes(probed(spark, "sink", redis_server, key="new")) == []
    assert codes(probed(spark, "sink", redis_server, key="x", security=WRONG_LOGIN)) == [
        ("redis_login", "security.login")
    ]
    assert codes(probed(spark, "sink", redis_server, key="x", address="127.0.0.1:9")) == [
        ("unreachable", "address")
    ]


def test_the_connection_test_of_the_source(spark: SparkSession, redis_server: RedisServer) -> None:
    stream = redis_server.name()
    redis_server.add(stream, {"id": 1})
    found = probed(spark, "source", redis_server, key=stream, schema=COLUMNS)
    assert found.problems == []
    assert len(found.sample) == 1
    assert codes(probed(spark, "source", redis_server, key="none", schema=COLUMNS)) == [
        ("unknown_stream", "key")
    ]
