"""The receiver of the `amqp` source: a consumer of a queue."""

from __future__ import annotations

import base64
import json
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.connectors.amqp.client import AmqpConnection
from penstock.connectors.messages.connected import KEY_HEADER
from penstock.connectors.messages.source import raw_events
from penstock.connectors.received import Received, Receiver
from penstock.errors import PenstockError, Retryable

if TYPE_CHECKING:
    from penstock.connectors.amqp.source import AmqpSource

Event = tuple[bytes, bytes | None, dict[str, str]]


class AmqpReceiver(Receiver):
    """Receives messages from the server, with up to `prefetch` unacknowledged messages."""

    def __init__(self, source: AmqpSource) -> None:
        self.source = source
        self._amqp: AmqpConnection | None = None
        self._arrived: deque[tuple[int, Event]] = deque()
        """Messages with their delivery tags; guarded by `_amqp.changed`."""

    def open(self, position: str | None) -> None:
        amqp = self._amqp = AmqpConnection(self.source)
        queue = self.source.queue
        amqp.do(lambda channel: channel.add_on_cancel_callback(self._on_cancel))
        amqp.ask(lambda channel, answer: channel.queue_declare(queue, passive=True, callback=answer))
        prefetch = self.source.prefetch
        amqp.ask(lambda channel, answer: channel.basic_qos(prefetch_count=prefetch, callback=answer))
        amqp.ask(lambda channel, answer: channel.basic_consume(queue, self._on_message, callback=answer))

    def receive(self, wait_s: float) -> Received | None:
        amqp = self._amqp
        assert amqp is not None
        if not amqp.wait(lambda: self._arrived, wait_s):
            return None
        with amqp.changed:
            taken = list(self._arrived)
            self._arrived.clear()
        values, keys, headers = zip(*(event for _, event in taken), strict=True)
        return Received(raw_events(values, keys, headers), handle=taken[-1][0])

    def acknowledge(self, received: Received) -> None:
        assert self._amqp is not None
        self._amqp.do(lambda channel: channel.basic_ack(received.handle, multiple=True))

    def lag(self) -> int | None:
        amqp, queue = self._amqp, self.source.queue
        assert amqp is not None
        try:
            declared = amqp.ask(
                lambda channel, answer: channel.queue_declare(queue, passive=True, callback=answer)
            )
        except (PenstockError, Retryable):  # `receive` reports it
            return None
        return int(declared.method.message_count) + len(self._arrived)

    def stop(self) -> None:
        if self._amqp is not None:
            self._amqp.cancel()

    def close(self) -> None:
        if self._amqp is not None:
            self._amqp.close()

    # In the connection's thread

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        assert self._amqp is not None
        event = _event_of(method, properties, body, self.source.routing_key_header)
        with self._amqp.changed:
            self._arrived.append((method.delivery_tag, event))
            self._amqp.changed.notify_all()

    def _on_cancel(self, frame: Any) -> None:
        assert self._amqp is not None
        self._amqp.fail(
            Retryable(f"the server canceled the consumer: was the queue '{self.source.queue}' deleted?")
        )


def _event_of(method: Any, properties: Any, body: bytes, header: str | None) -> Event:
    headers = {name: _text(value) for name, value in (properties.headers or {}).items()}
    key = headers.pop(KEY_HEADER, None)
    if header is not None:
        headers[header] = method.routing_key
    return body, None if key is None else key.encode(), headers


def _text(value: Any) -> str:
    """The value of a header as text: JSON if it is not text or bytes, base64 if bytes are not UTF-8."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return json.dumps(value, default=str, ensure_ascii=False)
