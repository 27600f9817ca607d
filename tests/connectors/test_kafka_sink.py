from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import analyse, offline
from tests.flows import Streams, letters, pipeline, run
from tests.kafka_server import PASSWORD, USER, Kafka


def sink(broker: Kafka, topic: str, **fields: Any) -> dict[str, Any]:
    return {"type": "kafka", "brokers": [broker.address], "topic": topic, **fields}


def lines(tmp_path: Path, *events: Any) -> dict[str, Any]:
    """A source of JSON lines in one file; a column is there if an event has it."""
    file = tmp_path / "in.json"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    return {"type": "file", "path": str(file), "format": "json", "finite": True}


def test_the_whole_event_is_the_value_as_json(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic(2)
    schema = (
        "id BIGINT, at TIMESTAMP, big DECIMAL(30, 2), gone STRING, _key STRING, _headers MAP<STRING, STRING>"
    )
    given = [
        {"id": i, "at": "2026-01-31T12:00:00.123456Z", "big": "12345678901234567890.12", "_key": f"k{i}",
         "_headers": {"h": "x"}}
        for i in range(10)
    ]  # fmt: skip
    raw = pipeline(source=lines(tmp_path, *given) | {"schema": schema}, sinks=[sink(broker, topic)])
    state = run(spark, raw, tmp_path / "c")
    assert state.outcome == "completed", state.error
    found = sorted(broker.records(topic, 10), key=lambda record: record.key())
    assert [record.key() for record in found] == [f"k{i}".encode() for i in range(10)]
    assert found[0].headers() == [("h", b"x")]
    assert json.loads(found[0].value()) == {
        "id": 0, "at": "2026-01-31T12:00:00.123456Z", "big": "12345678901234567890.12", "gone": None,
    }  # fmt: skip
    assert state.ops["sinks"]["kafka"]["events"] == 10


def test_a_value_column_is_the_value_and_null_is_a_tombstone(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic = broker.topic()
    given = lines(tmp_path, {"value": "plain", "key": "k"}, {"key": "gone"})
    raw = pipeline(source=given | {"schema": "value STRING, key STRING"}, sinks=[sink(broker, topic)])
    run(spark, raw, tmp_path / "c")
    assert [(r.key(), r.value()) for r in broker.records(topic, 2)] == [(b"k", b"plain"), (b"gone", None)]


def test_columns_may_have_the_names_of_a_record(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic()
    event = {"topic": "t", "key": "k", "value": 5, "headers": [{"x": "12345678901234567890.12"}], "row": "r"}
    schema = "topic STRING, key STRING, value BIGINT, headers ARRAY<STRUCT<x: DECIMAL(30, 2)>>, row STRING"
    raw = pipeline(source=lines(tmp_path, event) | {"schema": schema}, sinks=[sink(broker, topic)])
    state = run(spark, raw, tmp_path / "c")
    assert state.outcome == "completed", state.error
    (found,) = broker.records(topic, 1)
    assert (found.key(), json.loads(found.value())) == (None, event)


def test_key_and_headers_travel_from_topic_to_topic(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic, target = broker.topic(), broker.topic()
    broker.send(topic, {"id": 1}, {"id": 2}, key="k", headers=[("h", b"x")])
    source = {
        "type": "kafka", "brokers": [broker.address], "topics": [topic], "schema": "id BIGINT",
        "finite": True,
    }  # fmt: skip
    steps = [{"type": "filter", "where": "id > 1"}]
    run(spark, pipeline(source=source, processors=steps, sinks=[sink(broker, target)]), tmp_path / "c")
    (found,) = broker.records(target, 1)
    assert (found.key(), found.value(), found.headers()) == (b"k", b'{"id":2}', [("h", b"x")])


def test_a_topic_by_template_and_what_cannot_be_sent_is_a_letter(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic, streams = broker.topic(), Streams(tmp_path)
    prefix, last = topic[:-1], topic[-1]
    given = [
        {"id": 1, "to": last, "text": "x"},
        {"id": 2, "to": "not a name", "text": "x"},
        {"id": 3, "text": "x"},
        {"id": 4, "to": last, "text": "x" * 3000},
    ]
    target = sink(broker, f"{prefix}{{to}}", max_event_bytes=2000)
    raw = pipeline(source=lines(tmp_path, *given), sinks=[target])
    state = run(spark, raw, tmp_path / "c", site=streams.site())
    assert state.outcome == "completed", state.error
    assert [json.loads(record.value())["id"] for record in broker.records(topic, 2, seconds=3)] == [1]
    found = {json.loads(letter["event"])["id"]: letter for letter in letters(streams)}
    assert {i: letter["code"] for i, letter in found.items()} == {
        2: "invalid_topic", 3: "invalid_topic", 4: "too_large",
    }  # fmt: skip
    assert "'NULL'" in found[3]["reason"]
    assert state.ops["sinks"]["kafka"]["rejected"] == 3


def test_the_order_per_key_is_kept(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic, streams = broker.topic(2), Streams(tmp_path)
    stream = streams.make("numbers", schema="n BIGINT")
    for first in range(0, 2000, 100):
        numbers = list(range(first, first + 100))
        keys = pa.array([f"k{n % 3}".encode() for n in numbers], pa.binary())
        stream.append(pa.RecordBatch.from_arrays([pa.array(numbers), keys], names=["n", "_key"]))
    source = {"type": "stream", "stream": "numbers", "until": "latest"}
    raw = pipeline(source=source, sinks=[sink(broker, topic)], batch={"max_events": 100})
    state = run(spark, raw, tmp_path / "c", site=streams.site())
    assert state.outcome == "completed", state.error
    by_key: dict[bytes, list[int]] = {}
    for record in broker.records(topic, 2000):
        by_key.setdefault(record.key(), []).append(json.loads(record.value())["n"])
    assert sum(map(len, by_key.values())) == 2000
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


@pytest.mark.parametrize("wrong", ["address", "login", "topic"])
def test_errors_say_what_is_wrong(wrong: str, spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    quick = {"max.block.ms": "2000", "request.timeout.ms": "1000", "delivery.timeout.ms": "2000"}
    topic = broker.topic()
    login = {"sasl": {"mechanism": "PLAIN", "username": USER, "password": PASSWORD + "x"}}
    given = {
        "address": sink(broker, topic, brokers=["127.0.0.1:9"]),
        "login": sink(broker, topic, brokers=[broker.sasl_address], security=login),
        "topic": sink(broker, "no-such-topic"),
    }[wrong]
    raw = pipeline(sinks=[given | {"options": quick, "retries": 0}], restart={"policy": "never"})
    error = run(spark, raw, tmp_path / "c").error or {}
    code = {"address": "unknown_topic", "login": "kafka_login", "topic": "unknown_topic"}[wrong]
    assert error["code"] == code, error
    assert error["hint"]
    assert error["path"].startswith("spec.sinks[0].")
    assert "Exception" not in error["message"], error


@pytest.mark.parametrize(
    ("fields", "columns", "code"),
    [
        ({"topic": "t-{nmae}"}, "name STRING", "unknown_column"),
        ({}, "value STRING, other STRING", "extra_column"),
        ({}, "id BIGINT, _headers STRING", "wrong_type"),
        ({}, "_key STRING", "no_columns"),
    ],
)
def test_events_that_do_not_fit_are_refused_before_they_run(
    fields: dict[str, Any], columns: str, code: str, spark: SparkSession, tmp_path: Path
) -> None:
    given = {"type": "file", "path": str(tmp_path), "format": "json", "schema": columns}
    target = {"type": "kafka", "brokers": ["127.0.0.1:9"], "topic": "t", **fields}
    raw = pipeline(source=given, sinks=[target])
    analysis = analyse(raw, *offline([raw]), spark=spark)
    assert [problem.code for problem in analysis.errors] == [code]
    assert (analysis.errors[0].path or "").startswith("spec.sinks[0].topic")
