"""The `mqtt` connectors against a real broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.mqtt.source import MqttSource
from penstock.connectors.probe import Probe
from penstock.engine.plan.connections import ConnectorRole
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import SOURCE, SinkSuite
from penstock.testing.source_suite import Events, SourceSuite, ids
from tests.messaging import COLUMNS, LOGIN, WRONG_LOGIN, QueuePlace, QueueTarget, codes, probe
from tests.mosquitto_server import Mosquitto, Subscriber


class MqttTarget(QueueTarget):
    def __init__(self, server: Mosquitto, topic: str | None = None) -> None:
        self.server, self.topic = server, topic or server.topic()
        self.subscriber = Subscriber(server, f"{self.topic}/#")

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {"type": "mqtt", "address": self.server.address, "topic": self.topic, "max_event_bytes": 1000}
        return {**given, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [json.loads(message.payload) for message in self.subscriber.messages()]

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(address="127.0.0.1:9"), "unreachable"),
            "login": (self.spec(address=self.server.login_address, security=WRONG_LOGIN), "mqtt_login"),
            "no login": (self.spec(address=self.server.login_address), "mqtt_login"),
            "forbidden": (self.spec(address=self.server.login_address, security=LOGIN), "mqtt_forbidden"),
            "tls": (self.spec(address=self.server.tls_address, security={"tls": {}, **LOGIN}), "mqtt_tls"),
            "qos": (self.spec(address=self.server.simple_address, qos=2), "mqtt_qos"),
        }


class MqttPlace(QueuePlace):
    repeats = True

    def __init__(self, server: Mosquitto) -> None:
        self.server, self.topic = server, server.topic()
        self.session = Subscriber(server, f"{self.topic}/#", qos=1)  # messages before the start are kept

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "mqtt", "address": self.server.address, "topics": [f"{self.topic}/#"], "schema": COLUMNS,
            "client_id": self.session.name, "prefetch": 50,
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        given = {**(headers or {}), **({"Penstock-Key": key} if key else {})}
        self.server.send(f"{self.topic}/x", *map(dict, events), headers=given)

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(address="127.0.0.1:9"), "unreachable"),
            "login": (self.spec(address=self.server.login_address, security=WRONG_LOGIN), "mqtt_login"),
        }


class TestMqttSource(SourceSuite):
    @pytest.fixture
    def system(self, mosquitto: Mosquitto) -> MqttPlace:
        return MqttPlace(mosquitto)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_several_topics_by_a_session_of_its_own(version: str, bench: Bench, mosquitto: Mosquitto) -> None:
    first, second = mosquitto.topic(), mosquitto.topic()
    mosquitto.send(f"{first}/kept", {"id": 0}, retain=True)

    def spec(*topics: str) -> dict[str, Any]:
        return {
            "type": "mqtt", "address": mosquitto.address, "topics": list(topics), "schema": "id BIGINT",
            "version": version, "topic_header": "topic", "metadata": True,
        }  # fmt: skip

    out = bench.root / "out"
    with bench.running(spec(f"{first}/+", second), to_files(out)):
        wait_until("the retained message", lambda: files(out))
        mosquitto.send(f"{first}/x", {"id": 1})
        mosquitto.send(second, {"id": 2})
        mosquitto.send(f"{first}/x/y", {"id": 3})
        wait_until("the messages", lambda: len(files(out)) >= 3)
    mosquitto.send(f"{first}/x", {"id": 4})  # kept in the session
    with bench.running(spec(f"{first}/+"), to_files(out)):
        wait_until("the message of the session", lambda: 4 in ids(files(out)))
        mosquitto.send(second, {"id": 5})  # is not subscribed to any more
        mosquitto.send(f"{first}/x", {"id": 6})
        wait_until("the last message", lambda: 6 in ids(files(out)))
    found = ids(files(out))
    assert sorted(set(found)) == [0, 1, 2, 4, 6]
    assert version != "5" or found == [0, 1, 2, 4, 6], "the retained message comes once"
    topics = {event["id"]: event["_headers"]["topic"] for event in files(out)}
    assert topics[2] == second


@pytest.mark.parametrize("topic", ["", "a/#/b", "a#", "a+/b", "x\0"])
def test_what_is_no_filter(topic: str) -> None:
    with pytest.raises(ValueError, match="not a valid filter"):
        MqttSource(address="localhost:1883", topics=[topic], schema=COLUMNS)  # type: ignore[call-arg]


class TestMqttSink(SinkSuite):
    @pytest.fixture
    def system(self, mosquitto: Mosquitto) -> MqttTarget:
        return MqttTarget(mosquitto)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_message_has_its_topic_and_headers(version: str, bench: Bench, mosquitto: Mosquitto) -> None:
    target = MqttTarget(mosquitto)
    row = {
        "id": "seq", "to": "concat('x', seq)", "_key": "concat('k', seq)",
        "_headers": "map('h', 'ä', 'g', '')",
    }  # fmt: skip
    spec = target.spec(topic=f"{target.topic}/{{to}}", qos=2, version=version)
    state = bench.run({"type": "generate", "count": 2, "row": row}, spec)
    assert state.outcome == "completed", state.error
    _, found = target.subscriber.messages()
    assert (found.topic, found.qos) == (f"{target.topic}/x1", 2)
    assert json.loads(found.payload) == {"id": 1, "to": "x1"}
    expected = [("h", "ä"), ("g", ""), ("Penstock-Key", "k1")] if version == "5" else None
    assert getattr(found.properties, "UserProperty", None) == expected


def test_without_acknowledgements(bench: Bench, mosquitto: Mosquitto) -> None:
    target = MqttTarget(mosquitto)
    state = bench.run(SOURCE, target.spec(qos=0))
    assert state.outcome == "completed", state.error
    assert len(target.received(bench)) == 1000
    assert {message.qos for message in target.subscriber.found} == {0}


def test_the_last_message_is_retained(bench: Bench, mosquitto: Mosquitto) -> None:
    topic = mosquitto.topic()
    spec = {"type": "mqtt", "address": mosquitto.address, "topic": topic, "retain": True}
    state = bench.run({**SOURCE, "count": 10}, spec)
    assert state.outcome == "completed", state.error
    late = MqttTarget(mosquitto, topic)
    assert [event["id"] for event in late.received(bench)] == [9]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"to": "'a/#'"}, "invalid_topic"),
        ({"to": "CAST(NULL AS STRING)"}, "invalid_topic"),
        ({"_key": "unhex('ff')"}, "invalid_header"),
        ({"_headers": "map('a', concat('x', char(0)))"}, "invalid_header"),
        ({"name": "repeat('x', 100000)"}, "too_large"),
    ],
)
def test_what_cannot_be_sent_is_a_letter(
    columns: dict[str, str], code: str, bench: Bench, mosquitto: Mosquitto
) -> None:
    target = MqttTarget(mosquitto)
    source = {"type": "generate", "count": 1, "row": {"id": "seq", "to": "'x'", **columns}}
    state = bench.run(source, target.spec(topic=f"{target.topic}/{{to}}", max_event_bytes=1_000_000))
    assert state.outcome == "completed", state.error
    assert [letter["code"] for letter in bench.letters()] == [code]
    assert target.received(bench) == []


def test_a_topic_that_is_forbidden_is_a_letter(bench: Bench, mosquitto: Mosquitto) -> None:
    target = MqttTarget(mosquitto, "allowed")
    row = {"id": "seq", "to": "IF(seq = 1, 'other', 'allowed')"}
    spec = target.spec(address=mosquitto.login_address, security=LOGIN, topic="{to}")
    state = bench.run({"type": "generate", "count": 3, "row": row}, spec)
    assert state.outcome == "completed", state.error
    assert [letter["code"] for letter in bench.letters()] == ["mqtt_forbidden"]
    # The broker closes the connection, so events before it may be sent again.
    assert {event["id"] for event in target.received(bench)} == {0, 2}


def test_tls(bench: Bench, mosquitto: Mosquitto) -> None:
    target = MqttTarget(mosquitto, "allowed/tls")
    security = {"tls": {"ca_file": str(mosquitto.ca_file)}, **LOGIN}
    state = bench.run({**SOURCE, "count": 10}, target.spec(address=mosquitto.tls_address, security=security))
    assert state.outcome == "completed", state.error
    assert len(target.received(bench)) == 10


def probed(spark: SparkSession, role: ConnectorRole, server: Mosquitto, **spec: Any) -> Probe:
    return probe(spark, role, **{"type": "mqtt", "address": server.address, **spec})


def test_the_connection_test_of_the_sink(spark: SparkSession, mosquitto: Mosquitto) -> None:
    assert codes(probed(spark, "sink", mosquitto, topic="x")) == []
    assert codes(probed(spark, "sink", mosquitto, topic="x", version="3.1.1")) == []
    wrong = {"topic": "x", "address": mosquitto.login_address, "security": WRONG_LOGIN}
    assert codes(probed(spark, "sink", mosquitto, **wrong)) == [("mqtt_login", "security.login")]
    assert codes(probed(spark, "sink", mosquitto, **wrong, version="3.1.1")) == [
        ("mqtt_login", "security.login")
    ]
    assert codes(probed(spark, "sink", mosquitto, topic="x", address="127.0.0.1:9")) == [
        ("unreachable", "address")
    ]


def test_the_connection_test_of_the_source(spark: SparkSession, mosquitto: Mosquitto) -> None:
    assert codes(probed(spark, "source", mosquitto, topics=["x"], schema=COLUMNS)) == []
    assert codes(probed(spark, "source", mosquitto, topics=["x"], schema=COLUMNS, address="127.0.0.1:9")) == [
        ("unreachable", "address")
    ]
