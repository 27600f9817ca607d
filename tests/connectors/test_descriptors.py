"""Connectors in a process with many open files: descriptors above 1,023, which `select.select` refuses."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.connections import probe_connector
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import SOURCE, SinkSystem
from penstock.testing.source_suite import SOME, SourceSystem, ids
from tests.connectors.test_amqp import AmqpPlace, AmqpTarget
from tests.connectors.test_mqtt import MqttPlace, MqttTarget
from tests.connectors.test_mysql_cdc import Rows
from tests.connectors.test_nats import NatsPlace, NatsTarget
from tests.connectors.test_postgres_cdc_flow import PostgresPlace
from tests.connectors.test_redis import RedisPlace, RedisTarget
from tests.connectors.test_sql import Place as SqlPlace
from tests.connectors.test_sql import Target as SqlTarget
from tests.connectors.test_websocket import Place as WebsocketPlace
from tests.databases import database
from tests.flows import NO_STREAMS
from tests.streams.kit import NIGHTLY
from tests.websocket_server import websocket_feed

FIRST = 1100
"""New descriptors are at least this."""

Systems = Iterator[tuple[SourceSystem | None, SinkSystem | None]]


def queue(fixture: str, place: Any, target: Any) -> Callable[[pytest.FixtureRequest], Any]:
    """A queue that is written to and read from."""

    @contextmanager
    def systems(request: pytest.FixtureRequest) -> Systems:
        server = request.getfixturevalue(fixture)
        yield place(server), target(server)

    return systems


def changes(fixture: str, place: Any) -> Callable[[pytest.FixtureRequest], Any]:
    """The changes of a database."""

    @contextmanager
    def systems(request: pytest.FixtureRequest) -> Systems:
        server = request.getfixturevalue(fixture)
        with server.database() as name:
            yield place(server, name), None

    return systems


def table(kind: str, role: str) -> Callable[[pytest.FixtureRequest], Any]:
    """A table that is read, or written to."""

    @contextmanager
    def systems(request: pytest.FixtureRequest) -> Systems:
        with database(kind, request) as base:
            yield (SqlPlace(base), None) if role == "source" else (None, SqlTarget(base))

    return systems


@contextmanager
def websocket(request: pytest.FixtureRequest) -> Systems:
    with websocket_feed() as feed:
        yield WebsocketPlace(feed), None


SYSTEMS: dict[str, Callable[[pytest.FixtureRequest], AbstractContextManager[Any]]] = {
    "mqtt": queue("mosquitto", MqttPlace, MqttTarget),
    "amqp": queue("rabbitmq", AmqpPlace, AmqpTarget),
    "nats": queue("nats_server", NatsPlace, NatsTarget),
    "redis": queue("redis_server", RedisPlace, RedisTarget),
    "postgres_cdc": changes("replicating", PostgresPlace),
    "mysql_cdc": changes("mariadb_server", Rows),
    **{
        f"{kind} {role}": table(kind, role) for kind in ("postgres", "mariadb") for role in ("source", "sink")
    },
    "websocket": websocket,
}


@contextmanager
def crowd() -> Iterator[None]:
    """All descriptors below `FIRST` are taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * FIRST), hard))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < FIRST:
            taken.append(os.dup(taken[0]))
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS if NIGHTLY else ["mqtt"])
def test_connects_sends_and_receives(
    name: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """Clients of the test itself, some of which use `select`, come before or after the crowd."""
    never = {"policy": "never"}
    first = Bench(spark, tmp_path / "first").run({**SOURCE, "count": 1}, {"type": "drop"}, restart=never)
    assert first.outcome == "completed", first.error  # Spark's server of callbacks uses `select`, too
    with SYSTEMS[name](request) as (place, target):
        if target is not None:
            bench = Bench(spark, tmp_path / "sink")
            with crowd():
                assert probe_connector("sink", target.spec(), NO_STREAMS, spark, {}).problems == []
                state = bench.run({**SOURCE, "count": 20}, target.spec(), restart=never)
            assert state.outcome == "completed", state.error
            assert ids(target.received(bench)) == list(range(20))
        if place is not None:
            bench, out = Bench(spark, tmp_path / "source"), tmp_path / "out"
            bench.processors = place.processors
            early = 0 if name == "websocket" else 1  # whose connection test would take the event
            place.put(SOME[:early])
            with ExitStack() as stack:
                with crowd():
                    assert probe_connector("source", place.spec(), NO_STREAMS, spark, {}).problems == []
                    kept = stack.enter_context(bench.running(place.spec(), to_files(out), restart=never))
                    wait_until("the start", lambda: kept.state.ready or kept.ended)
                    time.sleep(2)  # in which its receiver connects
                place.put(SOME[early:20])
                wait_until("the events", lambda: len(files(out)) >= 20 or kept.ended)
            assert ids(files(out)) == list(range(20)), kept.state.error
