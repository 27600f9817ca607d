"""What the configurations of each system mean in Penstock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.cli.convert.systems import Converted, convert_text

CORPUS = Path(__file__).parent / "corpus"


def convert(name: str, **options: Any) -> Converted:
    path = CORPUS / name
    return convert_text(path.read_text(), path.stem, **options)


def spec_of(result: Converted, kind: str = "Pipeline", name: str | None = None) -> Any:
    found = [d for d in result.documents if d["kind"] == kind and name in (None, d["metadata"]["name"])]
    assert len(found) == 1, [d["metadata"] for d in result.documents]
    return found[0]["spec"]


def changes(result: Converted) -> dict[str, str]:
    """By path, what was done in place of what cannot be mapped."""
    return {each.path: each.message for each in result.findings if each.level == "change"}


def test_bento_from_kafka_to_kafka() -> None:
    result = convert("bento/kafka_to_kafka.yaml")
    spec = spec_of(result)
    assert spec["source"] == {
        "type": "kafka", "format": "text", "brokers": ["kafka-1:9092", "${SECOND_BROKER:-kafka-2}:9092"],
        "topics": ["orders", "returns"], "position": "latest", "options": {"client.id": "bento"},
        "security": {
            "tls": {"ca_file": "/etc/ca.pem"},
            "sasl": {"mechanism": "SCRAM-SHA-512", "username": "reader", "password": "${KAFKA_PASSWORD}"},
        },
    }  # fmt: skip
    (sink,) = spec["sinks"]
    assert (sink["topic"], sink["options"]) == ("orders.{topic_1}", {"compression.type": "zstd"})
    assert sink["security"]["sasl"]["password"] == "${KAFKA_WRITER_PASSWORD}"
    assert spec["batch"] == {"max_events": 500, "max_ms": 1000}
    assert {"type": "map", "set": {"topic_1": "get_json_object(value, '$.country')"}} in spec["processors"]
    assert changes(result) == {
        "output.kafka_franz.partitioner": "keys choose the partition by Kafka's own hash"
    }


def test_bento_with_a_schema_becomes_sql() -> None:
    text = """\
input: {kafka: {addresses: [k:9092], topics: [t]}}
pipeline:
  processors:
    - mapping: |
        root = if this.amount <= 0 { deleted() }
    - mapping: |
        root.id = this.id
        root.gross = this.amount * 1.19
output:
  switch:
    cases:
      - check: this.gross > 100
        output: {kafka: {addresses: [k:9092], topic: big, key: '${! json("id") }'}}
      - output: {drop: {}}
"""
    spec = spec_of(convert_text(text, "typed", schema="id BIGINT, amount DOUBLE"))
    assert (spec["source"]["format"], spec["source"]["schema"]) == ("json", "id BIGINT, amount DOUBLE")
    assert spec["processors"] == [
        {"type": "filter", "where": "NOT coalesce(amount <= 0, false)"},
        {"type": "map", "set": {"id": "id", "gross": "amount * 1.19"}, "keep": False},
        {"type": "map", "set": {"_key": "CAST(id AS STRING)"}},
        {
            "type": "route",
            "rules": [{"when": "gross > 100", "sinks": ["kafka"]}, {"when": "true", "sinks": ["drop"]}],
            "default": "drop",
        },
    ]


def test_bento_with_several_inputs_has_a_stream_between() -> None:
    result = convert("bento/switch_and_brokers.yaml")
    sources = [d for d in result.documents if d["kind"] == "Source"]
    assert {d["spec"]["type"] for d in sources} == {"amqp", "mqtt", "nats", "redis"}
    (stream,) = {d["spec"]["stream"] for d in sources}
    assert spec_of(result)["source"] == {"type": "stream", "stream": stream}
    assert spec_of(result, "Stream", stream) == {}
    amqp = spec_of(result, "Source", "rabbit")
    assert (amqp["address"], amqp["queue"]) == ("rabbit:5672", "orders")
    assert amqp["security"]["login"] == {"username": "guest", "password": "${AMQP_0_9_PASSWORD}"}
    refused = changes(result)
    assert {"pipeline.processors[1].jq", "pipeline.processors[2].branch", "tests"} <= refused.keys()
    assert "a query as an argument" in refused["pipeline.processors[3].mapping"]


def test_bento_buffers_and_pushed_events() -> None:
    spec = spec_of(convert("bento/http_fan_out.yaml"))
    assert spec["source"] == {"type": "http", "path": "/orders"}
    assert spec["buffer"] == {"type": "memory", "limit_bytes": 1_000_000}
    assert spec["commit_policy"] == {"mode": "all"}
    assert [(sink["id"], sink["type"]) for sink in spec["sinks"]] == [
        ("archive", "file"), ("hook", "http"), ("stdout", "console"),
    ]  # fmt: skip
    assert spec["sinks"][1]["headers"]["Authorization"] == "Bearer ${HTTP_CLIENT_AUTHORIZATION}"


def test_bento_rows_for_a_database() -> None:
    result = convert("bento/files_to_sql.yaml")
    spec = spec_of(result)
    assert spec["processors"] == [
        {
            "type": "decode",
            "format": "json",
            "schema": "page STRING, `user` STRUCT<id: STRING>",
            "keep": False,
        },
        {"type": "map", "set": {"user_id": "`user`.id", "page": "lower(page)"}, "keep": False},
    ]
    assert spec["sinks"][0]["url"] == "postgresql://writer@db/warehouse"
    assert "output.sql_insert.args_mapping" in changes(result)
    changed = spec_of(convert("bento/cdc_to_sql.yaml"))
    assert changed["source"]["tables"] == ["public.orders", "public.customers"]
    assert changed["sinks"][0]["url"] == "mysql://writer:${SQL_INSERT_PASSWORD}@mysql.example:3306/warehouse"


def test_deltaforge() -> None:
    result = convert("deltaforge/orders.yaml")
    (document,) = result.documents
    assert document["metadata"]["labels"] == {"tenant": "acme", "team": "shop", "owner": "data"}
    spec = document["spec"]
    assert spec["source"]["type"] == "mysql_cdc"
    assert (spec["source"]["snapshot"], spec["source"]["snapshot_chunk_rows"]) == ("initial", 5000)
    assert spec["batch"]["max_inflight"] == 2
    assert spec["commit_policy"] == {"mode": "required"}
    kafka, redis = spec["sinks"]
    assert (kafka["required"], redis["required"]) == (True, False)
    assert kafka["topic"] == "cdc.{source_db}.{source_table}"
    assert spec["processors"][-1]["set"]["_key"] == "get_json_object(value, '$.payload.after.customer_id')"
    assert "spec.sinks[0].config.exactly_once" in changes(result)
    assert "spec.sinks[1].config.envelope" in changes(result)


def test_deltaforge_scripts_see_objects() -> None:
    """The script runs unchanged on V8, over the JSON text that our source gives."""
    import json

    from py_mini_racer import MiniRacer

    (step,) = [each for each in spec_of(convert("deltaforge/orders.yaml"))["processors"] if "inline" in each]
    change = {"op": "c", "after": {"id": 1}, "source": {"table": "orders"}}
    given = [{"value": json.dumps(change), "extra": 7}]
    made = json.loads(
        str(MiniRacer().eval(f"{step['inline']}\nJSON.stringify(processBatch({json.dumps(given)}))"))
    )
    assert json.loads(made[0]["value"]) == {**change, "tags": ["table orders"]}
    assert made[0]["extra"] == 7


def test_deltaforge_filters_and_policies() -> None:
    result = convert("deltaforge/filtered.yaml")
    spec = spec_of(result)
    where = spec["processors"][1]["where"]
    assert "get_json_object(value, '$.op') IN ('c', 'u')" in where
    assert "CAST(get_json_object(value, '$.after.total') AS DOUBLE) >= 100" in where
    assert spec["commit_policy"] == {"mode": "quorum", "quorum": 2}
    assert all(sink["deadline_ms"] == 20_000 for sink in spec["sinks"])
    assert spec["sinks"][1]["url"] == "https://example.com/hooks/{source_table}"
    assert "the processor 'outbox' was left out" in changes(result)["spec.processors[2]"]


def test_two_documents_in_a_file() -> None:
    result = convert("deltaforge/two_documents.yaml")
    assert [d["metadata"]["name"] for d in result.documents] == ["one", "two"]
    places = {each.path: each.at for each in result.findings if each.level == "change"}
    assert places["spec.source"] == "documents[0].spec.source"
    assert any(str(each.at).startswith("documents[1]") for each in result.findings)


def test_padas() -> None:
    result = convert("padas/orders.json")
    assert spec_of(result) == {
        "source": {"ref": "kafka_orders"},
        "tasks": ["clean", "revenue"],
        "sinks": [{"ref": "kafka_revenue"}, {"ref": "splunk"}],
    }
    stream = spec_of(result, "Stream", "raw_orders")
    assert stream["wal"]["retention_ms"] == 86_400_000
    assert stream["buffer"]["mode"] == "block"
    source = spec_of(result, "Source")
    assert "amount DOUBLE" in source["schema"]
    assert source["security"]["sasl"]["password"] == "${SASL_PASSWORD}"
    window = spec_of(result, "Task", "revenue")["processors"][-1]
    assert (window["size"], window["keys"]) == ("1h", ["tenant_id"])
    assert window["aggregates"] == {"revenue": "sum(total)", "orders": "count(*)"}
    assert "there is no sink for the class 'splunk'" in changes(result)["sinks[1].config"]


def test_padas_rules_and_states() -> None:
    (step,) = spec_of(convert("padas/detection.yaml"), "Task")["processors"]
    assert step == {"type": "filter", "where": "(event = 'login' AND ok = false)"}
    stopped = [d for d in convert("padas/syslog.json").documents if d["kind"] == "Pipeline"]
    assert stopped[0]["status"] == "stopped"


def test_connect_debezium() -> None:
    spec = spec_of(convert("kafka-connect/debezium_postgres.json"))
    assert spec["source"] == {
        "type": "postgres_cdc", "envelope": "debezium", "host": "postgres", "port": 5432, "user": "debezium",
        "password": "${DATABASE_PASSWORD}", "tables": ["public.orders"], "snapshot": "initial",
        "database": "inventory", "slot": "debezium", "publication": "dbz_publication",
    }  # fmt: skip
    assert spec["processors"][1]["set"] == {"value": "get_json_object(value, '$.after')"}
    (sink,) = spec["sinks"]
    assert sink["topic"] == "shop.orders", "RegexRouter was applied"
    mysql = spec_of(convert("kafka-connect/debezium_mysql.json"))
    assert mysql["sinks"][0]["brokers"] == ["kafka:9092"]
    assert mysql["sinks"][0]["topic"] == "shop.{topic}"
    assert mysql["source"]["password"] == "${MYSQL_PASSWORD}"


def test_connect_jdbc() -> None:
    result = convert("kafka-connect/jdbc_sink.properties", schema="id BIGINT, customer STRING, amount DOUBLE")
    spec = spec_of(result)
    assert spec["source"]["schema"] == "id BIGINT, customer STRING, amount DOUBLE"
    (sink,) = spec["sinks"]
    assert {key: sink[key] for key in ("type", "mode", "key", "table", "create", "retries")} == {
        "type": "sql", "mode": "upsert", "key": ["id"], "table": "kafka_orders", "create": "if_missing",
        "retries": 7,
    }  # fmt: skip
    assert spec["batch"] == {"max_events": 500}
    assert {"type": "map", "set": {"amount": "CAST(amount AS DOUBLE)"}} in spec["processors"]
    assert spec["processors"][-1] == {
        "type": "map", "set": {"id": "id", "customer": "customer", "amount": "amount"}, "keep": False,
    }  # fmt: skip
    source = spec_of(convert("kafka-connect/jdbc_source.json"))
    assert (source["source"]["column"], source["source"]["url"]) == ("id", "mysql://reader@db:3306/shop")
    assert source["sinks"][0]["topic"] == "mysql-orders"


def test_connect_files_and_unknown_classes() -> None:
    spec = spec_of(convert("kafka-connect/s3_sink.json"))
    assert spec["sinks"][0]["path"] == "s3a://lake/raw/logs"
    assert spec["batch"] == {"max_events": 1000, "max_ms": 60_000}
    assert {"type": "filter", "where": "value IS NOT NULL"} in spec["processors"]
    result = convert("kafka-connect/unknown_class.json")
    assert spec_of(result)["sinks"] == [{"type": "drop"}]
    assert "there is no connector" in changes(result)['config."connector.class"']
