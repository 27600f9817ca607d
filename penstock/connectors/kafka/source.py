"""The `kafka` source: the records of topics, through Spark's own connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.base import Source, SourceGuarantee
from penstock.connectors.kafka.check import probe_kafka
from penstock.connectors.kafka.client import JARS, KafkaEnd
from penstock.connectors.kafka.position import KafkaPosition, options_of
from penstock.connectors.kafka.problems import explained
from penstock.connectors.kafka.records import columns_of, json_events, raw_events
from penstock.connectors.messages.values import ValueFormat
from penstock.connectors.probe import Probe
from penstock.errors import Invalid, PenstockError, Problem
from penstock.frames.python_source import inflight
from penstock.frames.site import Site
from penstock.spark.driver import error_text, java_errors
from penstock.spark.jars import use_jars
from penstock.specs.conditions import only_with
from penstock.specs.policies import Batch
from penstock.specs.stream import TIMESTAMPS, Timestamps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.connectors.file.records import Rule

CLIENT = {
    # With Kafka's own defaults, a flow would wait for minutes before it reports that no broker responds.
    "request.timeout.ms": "15000",
    "default.api.timeout.ms": "20000",
}


class KafkaSource(KafkaEnd, Source):
    """Reads the records of Kafka topics.

    Progress is stored in the pipeline's checkpoint and not in a consumer group, so that a restart resumes
    exactly where the last committed batch ended. Partitions that are added later are read from their
    beginning.

    With `format: json` the columns are those of `schema`, decoded by the same rules as all other events:
    nothing is rounded, truncated or guessed, and a record that does not fit goes to the dead letters with the
    column and the value. A record without a value (a tombstone) is an event of nulls. `text` and `bytes`
    result in `value`, `key` and `headers`. For Avro and Protobuf, with or without a schema registry, read
    `bytes` and add a `decode` step.

    The key, the headers and the time of a record stay with the event and are passed to sinks that support
    them. With `metadata` they are also columns, with the topic, the partition and the offset.
    """

    type: Literal["kafka"] = "kafka"
    topics: list[str] | None = Field(default=None, min_length=1, description="Names of topics.")
    pattern: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of `topics`: a Java regular expression. Topics that match later are read from "
        "the beginning.",
    )
    position: KafkaPosition = Field(
        default="earliest",
        description="Start position: earliest, latest, time:ISO 8601, or an offset, earliest or latest for "
        "each partition, as in `{orders: {0: 42, 1: earliest}}`.",
    )
    format: ValueFormat = Field(default="json", description="Format of the value of a record.")
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark DDL.",
        json_schema_extra=only_with(format=["json"]),
    )
    malformed: Literal["dead_letter", "fail", "nulls"] = Field(
        default="dead_letter",
        json_schema_extra=only_with(format=["json"]),
        description="Handling of a record that doesn't match the schema: keep it as a dead letter, "
        "fail the pipeline, or read it as nulls.",
    )
    timestamps: Timestamps = Field(
        default="iso", description=TIMESTAMPS, json_schema_extra=only_with(format=["json"])
    )
    gap: Literal["skip", "fail"] = Field(
        default="fail",
        description="Handling of events that Kafka removed before they were read: fail the pipeline, or "
        "continue with the oldest one available. Kafka doesn't report how many.",
    )
    metadata: bool = Field(
        default=False,
        description="Add `_topic`, `_partition`, `_offset`, `_time`, and for `json` `_key` and `_headers`.",
    )
    finite: bool = Field(
        default=False, description="Stop as `completed` when everything present at the start has been read."
    )

    jars: ClassVar = JARS
    guarantee: ClassVar[SourceGuarantee] = "exactly-once"
    tested: ClassVar = "Apache Kafka 4.3.1"
    batch_fields: ClassVar = frozenset({"max_events", "max_ms", "max_inflight"})
    example: ClassVar = """\
type: kafka
brokers: [kafka-1.example:9092, kafka-2.example:9092]
topics: [orders]
position: earliest
schema: id BIGINT, customer STRING, amount DOUBLE
security:
  tls: {}
  sasl: {mechanism: SCRAM-SHA-512, username: penstock, password: '${KAFKA_PASSWORD}'}
"""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.topics is None) == (self.pattern is None):
            raise ValueError("set either 'topics' or 'pattern'")
        if self.format == "json" and self.schema_ is None:
            raise ValueError("format 'json' needs a 'schema'; 'text' and 'bytes' don't")
        given = self.model_fields_set & {"schema_", "schema", "malformed", "timestamps"}
        if self.format != "json" and given:
            names = ", ".join(f"'{name.rstrip('_')}'" for name in sorted(given))
            raise ValueError(f"{names} can't be used with format '{self.format}'")
        return self

    def position_of(self, site: Site) -> dict[str, Any]:
        topics = sorted(self.topics) if self.topics is not None else None
        return {
            "type": "kafka", "brokers": sorted(self.addresses), "topics": topics, "pattern": self.pattern,
        }  # fmt: skip

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.format == "json":
            self._rule()
        columns_of(spark, self.format, self.schema_, metadata=self.metadata)
        return self

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        return columns_of(spark, self.format, self.schema_, metadata=self.metadata)

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        use_jars(spark, JARS)
        reader = spark.readStream.format("kafka").options(**self._options(batch))
        try:
            df = reader.load()
        except java_errors() as error:
            raise self._refused(error) from None
        if self.format != "json":
            return raw_events(df, self.format, metadata=self.metadata)
        schema = columns_of(spark, self.format, self.schema_, metadata=False)
        return json_events(df, schema, self._rule(), self.timestamps, self.malformed, metadata=self.metadata)

    def reason(self, row: str) -> tuple[str, str] | None:
        """The reason why a value does not fit the schema."""
        return self._rule().reason(row)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        topics = [(topic, f"topics[{i}]") for i, topic in enumerate(self.topics or ())]
        return probe_kafka(spark, self, topics, self.pattern, sample=True)

    def explained(self, text: str) -> PenstockError | None:
        topics = self.topics or [self.pattern or ""]
        return explained(text, self.addresses, topics, "pattern" if self.pattern else "topics")

    def behind(self, progress: Mapping[str, Any]) -> int | None:
        """The number of unread records in the topics, from Spark's report of a micro-batch."""
        latest, end = progress.get("latestOffset"), progress.get("endOffset")
        if not isinstance(latest, dict) or not isinstance(end, dict):
            return None
        return sum(
            max(0, int(offset) - int(end.get(topic, {}).get(partition, 0)))
            for topic, partitions in latest.items()
            for partition, offset in partitions.items()
        )

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return {"availableNow": True} if self.finite else {"processingTime": f"{batch.max_ms} milliseconds"}

    def _options(self, batch: Batch) -> dict[str, str]:
        chosen = {"subscribe": ",".join(self.topics)} if self.topics else {"subscribePattern": self.pattern}
        return {
            **self.spark_options(CLIENT),
            **{name: value for name, value in chosen.items() if value is not None},
            **options_of(self.position),
            "includeHeaders": "true",
            "failOnDataLoss": str(self.gap == "fail").lower(),
            "maxOffsetsPerTrigger": str(batch.max_events * inflight(batch)),
        }

    def _rule(self) -> Rule:
        from penstock.connectors.file.records import Rule
        from penstock.frames.columns import declared

        return Rule(declared(self.schema_ or ""), self.timestamps)

    def _refused(self, error: Exception) -> PenstockError:
        text = error_text(error)
        first = text.splitlines()[0].partition(": ")[2] or text
        problem = Problem(code="source_error", message=first, path="options")
        return self.explained(text) or Invalid(problem)
