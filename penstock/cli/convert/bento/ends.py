"""Inputs and outputs of Bento and Redpanda Connect: tables from their fields to ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.cli.convert.draft import Note, Same, Table, To
from penstock.cli.convert.values import GROUP, boolean, comma_list, mechanism, milliseconds, number, text_map

TUNING = Note("tuning of the other system's client: Penstock has its own")
REPLAY = Note("Penstock always redelivers unacknowledged events")


@dataclass(frozen=True)
class End:
    """Our connector for a foreign one: its type, its fixed fields, and the table of fields."""

    type: str
    table: Table
    fixed: dict[str, Any] = field(default_factory=dict)
    raw: bool = True
    """Sources: whether events come as a BINARY or STRING `value` with a key and headers beside it."""
    shape: str = "message"
    """Sinks: `message` delivers the text in `value`, `rows` requires columns."""


def _snapshot(node: Any) -> str:
    return "initial" if boolean(node) else "never"


def _position(node: Any) -> str:
    return "earliest" if boolean(node) else "latest"


KAFKA: dict[str, Any] = {
    "addresses": To("brokers", comma_list),
    "seed_brokers": To("brokers", comma_list),
    "tls.root_cas_file": "security.tls.ca_file",
    "sasl.user": "security.sasl.username",
    "sasl.username": "security.sasl.username",
    "sasl.password": "security.sasl.password",
    "client_id": To("options", lambda node: {"client.id": node.text()}),
    "target_version": TUNING,
    "metadata_max_age": TUNING,
    "rack_id": To("options", lambda node: {"client.rack": node.text()}),
    "timeout": TUNING,
    "conn_idle_timeout": TUNING,
}

INPUTS: dict[str, End] = {
    "kafka": End(
        "kafka",
        {
            **KAFKA,
            "topics": To("topics", comma_list),
            "consumer_group": GROUP,
            "start_from_oldest": To("position", _position),
            "checkpoint_limit": TUNING,
            "commit_period": TUNING,
            "max_processing_period": TUNING,
            "group": TUNING,
            "fetch_buffer_cap": TUNING,
            "auto_replay_nacks": REPLAY,
            "extract_tracing_map": TUNING,
            "multi_header": Same(False, "of headers with the same name the last one is kept"),
        },
        {"format": "text"},
    ),
    "amqp_0_9": End(
        "amqp",
        {
            "urls": To("url", lambda node: comma_list(node)[0]),
            "queue": "queue",
            "prefetch_count": To("prefetch", number),
            "consumer_tag": TUNING,
            "prefetch_size": TUNING,
            "auto_ack": Same(False, "messages are acknowledged when they are stored"),
        },
        {"format": "text"},
    ),
    "nats_jetstream": End(
        "nats",
        {
            "urls": To("servers", comma_list),
            "subject": "subject",
            "stream": "jetstream",
            "durable": GROUP,
            "queue": GROUP,
            "bind": GROUP,
            "deliver": To("position", lambda node: {"all": "earliest"}.get(node.text(), "latest")),
            "ack_wait": TUNING,
            "max_ack_pending": To("prefetch", number),
        },
        {"format": "text"},
    ),
    "redis_streams": End(
        "redis",
        {
            "url": "url",
            "streams": To("key", lambda node: comma_list(node)[0]),
            "body_key": Same("value", "the value of an entry is in the field 'value'", code="changed"),
            "consumer_group": GROUP,
            "client_id": GROUP,
            "start_from_oldest": To("position", _position),
            "limit": To("prefetch", number),
            "commit_period": TUNING,
            "timeout": TUNING,
            "create_streams": TUNING,
            "auto_replay_nacks": REPLAY,
        },
        {"format": "text"},
    ),
    "mqtt": End(
        "mqtt",
        {
            "urls": To("url", lambda node: comma_list(node)[0]),
            "topics": To("topics", comma_list),
            "qos": Same(1, "messages are received with qos 1", code="changed"),
            "client_id": "client_id",
            "user": "security.login.username",
            "password": "security.login.password",
            "connect_timeout": TUNING,
            "keepalive": TUNING,
            "auto_replay_nacks": REPLAY,
        },
        {"format": "text"},
    ),
    "file": End(
        "file",
        {"delete_on_finish": Same(False, "files are not deleted after they are read")},
        {"format": "text", "finite": True},
        raw=False,
    ),
    "stdin": End("stdin", {"auto_replay_nacks": REPLAY}, {"format": "text"}, raw=False),
    "http_server": End(
        "http",
        {
            "path": "path",
            "address": Note("Penstock's server accepts the events: its address is a server setting"),
            "timeout": TUNING,
            "allowed_verbs": Same(["POST"], "events are sent with POST"),
        },
    ),
    "http_client": End(
        "http_poll",
        {
            "url": "url",
            "verb": "method",
            "headers": To("headers", text_map),
            "timeout": To("timeout_ms", milliseconds),
            "auto_replay_nacks": REPLAY,
        },
        {"format": "text"},
    ),
    "websocket": End("websocket", {"url": "url"}, {"format": "text"}),
    "postgres_cdc": End(
        "postgres_cdc",
        {
            "dsn": "url",
            "slot_name": "slot",
            "stream_snapshot": To("snapshot", _snapshot),
            "checkpoint_limit": TUNING,
            "snapshot_batch_size": TUNING,
            "include_transaction_markers": Same(False, "events carry their transaction in `tx`"),
            "temporary_slot": Same(False, "the slot is permanent"),
            "pg_standby_timeout": TUNING,
            "pg_wal_monitor_interval": TUNING,
            "max_parallel_snapshot_tables": TUNING,
            "auto_replay_nacks": REPLAY,
        },
        {"envelope": "native"},
        raw=False,
    ),
    "mysql_cdc": End(
        "mysql_cdc",
        {
            "dsn": "url",
            "tables": To("tables", comma_list),
            "stream_snapshot": To("snapshot", _snapshot),
            "checkpoint_cache": Note("a flow keeps its own position"),
            "checkpoint_key": Note("a flow keeps its own position"),
            "checkpoint_limit": TUNING,
            "snapshot_max_batch_size": TUNING,
            "auto_replay_nacks": REPLAY,
        },
        {"envelope": "native"},
        raw=False,
    ),
}
INPUTS["kafka_franz"] = INPUTS["redpanda"] = INPUTS["ockam_kafka"] = INPUTS["kafka"]

OUTPUTS: dict[str, End] = {
    "kafka": End(
        "kafka",
        {
            **KAFKA,
            "compression": To("options", lambda node: {"compression.type": node.text()}),
            "max_msg_bytes": To("max_event_bytes", number),
            "max_message_bytes": To("max_event_bytes", lambda node: int(str(node.use()).rstrip("B"))),
            "max_in_flight": TUNING,
            "ack_replicas": Note("a batch is always acknowledged by all replicas"),
            "idempotent_write": TUNING,
            "partitioner": Same("fnv1a_hash", "keys choose the partition by Kafka's own hash"),
            "metadata": Note("headers travel with an event"),
            "retry_as_batch": TUNING,
            "max_retries": To("retries", number),
            "backoff": TUNING,
            "inject_tracing_map": TUNING,
        },
    ),
    "amqp_0_9": End(
        "amqp",
        {
            "urls": To("url", lambda node: comma_list(node)[0]),
            "exchange": "exchange",
            "key": "routing_key",
            "persistent": To("persistent", boolean),
            "max_in_flight": TUNING,
            "timeout": TUNING,
        },
    ),
    "nats_jetstream": End(
        "nats",
        {
            "urls": To("servers", comma_list),
            "subject": "subject",
            "headers": To("headers", text_map),
            "max_in_flight": TUNING,
        },
    ),
    "redis_streams": End(
        "redis",
        {
            "url": "url",
            "stream": "key",
            "body_key": Same("value", "the value of an entry is in the field 'value'", code="changed"),
            "max_length": To("max_length", number),
            "max_in_flight": TUNING,
            "metadata": Note("headers travel with an event"),
        },
    ),
    "mqtt": End(
        "mqtt",
        {
            "urls": To("url", lambda node: comma_list(node)[0]),
            "topic": "topic",
            "qos": To("qos", number),
            "retained": To("retain", boolean),
            "client_id": "client_id",
            "user": "security.login.username",
            "password": "security.login.password",
            "max_in_flight": TUNING,
            "write_timeout": TUNING,
            "connect_timeout": TUNING,
            "keepalive": TUNING,
        },
    ),
    "stdout": End("stdout", {"codec": Same("lines", "each event is a line")}, {"format": "text"}),
    "drop": End("drop", {}),
    "http_client": End(
        "http",
        {
            "url": "url",
            "verb": "method",
            "headers": To("headers", text_map),
            "timeout": To("timeout_ms", milliseconds),
            "retries": To("retries", number),
            "retry_period": To("backoff_ms", milliseconds),
            "max_retry_backoff": TUNING,
            "backoff_on": TUNING,
            "successful_on": TUNING,
            "max_in_flight": TUNING,
            "batch_as_multipart": Same(False, "each event is a request of its own"),
            "propagate_response": TUNING,
        },
    ),
    "sql_insert": End(
        "sql",
        {
            "dsn": "url",
            "table": "table",
            "columns": To("columns", comma_list),
            "max_in_flight": TUNING,
            "conn_max_idle": TUNING,
            "conn_max_open": TUNING,
            "conn_max_idle_time": TUNING,
            "conn_max_life_time": TUNING,
        },
        shape="rows",
    ),
}
OUTPUTS["kafka_franz"] = OUTPUTS["redpanda"] = OUTPUTS["kafka"]

MECHANISM = To("security.sasl.mechanism", mechanism)
