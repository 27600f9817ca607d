"""The `kafka` sink: events as records of topics, through Spark's own connector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from penstock.connectors.base import Delivered, DeliveryId, Events, Guarantee, Sink, SinkWriter
from penstock.connectors.kafka.check import probe_kafka
from penstock.connectors.kafka.client import JARS, KafkaEnd
from penstock.connectors.kafka.problems import explained
from penstock.connectors.messages.rejected import rejected_in
from penstock.connectors.messages.shape import REFUSAL, TARGET, Limits, message_of, misfits
from penstock.connectors.messages.template import columns_of, fixed_text, text_of
from penstock.connectors.probe import Probe
from penstock.errors import Problem
from penstock.frames.site import Site
from penstock.spark.driver import error_text, java_errors
from penstock.spark.jars import use_jars
from penstock.specs.templates import Template

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

CLIENT = {
    # A batch has its own deadline and retries, so the client must not wait for minutes on its own.
    "max.block.ms": "15000",
    "request.timeout.ms": "10000",
    "delivery.timeout.ms": "30000",
}

SAFE = {"acks": "all", "enable.idempotence": "true"}
"""A record is acknowledged by all in-sync replicas, and a record that the client retries is stored once."""

OVERHEAD = 4096
"""Maximum bytes of a request in addition to the largest event."""

MOST_OVERHEAD = 100
"""Maximum bytes that Kafka adds to a record, apart from headers."""

VALID = r"^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$"
"""The pattern of valid topic names."""

HEADER_TYPE = "ARRAY<STRUCT<key: STRING, value: BINARY>>"

FORMAT = "kafka"
OLD_SOURCES = "spark.sql.sources.useV1SourceList"
"""Kafka is in this list by default; the V1 writer would report no observed metrics."""


class KafkaSink(KafkaEnd, Sink):
    """Writes each event as a record of a Kafka topic.

    Delivery is at-least-once: a batch that is retried after a crash or a failed attempt is written again.
    Within an attempt the producer is idempotent. The order of events with the same key is preserved, unless
    `ordered` is false.

    The value of a record is the column `value` if it is text or bytes; otherwise it is the whole event as a
    JSON object, in the same format as in files of the `file` sink. The columns `_key` and `_headers`, or
    `key` and `headers` next to a `value`, become the key and the headers; without them the event keeps the
    key and headers it arrived with. An event that is larger than `max_event_bytes`, or whose topic name is
    not valid, goes to the dead letters.
    """

    type: Literal["kafka"] = "kafka"
    topic: Template = Field(
        min_length=1, description="Name of the topic; `{column}` is replaced by the value of that column."
    )
    max_event_bytes: int = Field(
        default=1024 * 1024 - OVERHEAD,
        ge=1,
        le=1024**3,
        description="Larger events go to the dead letters. Topics also have a limit (`max.message.bytes`).",
    )
    ordered: bool = Field(
        default=True,
        description="Send the events of a batch in order, with one task. `false`: with all tasks in "
        "parallel; the order per key is then kept only if all events of a key are in one task, as with "
        "events from Kafka.",
    )

    guarantee: ClassVar[Guarantee] = "at-least-once"
    meta: ClassVar = True
    jars: ClassVar = JARS
    tested: ClassVar = "Apache Kafka 4.3.1"
    example: ClassVar = """\
type: kafka
brokers: [kafka-1.example:9092]
topic: orders.{country}
options: {compression.type: zstd}
"""

    @field_validator("topic")
    @classmethod
    def _is_template(cls, value: str) -> str:
        columns_of(value)
        return value

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        limits = Limits(self.max_event_bytes, valid=VALID, overhead=MOST_OVERHEAD)
        # Spark sends the messages itself, to the topics in the frame.
        return message_of(df, self.topic, limits, lambda topic: text_of(topic, literal=str))

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        yield from misfits(schema, self.topic, "topic")

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        topic = fixed_text(self.topic)
        return probe_kafka(spark, self, [] if topic is None else [(topic, "topic")])

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self)


class _Writer(SinkWriter):
    """Writes the records of a batch in the tasks of one Spark job."""

    def __init__(self, sink: KafkaSink) -> None:
        self.sink = sink
        size = {"max.request.size": str(sink.max_event_bytes + OVERHEAD)}
        self.options = sink.spark_options({**CLIENT, **size}) | {f"kafka.{n}": v for n, v in SAFE.items()}

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        df = events.frame()
        use_jars(df.sparkSession, JARS)
        _leave_old_sources(df.sparkSession)
        refused, seen = f.col(REFUSAL).isNotNull(), Observation()
        counted = df.observe(
            seen, f.count_if(~refused).alias("written"), f.count_if(refused).alias("refused")
        )
        headers = _as_array(f.col("headers")).alias("headers")
        good = counted.filter(~refused).select(f.col(TARGET).alias("topic"), "key", "value", headers)
        writer = (good.coalesce(1) if self.sink.ordered else good).write.format(FORMAT)
        self.permitted()
        try:
            writer.options(**self.options).mode("append").save()
        except java_errors() as error:
            known = explained(error_text(error), self.sink.addresses, [self.sink.topic], "topic")
            raise known or error from None
        found = seen.get
        return Delivered(int(found["written"]), rejected_in(df) if found["refused"] else ())


def _as_array(headers: Column) -> Column:
    from pyspark.sql import functions as f

    entries = f.map_entries(headers)
    made = f.transform(
        entries, lambda e: f.struct(e["key"].alias("key"), e["value"].cast("binary").alias("value"))
    )
    return made.cast(HEADER_TYPE)


def _leave_old_sources(spark: SparkSession) -> None:
    names = (spark.conf.get(OLD_SOURCES) or "").split(",")
    if FORMAT in names:
        spark.conf.set(OLD_SOURCES, ",".join(name for name in names if name != FORMAT))
