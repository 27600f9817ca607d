"""The `mqtt` sink: events as messages to topics of an MQTT broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator

from penstock.connectors.base import DeliveryId, Guarantee, SinkWriter
from penstock.connectors.messages.connected import KEY_HEADER, ConnectedWriter, Connection, Refused, key_text
from penstock.connectors.messages.shape import Limits
from penstock.connectors.messages.sink import Message, MessageSink
from penstock.connectors.messages.template import columns_of
from penstock.connectors.mqtt.check import probe_mqtt
from penstock.connectors.mqtt.client import ANSWER_S, Lost, MqttConnection, MqttEnd
from penstock.connectors.probe import Probe
from penstock.errors import Invalid, Problem, Retryable
from penstock.frames.site import Site
from penstock.specs.templates import Template

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = 1000
"""Maximum number of unacknowledged messages at a time; a broker may allow fewer."""

WINDOW_OLD = 20
"""The same for version 3.1.1, where a broker can't announce how many it allows."""

LONGEST = 65535
"""Maximum bytes of a topic, and of the name and the value of a header."""

OVERHEAD = 64
"""Maximum bytes of a packet in addition to the topic, the value and the headers."""

VALID = r"^[^+#\x00]+\z"
"""Topics that can be published to: no wildcards, and no NUL."""

FORBIDDEN = 135
FINAL = {FORBIDDEN: "mqtt_forbidden", 144: "invalid_topic", 149: "too_large", 153: "invalid_payload"}
"""Reason codes of a PUBACK or PUBREC that a retry can't fix, and the codes of their dead letters."""


class MqttSink(MqttEnd, MessageSink):
    """Publishes each event as a message to a topic of an MQTT broker.

    Delivery is at-least-once with `qos` 1 or 2: the sink waits until the broker has acknowledged each
    message, and a batch that is retried after a crash or a failed attempt is published again. `qos: 2` only
    avoids duplicates within one attempt. With `qos: 0` the broker acknowledges nothing, and events may be
    lost with the connection. Messages are published in the order of the events. A broker drops messages to a
    topic without subscribers, unless they are retained.

    The value of a message is the column `value` if it is text or bytes; otherwise it is the whole event as a
    JSON object. In version 5 of the protocol, `_headers` become user properties, and `_key` becomes the user
    property `Penstock-Key`; without them the event keeps the headers and key it arrived with. In version
    3.1.1 headers and key are not sent. An event that is too large, or whose topic or headers are not valid,
    goes to the dead letters.
    """

    type: Literal["mqtt"] = "mqtt"
    topic: Template = Field(
        min_length=1, description="Topic of each message; `{column}` is replaced by the value of that column."
    )
    qos: Literal[0, 1, 2] = Field(default=1, description="Quality of service (QoS).")
    retain: bool = Field(
        default=False, description="Whether the broker keeps the last message of a topic for new subscribers."
    )
    max_event_bytes: int = Field(
        default=1024 * 1024,
        ge=1,
        le=256 * 1024 * 1024 - LONGEST,
        description="Larger events go to the dead letters. A broker may also have a limit.",
    )

    guarantee: ClassVar[Guarantee] = "at-least-once"
    tested: ClassVar = "Mosquitto 2.0.11"
    example: ClassVar = """\
type: mqtt
address: mqtt.example:8883
topic: plants/{plant}/alerts
qos: 1
security:
  tls: {ca_file: /etc/penstock/mqtt-ca.pem}
  login: {username: penstock, password: '${MQTT_PASSWORD}'}
"""

    @field_validator("topic")
    @classmethod
    def _is_template(cls, value: str) -> str:
        columns_of(value)
        return value

    @property
    def template(self) -> str:
        return self.topic

    @property
    def limits(self) -> Limits:
        return Limits(self.max_event_bytes, "topic", VALID)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_mqtt(self)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self)


class _Writer(ConnectedWriter["_Publisher"]):
    def __init__(self, sink: MqttSink) -> None:
        super().__init__()
        self.sink = sink
        self._forbidden: dict[str, Any] = {}
        """Topics that the broker rejects in this batch, with the reason."""

        self._singly = False
        """Whether each message must be acknowledged before the next one is sent."""

    def connect(self) -> _Publisher:
        return _Publisher(self.sink, self._forbidden, 1 if self._singly else WINDOW)

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> Iterable[Refused]:
        """Send all messages; send them again if the broker closes the connection for a forbidden topic.

        Mosquitto closes it after it has rejected a message, and would do so in each attempt of the batch. If
        other messages are in flight, the reason may be lost with the connection. Then messages are sent one
        by one.
        """
        self._forbidden.clear()
        try:
            while True:
                known = len(self._forbidden)
                try:
                    return super().send(messages, delivery)
                except Lost:
                    if len(self._forbidden) == known:
                        if self._singly:
                            raise
                        self._singly = True
        finally:
            if self._singly:
                self._singly = False
                self.close()


class _Publisher(Connection):
    """Publishes batches over one MQTT connection. Its state is guarded by `mqtt.changed`."""

    def __init__(self, sink: MqttSink, forbidden: dict[str, Any], window: int) -> None:
        self.sink, self._forbidden = sink, forbidden
        self.fixed = not columns_of(sink.topic)
        self._waiting: dict[int, tuple[int, str]] = {}
        """Unacknowledged messages: id of the packet → number in the batch, and topic."""
        self._early: dict[int, Any] = {}
        """Acknowledgments that arrived before the id of their packet was known."""
        self._bad: list[tuple[int, Any]] = []
        self._acked = 0
        self.mqtt = MqttConnection(sink, prepare=self._prepare)
        granted = self.mqtt.granted
        most = int(granted.get("ReceiveMaximum", LONGEST)) if sink.version == "5" else WINDOW_OLD
        self.window = min(window, most)
        self.max_packet = int(granted.get("MaximumPacketSize", 256 * 1024 * 1024))
        try:
            _check(sink, granted)
        except Invalid:
            self.mqtt.close()
            raise

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> list[Refused]:
        refused: list[Refused] = []
        self._bad.clear()
        for number, message in enumerate(messages):
            if message.target in self._forbidden:
                self._bad.append((number, self._forbidden[message.target]))
                continue
            try:
                properties = self._properties(message)
            except ValueError as error:
                refused.append((number, "invalid_header", str(error)))
                continue
            if (problem := self._misfit(message)) is not None:
                refused.append((number, *problem))
                continue
            self._acknowledged(self.window)
            self._publish(number, message, properties)
        self._acknowledged(1)
        return refused + [self._judged(number, reason, messages) for number, reason in self._bad]

    def cancel(self) -> None:
        self.mqtt.cancel()

    def close(self) -> None:
        self.mqtt.close()

    def _publish(self, number: int, message: Message, properties: Any) -> None:
        sink = self.sink
        info = self.mqtt.client.publish(
            message.target, message.value or b"", sink.qos, sink.retain, properties=properties
        )
        if info.rc != 0:
            raise Lost("the connection to the broker was lost")
        with self.mqtt.changed:
            self._waiting[info.mid] = number, message.target
            if info.mid in self._early:
                self._answered(info.mid, self._early.pop(info.mid))

    def _acknowledged(self, most: int) -> None:
        """Wait until fewer than `most` messages are unacknowledged."""
        while True:
            with self.mqtt.changed:
                if len(self._waiting) < most:
                    return
                seen = self._acked
            if not self.mqtt.wait(lambda seen=seen: self._acked != seen, ANSWER_S):  # type: ignore[misc]
                raise Retryable(f"the broker did not acknowledge a message within {ANSWER_S:.0f} seconds")

    def _misfit(self, message: Message) -> tuple[str, str] | None:
        topic = len(message.target.encode())
        if topic > LONGEST:
            return "invalid_topic", f"the topic has {topic} bytes; the limit is {LONGEST}"
        headers = sum(len(n.encode()) + len((v or "").encode()) + 5 for n, v in message.headers.items())
        size = topic + len(message.value or b"") + len(message.key or b"") + headers + OVERHEAD
        if size > self.max_packet:
            return "too_large", f"the message has up to {size} bytes, and the broker takes {self.max_packet}"
        return None

    def _properties(self, message: Message) -> Any:
        if self.sink.version != "5":
            return None
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        headers = [(name, value or "") for name, value in message.headers.items()]
        if (key := key_text(message)) is not None:
            headers = [(name, value) for name, value in headers if name != KEY_HEADER] + [(KEY_HEADER, key)]
        for pair in headers:
            if any("\0" in text or len(text.encode()) > LONGEST for text in pair):
                raise ValueError(f"the header '{pair[0][:50]}' is too long or contains a NUL")
        made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if headers:
            made.UserProperty = headers
        return made

    def _judged(self, number: int, reason: Any, messages: Sequence[Message]) -> Refused:
        """A message that is permanently rejected; raises if it may be accepted later."""
        text = f"the broker rejects the message to '{messages[number].target}': {str(reason).lower()}"
        code = FINAL.get(reason.value)
        if code is None:
            raise Retryable(text)
        if code == "mqtt_forbidden" and self.fixed:
            hint = "allow the user to publish to this topic"
            raise Invalid(Problem(code=code, message=text, path="topic", hint=hint))
        return number, code, text

    # In the thread of the client library

    def _prepare(self, client: Any, mqtt: MqttConnection) -> None:
        def published(_: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
            with mqtt.changed:
                self._answered(mid, reason)

        client.max_inflight_messages_set(WINDOW)
        client.on_publish = published

    def _answered(self, mid: int, reason: Any) -> None:
        if mid not in self._waiting:
            self._early[mid] = reason
            return
        number, topic = self._waiting.pop(mid)
        if reason.is_failure:
            self._bad.append((number, reason))
        if reason.value == FORBIDDEN:
            self._forbidden[topic] = reason
        self._acked += 1
        self.mqtt.changed.notify_all()


def _check(sink: MqttSink, granted: dict[str, Any]) -> None:
    """Raises `Invalid` if the broker doesn't support the settings of the sink."""
    most = int(granted.get("MaximumQoS", 2))
    if sink.qos > most:
        message, hint = f"the broker supports at most QoS {most}", f"set qos: {most}"
        raise Invalid(Problem(code="mqtt_qos", message=message, path="qos", hint=hint))
    if sink.retain and not granted.get("RetainAvailable", 1):
        message, hint = "the broker doesn't support retained messages", "set retain: false"
        raise Invalid(Problem(code="mqtt_retain", message=message, path="retain", hint=hint))
