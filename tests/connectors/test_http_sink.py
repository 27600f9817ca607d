"""The `http` sink in flows, against a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import analyse, offline
from penstock.engine.plan.connections import probe_connector
from penstock.testing.flows import Bench
from penstock.testing.sink_suite import COUNT, SMALL, SOURCE, SinkSuite, SinkSystem, losing
from tests.flows import NO_STREAMS, Streams, letters, pipeline, run
from tests.http_server import Asked, Said, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


class Service(SinkSystem):
    keyed = True
    outage_s = 20.0

    def __init__(self, server: Server) -> None:
        self.server = server
        server.answer = self.answer

    def answer(self, asked: Asked) -> Said:
        if asked.path == "/login":
            return Said({"error": "no such user"}, 401)
        if asked.path == "/nothing":
            return Said(status=404)
        return Said("too long", 422) if b"xxx" in asked.body else Said()

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {"type": "http", "url": f"{self.server.url}/events", "body": "lines", "max_events": 100}
        return {**given, "timeout_ms": 1000, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        accepted = [each for each in self.server.asked if self.answer(each).status == 200]
        return [json.loads(line) for each in accepted for line in each.body.splitlines()]

    def bad(self) -> tuple[dict[str, str], str]:
        return {"name": "repeat('x', CAST(seq % 2 AS INT) * 10)"}, "http_422"

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(url="http://127.0.0.1:9/"), "http_unreachable"),
            "login": (self.spec(url=f"{self.server.url}/login"), "http_unauthorized"),
            "path": (self.spec(url=f"{self.server.url}/nothing"), "http_not_found"),
        }

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()


@pytest.mark.slow
class TestHttpSink(SinkSuite):
    @pytest.fixture
    def system(self, server: Server) -> Service:
        return Service(server)

    def test_keys_reveal_what_was_sent_before_a_crash(self, bench: Bench, system: Service) -> None:
        """A receiver that remembers the keys of requests has each event once."""
        kept = bench.keeper(SOURCE, system.spec(), losing, batch=SMALL, restart={"policy": "never"})
        kept.start()
        kept.join(120)
        assert kept.state.outcome == "failed", kept.state
        assert bench.run(SOURCE, system.spec(), batch=SMALL).outcome == "completed"
        by_key = {each.headers["Idempotency-Key"]: each.body for each in system.server.asked}
        assert len(by_key) < len(system.server.asked), "nothing was repeated"
        events = [json.loads(line) for body in by_key.values() for line in body.splitlines()]
        assert sorted(event["id"] for event in events) == list(range(COUNT))


def lines(tmp_path: Path, schema: str, *events: Any) -> dict[str, Any]:
    file = tmp_path / "in.json"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    return {"type": "file", "path": str(file), "format": "json", "finite": True, "schema": schema}


def test_columns_in_the_url_and_in_headers(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    source = lines(
        tmp_path, "id BIGINT, name STRING, tag STRING",
        {"id": 1, "name": "a/b ü?&+", "tag": "first\r\nX-Evil: 1"},
        {"id": 2, "name": "plain"},
        {"id": 3},
        {"id": 4, "name": ".."},
    )  # fmt: skip
    sink = {
        "type": "http",
        "url": server.url + "/users/{name}?n={id}&secret=abc",
        "method": "PUT",
        "headers": {"X-Tag": "<{tag}>", "X-Fixed": "yes"},
    }
    state = run(spark, pipeline(source=source, sinks=[sink]), tmp_path / "c", site=streams.site())
    assert state.outcome == "completed", state.error
    assert [(each.method, each.path) for each in server.asked] == [
        ("PUT", "/users/a%2Fb%20%C3%BC%3F%26%2B?n=1&secret=abc"),
        ("PUT", "/users/plain?n=2&secret=abc"),
    ]
    first, second = server.asked
    assert first.headers["X-Tag"] == "<first X-Evil: 1>"
    assert "X-Evil" not in first.headers
    assert "X-Tag" not in second.headers
    assert second.headers["X-Fixed"] == "yes"
    assert second.json() == {"id": 2, "name": "plain", "tag": None}
    found = letters(streams)
    assert {json.loads(letter["event"])["id"]: letter["code"] for letter in found} == {
        3: "invalid_url", 4: "invalid_url",
    }  # fmt: skip
    assert not any("abc" in letter["reason"] for letter in found)


def test_beside_another_sink(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    """Several sinks read a frame that Spark has cached, and one alone a table."""
    sinks = [{"type": "http", "url": server.url, "body": "array"}, {"type": "drop"}]
    raw = pipeline(source={"type": "generate", "count": 10}, sinks=sinks)
    state = run(spark, raw, tmp_path / "c", site=Streams(tmp_path).site())
    assert state.outcome == "completed", state.error
    assert [event["seq"] for each in server.asked for event in each.json()] == list(range(10))


def test_a_value_column_is_the_body(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    source = lines(tmp_path, "value STRING, kind STRING", {"value": "plain text", "kind": "text/plain"})
    sink = {"type": "http", "url": server.url, "headers": {"Content-Type": "{kind}"}}
    state = run(spark, pipeline(source=source, sinks=[sink]), tmp_path / "c")
    assert state.outcome == "completed", state.error
    (asked,) = server.asked
    assert (asked.body, asked.headers["Content-Type"]) == (b"plain text", "text/plain")


def test_a_service_that_limits_the_rate_is_served_in_the_end(
    spark: SparkSession, server: Server, tmp_path: Path
) -> None:
    def answer(asked: Asked) -> Said:
        # Every third request is one too many.
        if len(server.asked) % 3 == 0:
            return Said(status=429, headers={"Retry-After": "0"})
        return Said()

    server.answer = answer
    sink = {"type": "http", "url": server.url, "retries": 0}
    state = run(spark, pipeline(source={"type": "generate", "count": 20}, sinks=[sink]), tmp_path / "c")
    assert state.outcome == "completed", state.error
    accepted = [each.json()["seq"] for i, each in enumerate(server.asked, 1) if i % 3]
    assert accepted == list(range(20))


def test_unknown_columns_are_found_before_it_runs(spark: SparkSession) -> None:
    sink = {"type": "http", "url": "http://x/{sequ}", "headers": {"X-Tag": "{nothing}"}}
    raw = pipeline(sinks=[sink])
    errors = analyse(raw, *offline([raw]), spark=spark).errors
    assert [(e.code, e.path) for e in errors] == [
        ("unknown_column", "spec.sinks[0].url"),
        ("unknown_column", "spec.sinks[0].headers.X-Tag"),
    ]
    assert errors[0].hint == "did you mean 'seq'?"


def probe(server: Server, spark: SparkSession, **fields: Any) -> list[tuple[str, str | None]]:
    spec = {"type": "http", "url": f"{server.url}/events", **fields}
    found = probe_connector("sink", spec, NO_STREAMS, spark, {})
    assert all(problem.hint for problem in found.problems)
    return [(problem.code, problem.path) for problem in found.problems]


def test_the_connection_test(spark: SparkSession, server: Server) -> None:
    def answer(asked: Asked) -> Said:
        assert asked.method == "OPTIONS"
        if asked.headers.get("Authorization") != "Bearer right":
            return Said(status=401)
        if asked.path == "/events":
            return Said(status=204, headers={"Allow": "OPTIONS, POST"})
        return Said(status=404)

    server.answer = answer
    right = {"auth": {"bearer": "right"}}
    spec = {"type": "http", "url": f"{server.url}/events", **right}
    found = probe_connector("sink", spec, NO_STREAMS, spark, {})
    assert (found.problems, found.offers) == ([], {"methods": ["OPTIONS", "POST"]})
    assert probe(server, spark) == [("http_unauthorized", "auth")]
    assert probe(server, spark, method="PUT", **right) == [("http_method", "method")]
    assert probe(server, spark, url=f"{server.url}/other", **right) == [("http_not_found", "url")]
    assert probe(server, spark, url=server.url + "/users/{seq}", **right) == []
    assert probe(server, spark, url="http://127.0.0.1:9/") == [("http_unreachable", "url")]
    assert probe(server, spark, url="http://no-such-host.invalid/") == [("unknown_host", "url")]
    assert not probe_connector(
        "sink", {"type": "http", "url": "https://{seq}.x/"}, NO_STREAMS, spark, {}
    ).checked
