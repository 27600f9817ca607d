"""The `http_poll` source in flows, against a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.connections import probe_connector
from penstock.testing.flows import Bench, files, to_files
from penstock.testing.source_suite import Events, SourceSuite, SourceSystem
from tests.connectors.test_http_poller import params
from tests.flows import NO_STREAMS
from tests.http_server import Asked, Said, Server, serving

COLUMNS = "id BIGINT, name STRING"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


class Feed(SourceSystem):
    """A list of items, in pages of 50, with those after an id first."""

    outage_s = 20.0

    def __init__(self, server: Server) -> None:
        self.server = server
        self.items: list[Mapping[str, Any]] = []
        server.answer = self.answer

    def answer(self, asked: Asked) -> Said:
        if asked.path.startswith("/login"):
            return Said(status=401)
        if not asked.path.startswith("/items"):
            return Said(status=404)
        after, offset = int(params(asked).get("after", -1)), int(params(asked)["offset"])
        left = [item for item in self.items if item["id"] > after]
        return Said({"data": left[offset : offset + 50]})

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "http_poll", "url": f"{self.server.url}/items", "items": "data", "schema": COLUMNS,
            "cursor": {"field": "id", "param": "after"}, "paging": {"type": "offset", "size": 50},
            "poll_ms": 50, "timeout_ms": 2000,
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        self.items = [*self.items, *events]

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(url="http://127.0.0.1:9/"), "http_unreachable"),
            "login": (self.spec(url=f"{self.server.url}/login"), "http_unauthorized"),
            "path": (self.spec(url=f"{self.server.url}/other"), "http_not_found"),
            "items": (self.spec(items="rows"), "no_items"),
        }

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()


@pytest.mark.slow
class TestHttpPollSource(SourceSuite):
    @pytest.fixture
    def system(self, server: Server) -> Feed:
        return Feed(server)

    def test_ends_after_one_poll(self, bench: Bench, system: Feed) -> None:
        system.put([{"id": i, "name": "x"} for i in range(120)])
        out = bench.root / "out"
        state = bench.run(system.spec(once=True), to_files(out))
        assert state.outcome == "completed", state.error
        assert sorted(event["id"] for event in files(out)) == list(range(120))

    def test_keys_go_along_and_items_that_do_not_fit_are_letters(self, bench: Bench, system: Feed) -> None:
        system.put([{"id": 1, "name": "a"}, {"id": 2, "name": 5}, {"id": 3, "name": "c"}])
        copy = {"type": "stream", "stream": "copy"}
        assert bench.stream("copy") == []
        state = bench.run(system.spec(once=True, key="name"), copy)
        assert state.outcome == "completed", state.error
        found = {row["_key"]: json.loads(row["value"]) for row in bench.stream("copy")}
        assert found == {b"a": {"id": 1, "name": "a"}, b"c": {"id": 3, "name": "c"}}
        (letter,) = bench.letters()
        assert (letter["code"], letter["key"]) == ("wrong_type", b"5")


def test_the_connection_test(spark: SparkSession, server: Server) -> None:
    feed = Feed(server)
    feed.put([{"id": i, "name": "x"} for i in range(9)])
    found = probe_connector("source", feed.spec(), NO_STREAMS, spark, {})
    assert (found.problems, found.offers) == ([], {"fields": ["id", "name"]})
    assert found.sample == [{"id": i, "name": "x"} for i in range(5)]
    for name, (wrong, code) in feed.wrong().items():
        (problem,) = probe_connector("source", wrong, NO_STREAMS, spark, {}).problems
        assert (problem.code, bool(problem.path), bool(problem.hint)) == (code, True, True), name
    server.answer = lambda _: Said(status=429, headers={"Retry-After": "7"})
    (problem,) = probe_connector("source", feed.spec(), NO_STREAMS, spark, {}).problems
    assert (problem.code, problem.hint) == ("http_busy", "the service asks to wait 7 s")
