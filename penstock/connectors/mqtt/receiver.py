"""The receiver of the `mqtt` source: a session with subscriptions."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.connectors.messages.connected import KEY_HEADER
from penstock.connectors.messages.source import raw_events
from penstock.connectors.mqtt.client import ANSWER_S, MqttConnection
from penstock.connectors.received import Received, Receiver
from penstock.errors import Invalid, Problem, Retryable

if TYPE_CHECKING:
    from penstock.connectors.mqtt.source import MqttSource

QOS = 1


class MqttReceiver(Receiver):
    """Receives messages from the broker, and acknowledges them once they are stored.

    Its position is the list of subscriptions: the session keeps old subscriptions until they are removed.
    """

    def __init__(self, source: MqttSource, client_id: str) -> None:
        self.source, self.client_id = source, client_id
        self._mqtt: MqttConnection | None = None
        self._arrived: deque[Any] = deque()
        self._answers: dict[int, Any] = {}
        """Responses to subscriptions; guarded by `_mqtt.changed`, as are messages."""

    def open(self, position: str | None) -> None:
        self._mqtt = MqttConnection(
            self.source,
            self.client_id,
            prepare=self._prepare,
            session_s=self.source.session_s,
            receive_maximum=self.source.prefetch,
        )
        before = [] if position is None else json.loads(position)
        gone = [topic for topic in before if topic not in self.source.topics]
        if gone:
            self._ask(self._mqtt.client.unsubscribe(gone)[1])
        self._subscribe()

    def receive(self, wait_s: float) -> Received | None:
        mqtt = self._mqtt
        assert mqtt is not None
        if not mqtt.wait(lambda: self._arrived, wait_s):
            return None
        with mqtt.changed:
            taken = list(self._arrived)
            self._arrived.clear()
        values, keys, headers = zip(
            *(_event_of(each, self.source.topic_header) for each in taken), strict=True
        )
        acks = [(each.mid, each.qos) for each in taken if each.qos > 0]
        return Received(raw_events(values, keys, headers), json.dumps(self.source.topics), handle=acks)

    def acknowledge(self, received: Received) -> None:
        assert self._mqtt is not None
        for mid, qos in received.handle:
            self._mqtt.client.ack(mid, qos)

    def stop(self) -> None:
        if self._mqtt is not None:
            self._mqtt.cancel()

    def close(self) -> None:
        if self._mqtt is not None:
            self._mqtt.close()

    def _subscribe(self) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        assert self._mqtt is not None
        # A subscription that the session already has must not deliver retained messages again.
        options = SubscribeOptions(qos=QOS, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        chosen = options if self.source.version == "5" else QOS
        error, mid = self._mqtt.client.subscribe([(topic, chosen) for topic in self.source.topics])
        if error != 0:
            raise Retryable("the connection to the broker was lost")
        for number, reason in enumerate(self._ask(mid)):
            topic, path = self.source.topics[number], f"topics[{number}]"
            if reason.is_failure:
                message = f"the broker rejects the subscription to '{topic}': {str(reason).lower()}"
                hint = "allow the user to read this topic, or correct it"
                raise Invalid(Problem(code="mqtt_forbidden", message=message, path=path, hint=hint))
            if reason.value < QOS:
                message = f"the broker grants only QoS {reason.value} for '{topic}', but 1 is required"
                raise Invalid(Problem(code="mqtt_qos", message=message, path=path, hint="use another broker"))

    def _ask(self, mid: int) -> Any:
        """Wait for the response to a packet."""
        assert self._mqtt is not None
        if not self._mqtt.wait(lambda: mid in self._answers, ANSWER_S):
            raise Retryable(f"the broker did not respond within {ANSWER_S:.0f} seconds")
        return self._answers.pop(mid)

    # In the thread of the client library

    def _prepare(self, client: Any, mqtt: MqttConnection) -> None:
        def add(_: Any, data: Any, message: Any) -> None:
            with mqtt.changed:
                self._arrived.append(message)
                mqtt.changed.notify_all()

        def answer(_: Any, data: Any, mid: int, reasons: Any, properties: Any) -> None:
            with mqtt.changed:
                self._answers[mid] = reasons
                mqtt.changed.notify_all()

        client.on_message = add
        client.on_subscribe = client.on_unsubscribe = answer


def _event_of(message: Any, header: str | None) -> tuple[bytes, bytes | None, dict[str, str]]:
    """The value, the key and the headers of a message."""
    headers = dict(getattr(message.properties, "UserProperty", None) or ())
    key = headers.pop(KEY_HEADER, None)
    if header is not None:
        headers[header] = message.topic
    return message.payload, None if key is None else key.encode(), headers
