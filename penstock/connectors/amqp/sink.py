"""The `amqp` sink: events as messages to an exchange of RabbitMQ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from penstock.connectors.amqp.check import probe_amqp
from penstock.connectors.amqp.client import ANSWER_S, AmqpConnection, AmqpEnd
from penstock.connectors.base import DeliveryId, Guarantee, SinkWriter
from penstock.connectors.messages.connected import KEY_HEADER, ConnectedWriter, Connection, Refused, key_text
from penstock.connectors.messages.ids import MessageIds
from penstock.connectors.messages.shape import Limits
from penstock.connectors.messages.sink import Message, MessageSink
from penstock.connectors.messages.template import columns_of, fixed_text
from penstock.connectors.probe import Probe
from penstock.errors import Retryable
from penstock.frames.site import Site
from penstock.specs.templates import Template

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = 1000
"""Messages that may wait for their confirmation at a time."""

PAUSE_S = 1.0
"""Seconds to wait for room in a queue that is full."""

SHORT = 255
"""Bytes of a routing key and of a header's name, at most."""

VALID = r"(?s)^.*\z"
"""Any routing key but NULL: an exchange that ignores it gets an empty one."""


class AmqpSink(AmqpEnd, MessageSink):
    """Publishes each event as a message to an exchange of RabbitMQ or another AMQP 0.9.1 server.

    Delivery is at-least-once: the server confirms each message, and a batch that is repeated after a crash or
    a failed attempt is published again. The property `message_id` is the same in every attempt, so that a
    consumer can recognise repeats. Messages are published in the order of the events, except for those that a
    full queue has refused (`x-overflow: reject-publish`): they are published again when there is room.

    The value of a message is the column `value`, if it is text or bytes; else it is the whole event as a JSON
    object. `_headers` become headers and `_key` the header `Penstock-Key`; without them the event keeps those
    it came with. An event that is too large, that no queue receives, or whose routing key or headers are not
    valid goes to the dead letters.
    """

    type: Literal["amqp"] = "amqp"
    exchange: str = Field(
        default="",
        max_length=127,
        description="Name of the exchange. Empty: the default exchange, whose routing keys are queue names.",
    )
    routing_key: Template = Field(
        default="",
        description="Routing key of each message; `{column}` is replaced by the value of that column.",
    )
    mandatory: bool = Field(
        default=True,
        description="Whether a message that reaches no queue becomes a dead letter; otherwise the server "
        "drops it.",
    )
    persistent: bool = Field(
        default=True, description="Whether messages in durable queues survive a restart of the server."
    )
    max_event_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1,
        le=512 * 1024 * 1024,
        description="Larger events go to the dead letters.",
    )

    guarantee: ClassVar[Guarantee] = "at-least-once"
    tested: ClassVar = "RabbitMQ 3.10.8"
    example: ClassVar = """\
type: amqp
address: rabbitmq.example:5672
exchange: orders
routing_key: orders.{country}
security:
  login: {username: penstock, password: '${RABBITMQ_PASSWORD}'}
"""

    @field_validator("routing_key")
    @classmethod
    def _is_template(cls, value: str) -> str:
        columns_of(value)
        return value

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if not self.exchange and not self.routing_key:
            raise ValueError("set 'exchange', or the queue as 'routing_key'")
        return self

    @property
    def template(self) -> str:
        return self.routing_key

    @property
    def limits(self) -> Limits:
        return Limits(self.max_event_bytes, "routing_key", VALID)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        # To the default exchange, a routing key is the name of a queue.
        named = not self.exchange and self.mandatory
        queue = fixed_text(self.routing_key) if named else None
        return probe_amqp(self, exchange=self.exchange, queue=queue)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self)


class _Writer(ConnectedWriter["_Publisher"]):
    def __init__(self, sink: AmqpSink) -> None:
        super().__init__()
        self.sink = sink

    def connect(self) -> _Publisher:
        return _Publisher(self.sink)


class _Publisher(Connection):
    """Publishes batches over one channel in confirm mode. Its state is guarded by `amqp.changed`."""

    def __init__(self, sink: AmqpSink) -> None:
        self.sink = sink
        self.amqp = AmqpConnection(sink)
        self._tag = 0
        """The number that the server knows the last message by."""
        self._waiting: dict[int, int] = {}
        """Messages without a confirmation: tag → number in the batch."""
        self._returned: set[str] = set()
        self._nacked: list[int] = []
        self._acked = 0
        self._pausing = False
        try:
            self.amqp.do(lambda channel: channel.add_on_return_callback(self._on_return))
            self.amqp.ask(lambda channel, answer: channel.confirm_delivery(self._on_confirm, answer))
            if sink.exchange:
                name = sink.exchange
                self.amqp.ask(
                    lambda channel, answer: channel.exchange_declare(name, passive=True, callback=answer)
                )
        except BaseException:
            self.amqp.close()
            raise

    @property
    def waiting(self) -> bool:  # type: ignore[override]
        return self.amqp.blocked or self._pausing

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> list[Refused]:
        ids, refused = MessageIds(delivery), []
        todo: list[tuple[int, str, Any]] = []
        for number, message in enumerate(messages):
            name = ids.of(message)
            if len(message.target.encode()) > SHORT:
                reason = f"the routing key has more than {SHORT} bytes: '{message.target[:50]}…'"
                refused.append((number, "invalid_routing_key", reason))
                continue
            try:
                todo.append((number, name, self._properties(message, name)))
            except ValueError as error:
                refused.append((number, "invalid_header", str(error)))
        names = {name: number for number, name, _ in todo}
        self._returned.clear()
        while todo:
            self._nacked.clear()
            for first in range(0, len(todo), WINDOW // 2):
                self._publish(todo[first : first + WINDOW // 2], messages)
            self._confirmed(1)
            again = set(self._nacked)
            todo = [each for each in todo if each[0] in again]
            if todo:
                self._pause()
        target = self.sink.exchange or "the default exchange"
        reason = f"{target} routes this routing key to no queue"
        returned = sorted(names[name] for name in self._returned if name in names)
        return refused + [(n, "unroutable", f"{reason}: '{messages[n].target}'") for n in returned]

    def cancel(self) -> None:
        self.amqp.cancel()

    def close(self) -> None:
        self.amqp.close()

    def _publish(self, part: list[tuple[int, str, Any]], messages: Sequence[Message]) -> None:
        self._confirmed(WINDOW // 2 + 1)
        sink = self.sink

        def publish(channel: Any) -> None:
            for number, _, properties in part:
                with self.amqp.changed:
                    self._tag += 1
                    self._waiting[self._tag] = number
                message = messages[number]
                channel.basic_publish(
                    sink.exchange, message.target, message.value or b"", properties, sink.mandatory
                )

        with self.amqp.changed:
            expected = self._tag + len(part)
        self.amqp.do(publish)
        self.amqp.wait(lambda: self._tag >= expected, ANSWER_S)

    def _confirmed(self, most: int) -> None:
        """Wait until fewer messages than `most` are not confirmed."""
        while True:
            with self.amqp.changed:
                if len(self._waiting) < most:
                    return
                seen = self._acked
            if not self.amqp.wait(lambda seen=seen: self._acked != seen, ANSWER_S):  # type: ignore[misc]
                raise Retryable(f"the server did not confirm a message within {ANSWER_S:.0f} seconds")

    def _pause(self) -> None:
        """Give a full queue time to get room; raises if the connection is lost meanwhile."""
        self._pausing = True
        try:
            self.amqp.wait(lambda: False, PAUSE_S)
        finally:
            self._pausing = False

    def _properties(self, message: Message, name: str) -> Any:
        import pika

        headers = {key: value or "" for key, value in message.headers.items()}
        if (key := key_text(message)) is not None:
            headers[KEY_HEADER] = key
        for each in headers:
            if len(each.encode()) > SHORT:
                raise ValueError(f"the name of a header has more than {SHORT} bytes: '{each[:50]}…'")
        mode = 2 if self.sink.persistent else 1
        return pika.BasicProperties(headers=headers or None, delivery_mode=mode, message_id=name)

    # In the connection's thread

    def _on_return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        with self.amqp.changed:
            self._returned.add(properties.message_id)

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        with self.amqp.changed:
            tags = [method.delivery_tag]
            if method.multiple:
                tags = [tag for tag in self._waiting if tag <= method.delivery_tag]
            for tag in tags:
                number = self._waiting.pop(tag)
                if method.NAME == "Basic.Nack":
                    self._nacked.append(number)
            self._acked += 1
            self.amqp.changed.notify_all()
