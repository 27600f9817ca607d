from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.probe import Probe
from penstock.engine.plan.connections import ConnectorRole, connectors_in, probe_connector
from tests.flows import NO_STREAMS, Streams, pipeline
from tests.kafka_server import PASSWORD, USER, Kafka


def probe(spark: SparkSession, role: ConnectorRole, site: Any = NO_STREAMS, **spec: Any) -> Probe:
    return probe_connector(role, spec, site, spark, {"PASSWORD": PASSWORD})


def codes(found: Probe) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.path) for problem in found.problems]


def test_kafka_offers_its_topics_and_a_sample(spark: SparkSession, broker: Kafka) -> None:
    topic = broker.topic(2)
    broker.send(topic, *({"id": i} for i in range(8)), key="k", partition=1)
    login = {"sasl": {"mechanism": "PLAIN", "username": USER, "password": "${PASSWORD}"}}
    found = probe(
        spark, "source", type="kafka", brokers=[broker.sasl_address], topics=[topic], schema="id BIGINT",
        security=login,
    )  # fmt: skip
    assert found.problems == []
    assert topic in found.offers["topics"]
    assert [row["offset"] for row in found.sample] == [3, 4, 5, 6, 7]
    assert found.sample[0]["value"] == '{"id": 3}'
    assert probe(spark, "sink", type="kafka", brokers=[broker.address], topic=topic).problems == []


def test_kafka_says_what_is_wrong_within_seconds(spark: SparkSession, broker: Kafka) -> None:
    def source(**fields: Any) -> list[tuple[str, str | None]]:
        given = {"type": "kafka", "brokers": [broker.address], "topics": ["x"], "schema": "id BIGINT"}
        began = time.monotonic()
        found = probe(spark, "source", **{**given, **fields})
        assert time.monotonic() - began < 20
        assert all(problem.hint for problem in found.problems)
        return codes(found)

    source()  # loads the jars
    assert source(brokers=["127.0.0.1:9"]) == [("unreachable", "brokers")]
    assert source(brokers=["no-such-host.invalid:9092"]) == [("unknown_host", "brokers")]
    assert source(topics=["x", "y"]) == [("unknown_topic", "topics[0]"), ("unknown_topic", "topics[1]")]
    wrong = {"sasl": {"mechanism": "PLAIN", "username": USER, "password": "wrong"}}
    assert source(brokers=[broker.sasl_address], security=wrong) == [("kafka_login", "security.sasl")]
    (without_tls,) = source(security={"tls": {}})
    assert without_tls in [("kafka_tls", "security.tls"), ("kafka_unreachable", "brokers")]


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("{}\n")
    given = {"type": "file", "format": "json"}
    assert probe(spark, "source", path=str(tmp_path), **given).offers == {
        "files": [str(tmp_path / "in.json")]
    }
    assert codes(probe(spark, "source", path=str(tmp_path / "no"), **given)) == [("path_not_found", "path")]
    assert probe(spark, "sink", path=str(tmp_path / "a" / "b"), **given).problems == []
    assert codes(probe(spark, "sink", path=str(tmp_path / "in.json" / "x"), **given)) == [
        ("not_a_directory", "path")
    ]
    assert probe(spark, "source", path=tmp_path.as_uri(), **given).problems == []
    assert not list(tmp_path.glob("a")), "nothing is made"
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        assert codes(probe(spark, "sink", path=str(tmp_path / "x"), **given)) == [
            ("path_not_writable", "path")
        ]


@pytest.mark.parametrize("role", ["source", "sink"])
def test_streams(role: ConnectorRole, spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.make("there")
    assert probe(spark, role, streams.site(), type="stream", stream="there").problems == []
    assert codes(probe(spark, role, streams.site(), type="stream", stream="gone")) == [
        ("unknown_reference", "stream")
    ]


def test_a_spec_that_is_not_valid_has_its_problems(spark: SparkSession) -> None:
    assert codes(probe(spark, "sink", type="file", format="jsn")) == [
        ("missing_field", "path"),
        ("invalid_choice", "format"),
    ]
    assert codes(probe(spark, "sink", type="fil")) == [("unknown_type", None)]
    assert codes(probe(spark, "sink", type="file", path="${GONE}", format="json")) == [
        ("unset_variable", "path")
    ]
    assert not probe(spark, "sink", type="drop").checked


def test_the_connectors_of_a_document() -> None:
    raw = pipeline(sinks=[{"type": "drop"}, {"ref": "other"}])
    assert [(each.role, each.path, each.type) for each in connectors_in(raw)] == [
        ("source", "spec.source", "generate"),
        ("sink", "spec.sinks[0]", "drop"),
    ]
    assert list(connectors_in({"kind": "Pipeline", "spec": {"source": 5, "sinks": 5}})) == []
