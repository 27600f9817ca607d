"""The topic of a stream: its settings, creation and deletion."""

from __future__ import annotations

import time
from typing import Any

from penstock.specs.stream import Wal
from penstock.streams.kafka.clients import LARGEST, Clients, admin
from penstock.streams.kafka.cluster import ANSWER_S, unreachable

JOURNAL, FRAMES = 0, 1
"""The partitions of a topic: the journal defines the contents of the stream, the other has the frames."""

MADE_S = 30.0
"""Timeout for creating a topic in seconds: brokers that are deleting topics are slow."""

SMALLEST_SEGMENT = 1024 * 1024
"""The smallest segment size that a broker accepts, in bytes."""


def settings_of(wal: Wal) -> dict[str, str]:
    """The settings of a topic. Penstock evicts events itself, so that evicted events are counted."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "compression.type": "producer",  # frames are compressed
        "max.message.bytes": str(LARGEST),
        "segment.bytes": str(max(wal.segment_bytes, SMALLEST_SEGMENT)),
        "segment.ms": str(wal.segment_ms),
        "flush.messages": "1" if wal.sync else str(2**63 - 1),
        "message.timestamp.type": "LogAppendTime",
    }


def ensure_topic(clients: Clients, topic: str, wal: Wal) -> None:
    """Create the topic if it does not exist."""
    from confluent_kafka import KafkaError, KafkaException

    new = admin().NewTopic(topic, 2, clients.cluster.replication, config=settings_of(wal))
    try:
        asked = clients.admin.create_topics([new], operation_timeout=MADE_S, request_timeout=MADE_S)
        asked[topic].result(MADE_S + 1)
        _await_leaders(clients, topic)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise unreachable(clients.cluster, error.args[0].str()) from None
    except TimeoutError:
        raise unreachable(clients.cluster, "the topic was not created in time") from None


def _await_leaders(clients: Clients, topic: str) -> None:
    """Wait until the partitions of a new topic have leaders: earlier requests would take seconds."""
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until:
        found = clients.admin.list_topics(topic, ANSWER_S).topics[topic].partitions
        if len(found) == 2 and all(partition.leader >= 0 for partition in found.values()):
            return
        time.sleep(0.02)


def configure_topic(clients: Clients, topic: str, wal: Wal) -> None:
    """Apply the settings of the stream to the topic."""
    api = admin()
    entries = [
        api.ConfigEntry(name, value, incremental_operation=api.AlterConfigOpType.SET)
        for name, value in settings_of(wal).items()
    ]
    resource = api.ConfigResource(api.ResourceType.TOPIC, topic, incremental_configs=entries)
    _wait(clients, clients.admin.incremental_alter_configs([resource]))


def delete_records(clients: Clients, topic: str, before: dict[int, int]) -> None:
    """Delete the records before an offset, by partition."""
    from confluent_kafka import TopicPartition

    _wait(clients, clients.admin.delete_records([TopicPartition(topic, *each) for each in before.items()]))


def delete_topic(clients: Clients, topic: str) -> None:
    """Delete the topic if it exists."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        clients.admin.delete_topics([topic], request_timeout=MADE_S)[topic].result(MADE_S + 1)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise unreachable(clients.cluster, error.args[0].str()) from None
    except TimeoutError:
        raise unreachable(clients.cluster, "no response") from None


def _wait(clients: Clients, futures: dict[Any, Any]) -> None:
    from confluent_kafka import KafkaException

    try:
        for future in futures.values():
            future.result(ANSWER_S)
    except (KafkaException, TimeoutError) as error:
        raise unreachable(clients.cluster, error) from None
