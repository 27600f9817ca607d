from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from penstock.errors import Invalid
from tests.flows import Streams, flow_of, json_rows, keeper, letters, pipeline, run, running
from tests.kafka_server import PASSWORD, SCRAM_PASSWORD, USER, Kafka
from tests.processors.registry_server import registry_server

SCHEMA = "id BIGINT, name STRING"


def source(broker: Kafka, topic: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "kafka", "brokers": [broker.address], "topics": [topic], "schema": SCHEMA, "finite": True,
        **fields,
    }  # fmt: skip


def raw_source(broker: Kafka, topic: str, **fields: Any) -> dict[str, Any]:
    made = source(broker, topic, format="text", **fields)
    return {name: value for name, value in made.items() if name != "schema"}


def to_file(broker: Kafka, given: dict[str, Any], out: Path, **spec: Any) -> dict[str, Any]:
    return pipeline(source=given, sinks=[{"type": "file", "path": str(out), "format": "json"}], **spec)


def test_json_is_decoded_by_the_strict_rule(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic, streams = broker.topic(2), Streams(tmp_path)
    broker.send(topic, *({"id": i, "name": f"n{i}", "more": [1]} for i in range(100)))
    broker.send(topic, '{"id": 1.5, "name": "x"}', "no json", b'{"id": 1, "name": "\xff"}', "", key="k")
    state = run(
        spark, to_file(broker, source(broker, topic), tmp_path / "out"), tmp_path / "c", site=streams.site()
    )
    assert state.outcome == "completed", state.error
    rows = json_rows(tmp_path / "out")
    assert sorted(row["id"] for row in rows) == list(range(100))
    assert set(rows[0]) == {"id", "name"}
    found = letters(streams)
    assert sorted(letter["code"] for letter in found) == [
        "invalid_utf8",
        "not_json",
        "not_json",
        "wrong_type",
    ]
    wrong = next(letter for letter in found if letter["code"] == "wrong_type")
    assert wrong["event"] == '{"id": 1.5, "name": "x"}'
    assert "column 'id' is 1.5" in wrong["reason"]
    assert wrong["key"] == b"k"
    assert wrong["offset"]


def test_a_backlog_of_uneven_partitions_is_judged_in_the_order_of_its_records_times(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    """Partition 1 has few records over the same hour. One record of partition 0 is late within it."""
    topic, begin = broker.topic(2), 1_700_000_000_000
    for number in range(360):
        at = begin + 10_000 * number
        broker.send(topic, {"at": at}, partition=0, time_ms=at)
        if number % 60 == 0:
            broker.send(topic, {"at": at}, partition=1, time_ms=at)
        if number == 100:
            broker.send(topic, {"at": begin}, partition=0, time_ms=begin)
    window = {"type": "window", "time": "at", "size": "60s", "aggregates": {"n": "count(*)"}}
    given = source(broker, topic, schema="at TIMESTAMP", timestamps="epoch_ms")
    out = tmp_path / "out"
    state = run(spark, to_file(broker, given, out, processors=[window]), tmp_path / "c")
    assert (state.outcome, state.error) == ("completed", None)
    assert sum(row["n"] for row in json_rows(out)) == 360 + 6
    assert state.ops["processors"]["window"]["dropped"] == 1, "live, it would have been late too"


def test_metadata_key_and_headers(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic()
    headers = [("a", b"1"), ("b", b"2"), ("a", b"3")]
    broker.send(topic, {"id": 1}, key="k", headers=headers, time_ms=1_700_000_000_123)
    broker.send(topic, {"id": 2})
    out = tmp_path / "out"
    run(spark, to_file(broker, source(broker, topic, metadata=True), out), tmp_path / "c")
    first, second = sorted(json_rows(out), key=lambda row: row["_offset"])
    assert first == {
        "id": 1, "name": None, "_topic": topic, "_partition": 0, "_offset": 0,
        "_time": "2023-11-14T22:13:20.123000Z", "_key": "k", "_headers": {"a": "3", "b": "2"},
    }  # fmt: skip
    assert (second["_key"], second["_headers"]) == (None, None)


def test_text_has_value_key_and_headers(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, "one", key="k", headers=[("h", b"x")])
    broker.send(topic, None, key="gone")
    state = run(spark, to_file(broker, raw_source(broker, topic), tmp_path / "out"), tmp_path / "c")
    assert state.outcome == "completed", state.error
    assert json_rows(tmp_path / "out") == [
        {"value": "one", "key": "k", "headers": {"h": "x"}},
        {"value": None, "key": "gone", "headers": None},
    ]


def test_a_tombstone_is_an_event_of_nulls_unless_a_column_is_required(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic, streams = broker.topic(), Streams(tmp_path)
    broker.send(topic, None, key="k")
    run(spark, to_file(broker, source(broker, topic), tmp_path / "out"), tmp_path / "c1")
    assert json_rows(tmp_path / "out") == [{"id": None, "name": None}]
    strict = source(broker, topic, schema="id BIGINT NOT NULL, name STRING")
    run(spark, to_file(broker, strict, tmp_path / "out2"), tmp_path / "c2", site=streams.site())
    assert json_rows(tmp_path / "out2") == []
    assert [letter["code"] for letter in letters(streams)] == ["missing_field"]


def test_positions(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic(2)
    for i in range(4):
        broker.send(topic, {"id": i}, partition=i % 2, time_ms=1_000_000 + i)

    def read(position: Any) -> list[int]:
        out = tmp_path / f"out-{abs(hash(str(position)))}"
        given = source(broker, topic, position=position)
        state = run(spark, to_file(broker, given, out), out.with_suffix(".checkpoint"))
        assert state.outcome == "completed", state.error
        return sorted(row["id"] for row in json_rows(out))

    assert read("earliest") == [0, 1, 2, 3]
    assert read("latest") == []
    assert read("time:1970-01-01T00:16:40.001500Z") == [2, 3]
    assert read({topic: {0: 1, "1": "latest"}}) == [2]


def test_a_pattern_and_a_login(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, {"id": 1})
    login = {"sasl": {"mechanism": "PLAIN", "username": USER, "password": PASSWORD}}
    given = source(broker, topic, pattern=f"{topic[:-1]}.", brokers=[broker.sasl_address], security=login)
    del given["topics"]
    state = run(spark, to_file(broker, given, tmp_path / "out"), tmp_path / "c")
    assert state.outcome == "completed", state.error
    assert [row["id"] for row in json_rows(tmp_path / "out")] == [1]


def test_encrypted_with_a_login_by_scram(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic, target = broker.topic(), broker.topic()
    broker.send(topic, {"id": 1})
    sasl = {"mechanism": "SCRAM-SHA-512", "username": USER, "password": SCRAM_PASSWORD}
    secure = {
        "brokers": [broker.tls_address],
        "security": {"tls": {"ca_file": str(broker.ca_file)}, "sasl": sasl},
    }
    sink = {"type": "kafka", "topic": target, **secure}
    state = run(spark, pipeline(source=source(broker, topic, **secure), sinks=[sink]), tmp_path / "c")
    assert state.outcome == "completed", state.error
    assert [record.value() for record in broker.records(target, 1)] == [b'{"id":1,"name":null}']


def test_a_broker_that_is_not_trusted(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    sasl = {"mechanism": "SCRAM-SHA-512", "username": USER, "password": SCRAM_PASSWORD}
    given = source(broker, broker.topic(), brokers=[broker.tls_address], security={"tls": {}, "sasl": sasl})
    raw = to_file(broker, given, tmp_path / "out", restart={"policy": "never"})
    error = run(spark, raw, tmp_path / "c").error or {}
    assert (error["code"], error["path"]) == ("kafka_tls", "spec.source.security.tls"), error


def test_a_restart_goes_on_and_a_changed_topic_starts_over(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic, other = broker.topic(), broker.topic()
    broker.send(topic, {"id": 1})
    broker.send(other, {"id": 10})
    raw = to_file(broker, source(broker, topic), tmp_path / "out")
    run(spark, raw, tmp_path / "c")
    broker.send(topic, {"id": 2})
    run(spark, raw, tmp_path / "c")
    run(spark, to_file(broker, source(broker, other), tmp_path / "out"), tmp_path / "c")
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == [1, 2, 10]
    first, second = (flow_of(to_file(broker, source(broker, t), tmp_path)) for t in (topic, other))
    assert first.position_key != second.position_key


def test_a_topic_may_be_called_offset(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    """Offsets of a stream have members of this name, and those of Kafka have topics."""
    topic = broker.topic(name="offset")
    broker.send(topic, {"id": 1})
    state = run(spark, to_file(broker, source(broker, topic), tmp_path / "out"), tmp_path / "c")
    assert state.outcome == "completed", state.error
    assert [row["id"] for row in json_rows(tmp_path / "out")] == [1]


def test_lag_is_reported_and_batches_are_limited(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, *({"id": i} for i in range(50)))
    given = source(broker, topic, finite=False)
    raw = to_file(broker, given, tmp_path / "out", batch={"max_events": 20, "max_inflight": 1})
    kept = keeper(spark, raw, tmp_path / "c")
    lags = set[Any]()
    with running(kept):
        until = time.monotonic() + 60
        while len(json_rows(tmp_path / "out")) < 50 and time.monotonic() < until:
            lags.add(kept.state.ops.get("lag_events"))
            time.sleep(0.02)
        while kept.state.ops.get("lag_events") != 0 and time.monotonic() < until:
            time.sleep(0.05)
    assert len(json_rows(tmp_path / "out")) == 50
    assert kept.state.ops["batches"] == 3
    assert kept.state.ops["lag_events"] == 0


def test_removed_events_fail_the_flow_or_are_skipped(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic = broker.topic()
    broker.send(topic, *({"id": i} for i in range(5)))
    for gap in ("fail", "skip"):
        raw = to_file(broker, source(broker, topic, position={topic: {0: 0}}, gap=gap), tmp_path / gap)
        if gap == "fail":
            broker.delete_records(topic, 3)
        state = run(spark, raw, tmp_path / f"c-{gap}")
        if gap == "fail":
            assert state.outcome == "failed"
            assert (state.error or {})["code"] == "gap"
            assert (state.error or {})["path"] == "spec.source.gap"
        else:
            assert sorted(row["id"] for row in json_rows(tmp_path / gap)) == [3, 4]


@pytest.mark.parametrize("wrong", ["address", "host", "login", "topic", "partitions"])
def test_errors_say_what_is_wrong(wrong: str, spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = broker.topic()
    quick = {"request.timeout.ms": "1500", "default.api.timeout.ms": "2000"}
    given = {
        "address": source(broker, topic, brokers=["127.0.0.1:9"]),
        "host": source(broker, topic, brokers=["no-such-host.invalid:9092"]),
        "login": source(
            broker, topic, brokers=[broker.sasl_address],
            security={"sasl": {"mechanism": "PLAIN", "username": USER, "password": "wrong"}},
        ),
        "topic": source(broker, "no-such-topic"),
        "partitions": source(broker, topic, position={topic: {0: 0, 1: 0}}),
    }[wrong]  # fmt: skip
    raw = to_file(broker, given | {"options": quick}, tmp_path / "out", restart={"policy": "never"})
    error = run(spark, raw, tmp_path / "c").error or {}
    assert error["code"] == {
        "address": "kafka_unreachable", "host": "unknown_host", "login": "kafka_login",
        "topic": "unknown_topic", "partitions": "position_partitions",
    }[wrong], error  # fmt: skip
    assert error["hint"]
    assert error["path"].startswith("spec.source.")
    assert "_legacy" not in error["message"]
    assert "Exception" not in error["message"], error


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"brokers": ["localhost"]}, "host:port"),
        ({"pattern": "x"}, "either 'topics' or 'pattern'"),
        ({"options": {"group.id": "x", "auto.offset.reset": "latest"}}, "other fields"),
        ({"position": "offset:3"}, "per partition"),
        ({"format": "text"}, "can't be used"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any], message: str) -> None:
    given = {"type": "kafka", "brokers": ["h:1"], "topics": ["t"], "schema": SCHEMA, **fields}
    with pytest.raises(Invalid, match=message):
        flow_of(pipeline(source=given))


def test_avro_with_a_registry_from_topic_to_topic(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    old: dict[str, Any] = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}
    new = {**old, "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}
    topic, target, streams = broker.topic(), broker.topic(), Streams(tmp_path)
    with registry_server() as registry:
        registry.schemas, registry.subjects = {1: json.dumps(old), 2: json.dumps(new)}, {"out": 2}
        broker.send(topic, framed(1, written(old, {"id": 7})), key="a")
        broker.send(topic, framed(2, written(new, {"id": 8, "name": "x"})), b"no avro", key="b")
        given = raw_source(broker, topic) | {"format": "bytes"}
        link = {"url": registry.url}
        steps = [
            {"type": "decode", "format": "avro", "registry": link, "schema": SCHEMA, "keep": False},
            {"type": "encode", "format": "avro", "registry": link | {"subject": "out"}, "into": "value"},
        ]
        sink = {"type": "kafka", "brokers": [broker.address], "topic": target}
        raw = pipeline(source=given, processors=steps, sinks=[sink])
        state = run(spark, raw, tmp_path / "c", site=streams.site())
    assert state.outcome == "completed", state.error
    found = {record.key(): record.value() for record in broker.records(target, 2)}
    assert {key: read_back(new, value) for key, value in found.items()} == {
        b"a": {"id": 7, "name": None},
        b"b": {"id": 8, "name": "x"},
    }
    assert [letter["code"] for letter in letters(streams)] == ["not_framed"]


def framed(schema: int, body: bytes) -> bytes:
    """A record as Confluent's clients write it."""
    return b"\x00" + schema.to_bytes(4, "big") + body


def written(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def read_back(schema: dict[str, Any], value: bytes) -> Any:
    assert value[:5] == framed(2, b"")
    return fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
