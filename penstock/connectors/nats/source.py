"""The `nats` source: the messages of a JetStream stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import SourceGuarantee
from penstock.connectors.messages.source import MessageSource
from penstock.connectors.nats.check import probe_nats
from penstock.connectors.nats.client import NatsEnd
from penstock.connectors.nats.receiver import NatsReceiver
from penstock.connectors.probe import Probe
from penstock.connectors.received import Receiver
from penstock.frames.site import Site
from penstock.specs.positions import PositionText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NatsSource(NatsEnd, MessageSource):
    """Reads the messages of a NATS JetStream stream.

    Each message is stored exactly once: the sequence number of the last message is stored with the events,
    and after a crash the source resumes right after it. A durable pull consumer, which the source creates and
    names after the pipeline, acknowledges messages once they are stored, so that streams with the retention
    policies `interest` and `workqueue` can remove them.

    With `format: json` the columns are those of `schema`, decoded by the same rules as all other events: a
    message that doesn't match the schema goes to the dead letters with the column and the value. `text` and
    `bytes` yield `value`, `key` and `headers`. Headers of a message stay with the event, except for headers
    that begin with `Nats-`; the header `Penstock-Key` becomes the key of the event.
    """

    type: Literal["nats"] = "nats"
    jetstream: str = Field(min_length=1, pattern=r"^[^\s.*>/\\]+$", description="Name of the stream.")
    subject: str | None = Field(
        default=None,
        min_length=1,
        description="Read only messages with this subject. The wildcards `*` and `>` are supported.",
    )
    position: PositionText = Field(
        default="earliest",
        description="Start position: earliest, latest, offset:N (a sequence number) or time:ISO 8601.",
    )
    gap: Literal["skip", "fail"] = Field(
        default="fail",
        description="Handling of messages that the stream removed while the pipeline was not connected: "
        "fail the pipeline, or continue with the oldest one available. With a `subject` such gaps can't be "
        "detected.",
    )
    subject_header: str | None = Field(
        default=None, min_length=1, description="Name of a header for the subject of each message."
    )
    prefetch: int = Field(
        default=1000, ge=1, le=10_000, description="Number of messages fetched ahead and stored in one write."
    )

    guarantee: ClassVar[SourceGuarantee] = "exactly-once"
    tested: ClassVar = "NATS Server 2.9.10"
    example: ClassVar = """\
type: nats
servers: [nats-1.example:4222]
jetstream: ORDERS
subject: orders.>
schema: id BIGINT, customer STRING, amount DOUBLE
"""

    def receiver(self, site: Site) -> Receiver:
        return NatsReceiver(self, site.flow)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_nats(self, stream=self.jetstream)
