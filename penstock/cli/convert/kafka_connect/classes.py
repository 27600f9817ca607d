"""Connector classes of Kafka Connect: tables from their settings to our fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.convert.draft import Note, Same, Table, To, Unmapped
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import boolean, comma_list, number

TUNING = Note("tuning of the other system: Penstock has its own")
HISTORY = Note("Penstock needs no topic for the history of schemas")


@dataclass(frozen=True)
class Connector:
    """The Penstock source or sink for a class: its type, its fixed fields, and the table of settings."""

    role: str
    type: str
    table: Table
    fixed: dict[str, Any] = field(default_factory=dict)
    rows: bool = False
    """Whether a sink needs columns."""


def _snapshot(node: Node) -> str:
    modes = {
        "initial": "initial", "when_needed": "initial", "always": "initial", "initial_only": "only",
        "never": "never", "no_data": "never", "schema_only": "never",
    }  # fmt: skip
    if (found := modes.get(node.text())) is None:
        raise Unmapped(f"the snapshot mode '{node.value}' has no equivalent: 'initial' is used")
    return found


def _patterns(node: Node) -> list[str]:
    """Convert regular expressions for tables into names or patterns."""
    made = []
    for text in comma_list(node):
        plain = text.replace("\\\\.", ".").replace("\\.", ".").replace(".*", "*")
        if re.search(r"[\\^$|()\[\]{}+?]", plain):
            raise Unmapped(f"the regular expression '{text}' has no equivalent", "name the tables")
        made.append(plain)
    return made


def _jdbc(node: Node) -> str:
    text = node.text().removeprefix("jdbc:")
    if re.match(r"(postgresql|mysql|mariadb|sqlite):", text) is None:
        raise Unmapped("this database has no equivalent", "one of PostgreSQL, MySQL, MariaDB and SQLite")
    return re.sub(r"^sqlite:(?!//)", "sqlite:///", text)


DEBEZIUM: dict[str, Any] = {
    "database.hostname": "host",
    "database.port": To("port", number),
    "database.user": "user",
    "database.password": "password",
    "table.include.list": To("tables", _patterns),
    "table.whitelist": To("tables", _patterns),
    "snapshot.mode": To("snapshot", _snapshot),
    "heartbeat.interval.ms": TUNING,
    "max.batch.size": TUNING,
    "max.queue.size": TUNING,
    "poll.interval.ms": TUNING,
    "decimal.handling.mode": Same("string", "decimals are written as text", code="changed"),
    "time.precision.mode": Same("isostring", "times are written in ISO 8601", code="changed"),
    "tombstones.on.delete": Same(
        False, "a delete is one event, without a tombstone after it", code="changed"
    ),
    "provide.transaction.metadata": Note("events carry their transaction"),
    "include.schema.changes": Same(False, "schema changes are not events", code="changed"),
    "database.server.name": To("$prefix"),
    "topic.prefix": To("$prefix"),
    "schema.history.internal.kafka.topic": HISTORY,
    "database.history.kafka.topic": HISTORY,
    "schema.history.internal.kafka.bootstrap.servers": To("$brokers", comma_list),
    "database.history.kafka.bootstrap.servers": To("$brokers", comma_list),
}

JDBC: dict[str, Any] = {
    "connection.url": To("url", _jdbc),
    "connection.password": "password",
    "connection.attempts": TUNING,
    "connection.backoff.ms": TUNING,
    "dialect.name": TUNING,
}

CLASSES: dict[str, Connector] = {
    "io.debezium.connector.postgresql.PostgresConnector": Connector(
        "source",
        "postgres_cdc",
        {
            **DEBEZIUM,
            "database.dbname": "database",
            "slot.name": "slot",
            "publication.name": "publication",
            "plugin.name": Same("pgoutput", "changes are read with pgoutput"),
            "publication.autocreate.mode": Note("a publication is created if there is none"),
            "slot.drop.on.stop": Same(False, "Penstock never drops a slot", code="changed"),
            "database.sslmode": To("options", lambda node: {"sslmode": node.text()}),
        },
        {"envelope": "debezium"},
    ),
    "io.debezium.connector.mysql.MySqlConnector": Connector(
        "source",
        "mysql_cdc",
        {
            **DEBEZIUM,
            "database.server.id": To("server_id", number),
            "database.include.list": To("$databases", comma_list),
            "database.allowPublicKeyRetrieval": TUNING,
            "database.ssl.mode": To("$tls"),
        },
        {"envelope": "debezium"},
    ),
    "JdbcSourceConnector": Connector(
        "source",
        "sql",
        {
            **JDBC,
            "query": "query",
            "incrementing.column.name": To("$incrementing"),
            "timestamp.column.name": To("$timestamp"),
            "poll.interval.ms": To("poll_ms", number),
            "mode": To("$mode"),
            "topic.prefix": To("$prefix"),
            "batch.max.rows": TUNING,
            "table.types": TUNING,
            "table.whitelist": To("$tables", comma_list),
            "table.include.list": To("$tables", comma_list),
            "validate.non.null": TUNING,
            "numeric.mapping": TUNING,
        },
    ),
    "JdbcSinkConnector": Connector(
        "sink",
        "sql",
        {
            **JDBC,
            "table.name.format": To("$table"),
            "insert.mode": To("$mode"),
            "pk.mode": To("$pk_mode"),
            "primary.key.mode": To("$pk_mode"),
            "pk.fields": To("key", comma_list),
            "primary.key.fields": To("key", comma_list),
            "fields.whitelist": To("$fields", comma_list),
            "auto.create": To("$create", boolean),
            "auto.evolve": To("$evolve", boolean),
            "batch.size": To("$batch.max_events", number),
            "max.retries": To("retries", number),
            "retry.backoff.ms": To("backoff_ms", number),
        },
        rows=True,
    ),
    "FileStreamSource": Connector(
        "source", "file", {"file": "path", "topic": To("$topic"), "batch.size": TUNING}, {"format": "text"}
    ),
    "FileStreamSink": Connector("sink", "file", {"file": "path"}, {"format": "text"}),
    "HttpSinkConnector": Connector(
        "sink",
        "http",
        {
            "http.url": "url",
            "http.api.url": "url",
            "request.method": To("method", lambda node: node.text().upper()),
            "http.headers.authorization": To("headers", lambda node: {"Authorization": node.text()}),
            "http.headers.content.type": To("headers", lambda node: {"Content-Type": node.text()}),
            "http.authorization.type": Note("the authorization is in the headers"),
            "max.retries": To("retries", number),
            "retry.backoff.ms": To("backoff_ms", number),
            "http.timeout": To("timeout_ms", lambda node: number(node) * 1000),
            "batching.enabled": To("body", lambda node: "array" if boolean(node) else "event"),
            "batch.max.size": To("max_events", number),
            "request.body.format": Same("json", "the body is JSON"),
        },
    ),
    "S3SinkConnector": Connector(
        "sink",
        "file",
        {
            "s3.bucket.name": To("$bucket"),
            "aws.s3.bucket.name": To("$bucket"),
            "topics.dir": To("$directory"),
            "format.class": To("$format"),
            "flush.size": To("$batch.max_events", number),
            "rotate.interval.ms": To("$batch.max_ms", number),
            "rotate.schedule.interval.ms": To("$batch.max_ms", number),
            "s3.part.size": TUNING,
            "storage.class": TUNING,
            "schema.compatibility": TUNING,
            "s3.compression.type": To("options", lambda node: {"compression": node.text()}),
            "s3.region": "store.region",
        },
    ),
    "RedisSinkConnector": Connector(
        "sink",
        "redis",
        {
            "redis.uri": "url",
            "redis.key": "key",
            "redis.hosts": To("url", lambda node: "redis://" + comma_list(node)[0]),
            "redis.password": "security.login.password",
            "redis.database": To("database", number),
            "redis.command": Same("XADD", "events are added to a stream (XADD)", code="changed"),
            "redis.type": Same("STREAM", "events are added to a stream (XADD)", code="changed"),
        },
    ),
    "MqttSourceConnector": Connector(
        "source",
        "mqtt",
        {
            "mqtt.server.uri": To("url", lambda node: comma_list(node)[0]),
            "mqtt.topics": To("topics", comma_list),
            "mqtt.qos": Same(1, "messages are received with qos 1", code="changed"),
            "mqtt.username": "security.login.username",
            "mqtt.password": "security.login.password",
            "kafka.topic": To("$topic"),
        },
    ),
    "MqttSinkConnector": Connector(
        "sink",
        "mqtt",
        {
            "mqtt.server.uri": To("url", lambda node: comma_list(node)[0]),
            "mqtt.qos": To("qos", number),
            "mqtt.username": "security.login.username",
            "mqtt.password": "security.login.password",
            "mqtt.topic": "topic",
        },
    ),
    "RabbitMQSourceConnector": Connector(
        "source",
        "amqp",
        {
            "rabbitmq.queue": To("queue", lambda node: comma_list(node)[0]),
            "rabbitmq.host": To("$host"),
            "rabbitmq.port": To("$port", number),
            "rabbitmq.username": "security.login.username",
            "rabbitmq.password": "security.login.password",
            "rabbitmq.virtual.host": "virtual_host",
            "rabbitmq.prefetch.count": To("prefetch", number),
            "kafka.topic": To("$topic"),
        },
    ),
}
"""By class name, or by its last part. Fields that start with `$` are handled in code instead of the table."""

ALIASES = {
    "FileStreamSourceConnector": "FileStreamSource",
    "FileStreamSinkConnector": "FileStreamSink",
    "MariaDbConnector": "io.debezium.connector.mysql.MySqlConnector",
    "MySqlConnector": "io.debezium.connector.mysql.MySqlConnector",
    "PostgresConnector": "io.debezium.connector.postgresql.PostgresConnector",
    "AivenKafkaConnectS3SinkConnector": "S3SinkConnector",
}


def connector_of(name: str) -> Connector | None:
    """The connector for a class name."""
    short = name.rsplit(".", 1)[-1]
    return CLASSES.get(name) or CLASSES.get(ALIASES.get(short, short))
