"""The connection test of Kafka: checks the brokers, the login and the topics."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.client import JARS, KafkaEnd
from penstock.connectors.kafka.problems import explained
from penstock.connectors.probe import Probe, unreachable
from penstock.errors import PenstockError, Problem, did_you_mean
from penstock.spark.driver import error_text, java_errors, jvm_of
from penstock.spark.jars import use_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENT = {
    "request.timeout.ms": "4000",
    "default.api.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "3000",
}
"""Client settings with short timeouts: the test must finish within seconds."""

SAMPLE, SAMPLE_MS, SHOWN = 5, 2000, 500
"""The number of sample records, the milliseconds to wait for them, and the characters shown of a value."""

_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def probe_kafka(
    spark: SparkSession,
    end: KafkaEnd,
    topics: Sequence[tuple[str, str]] = (),
    pattern: str | None = None,
    *,
    sample: bool = False,
) -> Probe:
    """The result of the test. `topics` are the required topics, each with its path in the connector."""
    if problems := unreachable(end.addresses, "brokers"):
        return Probe(problems=problems)
    try:
        use_jars(spark, JARS)
        with _client(spark, end, "admin.AdminClient", "create") as admin:
            found = sorted(str(name) for name in admin.listTopics().names().get())
        problems = list(_missing(topics, pattern, found))
        wanted = [name for name, _ in topics if name in found]
        if pattern is not None:
            wanted = [name for name in found if _matches(pattern, name)]
        records = _sample(spark, end, wanted[0]) if sample and wanted else []
    except java_errors() as error:
        known = explained(error_text(error), end.addresses, [name for name, _ in topics])
        return Probe(problems=known.problems if known else [_unknown(error)])
    except PenstockError as error:
        return Probe(problems=error.problems)
    return Probe(problems=problems, offers={"topics": found}, sample=records)


def _missing(
    topics: Sequence[tuple[str, str]], pattern: str | None, found: Sequence[str]
) -> Iterator[Problem]:
    for name, path in topics:
        if name not in found:
            hint = did_you_mean(name, found) if found else "create the topic"
            message = f"there is no topic '{name}'"
            yield Problem(code="unknown_topic", message=message, path=path, hint=hint)
    if pattern is not None and not any(_matches(pattern, name) for name in found):
        message, hint = "no topic currently matches the pattern", "topics that match later are read as well"
        yield Problem(code="unknown_topic", message=message, path="pattern", hint=hint)


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:  # Java's regular expressions support more
        return True


@contextlib.contextmanager
def _client(
    spark: SparkSession, end: KafkaEnd, name: str, method: str | None = None, **settings: str
) -> Iterator[Any]:
    """A Kafka client in the JVM, closed at the end."""
    jvm = jvm_of(spark)
    properties = jvm.java.util.Properties()
    for setting, value in {**end.client({}), **CLIENT, **settings}.items():
        properties.setProperty(setting, value)
    made: Any = jvm.org.apache.kafka.clients
    for part in name.split("."):
        made = getattr(made, part)
    client = made(properties) if method is None else getattr(made, method)(properties)
    try:
        yield client
    finally:
        client.close(jvm.java.time.Duration.ofSeconds(1))


def _sample(spark: SparkSession, end: KafkaEnd, topic: str) -> list[dict[str, Any]]:
    """The last records of the first non-empty partition of a topic."""
    jvm = jvm_of(spark)
    deserializers = {"key.deserializer": _DESERIALIZER, "value.deserializer": _DESERIALIZER}
    with _client(spark, end, "consumer.KafkaConsumer", **deserializers) as consumer:
        for info in consumer.partitionsFor(topic):
            partition = jvm.org.apache.kafka.common.TopicPartition(topic, info.partition())
            only = jvm.java.util.Collections.singletonList(partition)
            first = int(consumer.beginningOffsets(only).get(partition))
            last = int(consumer.endOffsets(only).get(partition))
            if first == last:
                continue
            consumer.assign(only)
            consumer.seek(partition, max(first, last - SAMPLE))
            records = consumer.poll(jvm.java.time.Duration.ofMillis(SAMPLE_MS))
            return [_shown(record) for record in records.records(partition)]
    return []


def _shown(record: Any) -> dict[str, Any]:
    return {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "key": _text(record.key()),
        "value": _text(record.value()),
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode(errors="replace")[:SHOWN]


def _unknown(error: Exception) -> Problem:
    lines = error_text(error).splitlines()
    return Problem(code="kafka_failed", message=lines[-1] if lines else str(error), path="brokers")
