"""The `amqp` source: messages of a queue of RabbitMQ."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.amqp.check import probe_amqp
from penstock.connectors.amqp.client import AmqpEnd
from penstock.connectors.amqp.receiver import AmqpReceiver
from penstock.connectors.base import SourceGuarantee
from penstock.connectors.messages.source import MessageSource
from penstock.connectors.probe import Probe
from penstock.connectors.received import Receiver
from penstock.frames.site import Site

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class AmqpSource(AmqpEnd, MessageSource):
    """Consumes messages from a queue of RabbitMQ or another AMQP 0.9.1 server.

    Each message is kept at least once: it is acknowledged once it is kept, and the server sends a message
    again whose acknowledgement was lost. Add a `dedupe` step where that matters.

    With `format: json` the columns are those of `schema`, decoded by the same rule as all other events: a
    message that does not fit goes to the dead letters with the column and the value. `text` and `bytes` give
    `value`, `key` and `headers`. Headers of a message stay with the event, values that are no text as JSON;
    the header `Penstock-Key` is its key.
    """

    type: Literal["amqp"] = "amqp"
    queue: str = Field(min_length=1, max_length=255, description="Name of the queue. It must exist.")
    prefetch: int = Field(
        default=1000,
        ge=1,
        le=65535,
        description="Prefetch: messages sent ahead of their acknowledgement.",
    )
    routing_key_header: str | None = Field(
        default=None, min_length=1, description="Name of a header for the routing key of each message."
    )

    guarantee: ClassVar[SourceGuarantee] = "at-least-once"
    tested: ClassVar = "RabbitMQ 3.10.8"
    example: ClassVar = """\
type: amqp
address: rabbitmq.example:5672
queue: orders
schema: id BIGINT, customer STRING, amount DOUBLE
security:
  login: {username: penstock, password: '${RABBITMQ_PASSWORD}'}
"""

    def receiver(self, site: Site) -> Receiver:
        return AmqpReceiver(self)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_amqp(self, queue=self.queue)
