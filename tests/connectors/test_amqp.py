"""The `amqp` connectors against a real RabbitMQ."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.probe import Probe
from penstock.engine.plan.connections import ConnectorRole
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import SOURCE, SinkSuite
from penstock.testing.source_suite import SOME, Events, SourceSuite, ids
from tests.messaging import COLUMNS, LOGIN, WRONG_LOGIN, QueuePlace, QueueTarget, codes, probe
from tests.rabbitmq_server import Rabbitmq


class AmqpTarget(QueueTarget):
    def __init__(self, server: Rabbitmq, **arguments: Any) -> None:
        self.server, self.queue = server, server.queue(**arguments)

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "amqp", "address": self.server.address, "routing_key": self.queue, "security": LOGIN,
            "max_event_bytes": 1000,
        }  # fmt: skip
        return {**given, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [json.loads(body) for _, body in self.server.messages(self.queue)]

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(address="127.0.0.1:9"), "unreachable"),
            "login": (self.spec(security=WRONG_LOGIN), "amqp_login"),
            "virtual host": (self.spec(virtual_host="none"), "unknown_virtual_host"),
            "exchange": (self.spec(exchange="none"), "unknown_exchange"),
            "tls": (self.spec(address=self.server.tls_address, security={"tls": {}, **LOGIN}), "amqp_tls"),
        }


class AmqpPlace(QueuePlace):
    lag = repeats = True

    def __init__(self, server: Rabbitmq) -> None:
        self.server, self.queue = server, server.queue()

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "amqp", "address": self.server.address, "queue": self.queue, "security": LOGIN,
            "schema": COLUMNS, "prefetch": 50,
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        given = {**(headers or {}), **({"Penstock-Key": key} if key else {})}
        self.server.send(self.queue, *map(dict, events), headers=given)

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(address="127.0.0.1:9"), "unreachable"),
            "login": (self.spec(security=WRONG_LOGIN), "amqp_login"),
            "queue": (self.spec(queue="none"), "unknown_queue"),
        }


class TestAmqpSource(SourceSuite):
    @pytest.fixture
    def system(self, rabbitmq: Rabbitmq) -> AmqpPlace:
        return AmqpPlace(rabbitmq)


def test_headers_of_any_type_are_text(bench: Bench, rabbitmq: Rabbitmq) -> None:
    place = AmqpPlace(rabbitmq)
    headers = {"n": 5, "yes": True, "list": [1, "x"], "bytes": b"\xff", "text": "ä"}
    rabbitmq.send(place.queue, b"plain", headers=headers)
    spec = {name: value for name, value in place.spec().items() if name != "schema"}
    out = bench.root / "out"
    with bench.running({**spec, "format": "text", "routing_key_header": "to"}, to_files(out)):
        wait_until("the event", lambda: files(out))
    (event,) = files(out)
    assert (event["value"], event["key"]) == ("plain", None)
    assert event["headers"] == {
        "n": "5", "yes": "true", "list": '[1, "x"]', "bytes": "/w==", "text": "ä", "to": place.queue,
    }  # fmt: skip


def test_a_message_is_acknowledged_once_it_is_kept(bench: Bench, rabbitmq: Rabbitmq) -> None:
    place = AmqpPlace(rabbitmq)
    place.put(SOME)
    out = bench.root / "out"
    with bench.running(place.spec(), to_files(out)):
        wait_until("the events", lambda: len(files(out)) >= len(SOME))
    assert rabbitmq.size(place.queue) == 0
    assert ids(files(out)) == ids(SOME)


def test_a_queue_that_is_deleted_is_an_error(bench: Bench, rabbitmq: Rabbitmq) -> None:
    place = AmqpPlace(rabbitmq)
    with bench.running(place.spec(), to_files(bench.root / "out")) as kept:
        wait_until("the start", lambda: kept.state.ops.get("lag_events") == 0)
        with rabbitmq.channel() as channel:
            channel.queue_delete(place.queue)
        wait_until("the error", lambda: (kept.state.error or {}).get("code") == "unknown_queue")


class TestAmqpSink(SinkSuite):
    @pytest.fixture
    def system(self, rabbitmq: Rabbitmq) -> AmqpTarget:
        return AmqpTarget(rabbitmq)


def test_a_message_has_its_properties(bench: Bench, rabbitmq: Rabbitmq) -> None:
    target, exchange = AmqpTarget(rabbitmq), f"x-{uuid.uuid4().hex}"
    with rabbitmq.channel() as channel:
        channel.exchange_declare(exchange, "topic")
        channel.queue_bind(target.queue, exchange, "a.*")
    row = {
        "id": "seq", "to": "concat('x', seq)", "_key": "concat('k', seq)",
        "_headers": "map('h', 'ä', 'g', '')",
    }  # fmt: skip
    spec = target.spec(exchange=exchange, routing_key="a.{to}")
    state = bench.run({"type": "generate", "count": 2, "row": row}, spec)
    assert state.outcome == "completed", state.error
    (_, (properties, body)) = rabbitmq.messages(target.queue)
    assert json.loads(body) == {"id": 1, "to": "x1"}
    assert properties.headers == {"h": "ä", "g": "", "Penstock-Key": "k1"}
    assert properties.delivery_mode == 2
    assert properties.message_id.startswith("suite.amqp.0.")


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"to": "'no-such-queue'"}, "unroutable"),
        ({"to": "CAST(NULL AS STRING)"}, "invalid_routing_key"),
        ({"to": "repeat('ä', 200)"}, "invalid_routing_key"),
        ({"_key": "unhex('ff')"}, "invalid_header"),
        ({"_headers": "map(repeat('a', 300), 'x')"}, "invalid_header"),
    ],
)
def test_what_cannot_be_sent_is_a_letter(
    columns: dict[str, str], code: str, bench: Bench, rabbitmq: Rabbitmq
) -> None:
    target = AmqpTarget(rabbitmq)
    bad = {name: f"IF(seq = 1, {value}, {_other(name, target.queue)})" for name, value in columns.items()}
    source = {"type": "generate", "count": 3, "row": {"id": "seq", "to": f"'{target.queue}'", **bad}}
    state = bench.run(source, target.spec(routing_key="{to}", max_event_bytes=10_000))
    assert state.outcome == "completed", state.error
    (letter,) = bench.letters()
    assert (letter["code"], json.loads(letter["event"])["id"]) == (code, 1)
    assert [event["id"] for event in target.received(bench)] == [0, 2]


def _other(name: str, queue: str) -> str:
    return {"to": f"'{queue}'", "_key": "CAST('k' AS BINARY)", "_headers": "map('a', 'x')"}[name]


def test_an_exchange_without_a_routing_key(bench: Bench, rabbitmq: Rabbitmq) -> None:
    target, exchange = AmqpTarget(rabbitmq), f"x-{uuid.uuid4().hex}"
    with rabbitmq.channel() as channel:
        channel.exchange_declare(exchange, "fanout")
        channel.queue_bind(target.queue, exchange)
    spec = {name: value for name, value in target.spec(exchange=exchange).items() if name != "routing_key"}
    state = bench.run({**SOURCE, "count": 10}, spec)
    assert state.outcome == "completed", state.error
    assert len(target.received(bench)) == 10


def test_without_mandatory_the_server_drops_what_no_queue_receives(bench: Bench, rabbitmq: Rabbitmq) -> None:
    target = AmqpTarget(rabbitmq)
    state = bench.run({**SOURCE, "count": 10}, target.spec(routing_key="none", mandatory=False))
    assert state.outcome == "completed", state.error
    assert bench.letters() == []


def test_a_full_queue_makes_the_flow_wait(bench: Bench, rabbitmq: Rabbitmq) -> None:
    full: dict[str, Any] = {"x-max-length": 20, "x-overflow": "reject-publish"}
    target = AmqpTarget(rabbitmq, **full)
    kept = bench.keeper({**SOURCE, "count": 60}, target.spec(deadline_ms=2000, retries=0))
    kept.start()
    found: list[int] = []
    until = time.monotonic() + 60
    while len(found) < 60 and time.monotonic() < until:
        time.sleep(4 if not found else 0.5)  # longer than the deadline: waiting is no failure
        with rabbitmq.channel() as channel:
            for _ in range(20):
                method, _, body = channel.basic_get(target.queue, auto_ack=True)
                found += [json.loads(body)["id"]] if method is not None else []
    kept.join(60)
    assert kept.state.outcome == "completed", kept.state
    assert sorted(found) == list(range(60)), "each event once"


def test_tls(bench: Bench, rabbitmq: Rabbitmq) -> None:
    target = AmqpTarget(rabbitmq)
    security = {"tls": {"ca_file": str(rabbitmq.ca_file)}, **LOGIN}
    spec = target.spec(address=rabbitmq.tls_address, security=security)
    state = bench.run({**SOURCE, "count": 10}, spec)
    assert state.outcome == "completed", state.error
    assert len(target.received(bench)) == 10


def probed(spark: SparkSession, role: ConnectorRole, server: Rabbitmq, **spec: Any) -> Probe:
    return probe(spark, role, **{"type": "amqp", "address": server.address, "security": LOGIN, **spec})


def test_the_connection_test_of_the_sink(spark: SparkSession, rabbitmq: Rabbitmq) -> None:
    assert codes(probed(spark, "sink", rabbitmq, exchange="amq.topic", routing_key="x")) == []
    assert codes(probed(spark, "sink", rabbitmq, routing_key=rabbitmq.queue())) == []
    assert codes(probed(spark, "sink", rabbitmq, routing_key="none")) == [("unknown_queue", "queue")]
    assert codes(probed(spark, "sink", rabbitmq, exchange="none")) == [("unknown_exchange", "exchange")]
    assert codes(probed(spark, "sink", rabbitmq, routing_key="x", security=WRONG_LOGIN)) == [
        ("amqp_login", "security.login")
    ]
    assert codes(probed(spark, "sink", rabbitmq, routing_key="x", virtual_host="none")) == [
        ("unknown_virtual_host", "virtual_host")
    ]
    assert codes(probed(spark, "sink", rabbitmq, routing_key="x", address="127.0.0.1:9")) == [
        ("unreachable", "address")
    ]


def test_the_connection_test_of_the_source(spark: SparkSession, rabbitmq: Rabbitmq) -> None:
    assert codes(probed(spark, "source", rabbitmq, queue=rabbitmq.queue(), schema=COLUMNS)) == []
    assert codes(probed(spark, "source", rabbitmq, queue="none", schema=COLUMNS)) == [
        ("unknown_queue", "queue")
    ]
