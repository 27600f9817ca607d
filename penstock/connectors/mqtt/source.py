"""The `mqtt` source: messages from topics of an MQTT broker."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from penstock.connectors.base import SourceGuarantee
from penstock.connectors.messages.source import MessageSource
from penstock.connectors.mqtt.check import probe_mqtt
from penstock.connectors.mqtt.client import MqttEnd
from penstock.connectors.mqtt.receiver import MqttReceiver
from penstock.connectors.probe import Probe
from penstock.connectors.received import Receiver
from penstock.frames.site import Site

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class MqttSource(MqttEnd, MessageSource):
    """Subscribes to topics of an MQTT broker with quality of service (QoS) 1.

    From the first start of the pipeline, each message is stored at least once: the broker keeps a session in
    which messages are queued while the pipeline doesn't run, and a message is acknowledged once it is stored.
    The broker redelivers a message whose acknowledgment was lost; add a `dedupe` step where duplicates
    matter. Messages that are published with QoS 0 may be lost with the connection.

    With `format: json` the columns are those of `schema`, decoded by the same rules as all other events: a
    message that doesn't match the schema goes to the dead letters with the column and the value. `text` and
    `bytes` yield `value`, `key` and `headers`. User properties of a message (version 5) stay with the event
    as headers; the user property `Penstock-Key` becomes the key of the event.
    """

    type: Literal["mqtt"] = "mqtt"
    topics: list[str] = Field(min_length=1, description="Topics, or filters with the wildcards `+` and `#`.")
    client_id: str | None = Field(
        default=None,
        min_length=1,
        description="Client id of the session. Absent: derived from the name of the pipeline.",
    )
    session_s: int = Field(
        default=7 * 24 * 3600,
        ge=1,
        le=2**32 - 2,
        description="How long the broker keeps the session of a disconnected pipeline, in seconds.",
    )
    prefetch: int = Field(
        default=1000,
        ge=1,
        le=65535,
        description="Receive maximum: messages sent ahead of their acknowledgement (version 5).",
    )
    topic_header: str | None = Field(
        default=None, min_length=1, description="Name of a header for the topic of each message."
    )

    guarantee: ClassVar[SourceGuarantee] = "at-least-once"
    tested: ClassVar = "Mosquitto 2.0.11"
    example: ClassVar = """\
type: mqtt
address: mqtt.example:1883
topics: [plants/+/sensors/#]
schema: sensor STRING, value DOUBLE
topic_header: topic
"""

    @field_validator("topics")
    @classmethod
    def _are_filters(cls, value: list[str]) -> list[str]:
        for topic in value:
            levels = topic.split("/")
            misplaced = any(
                "#" in level and (level != "#" or i < len(levels) - 1) for i, level in enumerate(levels)
            )
            if not topic or "\0" in topic or misplaced or any("+" in each and each != "+" for each in levels):
                raise ValueError(
                    f"'{topic}' is not a valid filter: '+' must be a whole level, and '#' the last one"
                )
        return value

    def receiver(self, site: Site) -> Receiver:
        # Brokers of version 3.1.1 need not accept more than 23 characters.
        name = self.client_id or f"penstock-{hashlib.sha256(site.flow.encode()).hexdigest()[:14]}"
        return MqttReceiver(self, name)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_mqtt(self)
