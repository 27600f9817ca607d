"""The `spark` connector: any data source that Spark knows by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Events, Sink, SinkWriter, Source, write_counted
from penstock.connectors.file.form import ORDER
from penstock.connectors.file.order import ordered
from penstock.errors import Invalid, Problem
from penstock.frames.hidden import EVENT
from penstock.frames.known import event_from
from penstock.frames.site import Site
from penstock.spark.driver import java_errors
from penstock.specs.policies import Batch
from penstock.specs.reach import ClientOptions, SparkFormat
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkSource(Source):
    """Reads any streaming format that Spark finds on its class path, with that format's own options.

    `rate` and `rate-micro-batch` ship with Spark; other formats come with a package in `spark.jars.packages`.
    Limits per micro-batch are options of the format, such as Kafka's `maxOffsetsPerTrigger`.
    """

    type: Literal["spark"] = "spark"
    format: SparkFormat = Field(min_length=1, description="Name of the data source.")
    options: ClientOptions = Field(default_factory=dict, description="Options of the data source.")
    schema_: str | None = Field(
        default=None, alias="schema", description="Columns as Spark DDL, if the data source needs them."
    )
    finite: bool = Field(
        default=False, description="Stop as `completed` when all existing data has been read."
    )

    position_fields: ClassVar = ("type", "format")
    batch_fields: ClassVar = frozenset({"max_ms"})
    example: ClassVar = "type: spark\nformat: rate\noptions: {rowsPerSecond: '10'}\n"

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        self.read(spark, Batch(), site)
        return self

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        reader = spark.readStream.format(self.format).options(**self.options)
        if self.schema_ is not None:
            reader = reader.schema(parse_schema(spark, self.schema_, field="schema"))
        try:
            return _in_order(reader.load())
        except java_errors() as error:
            raise Invalid(_problem(error, self.format)) from None

    def task_paths(self) -> Iterable[tuple[str, str]]:
        return path_of(self.options)

    def trigger(self, batch: Batch) -> dict[str, Any]:
        if self.finite:
            return {"availableNow": True}
        return {"processingTime": f"{batch.max_ms} milliseconds"}


class SparkSink(Sink):
    """Writes each batch with any format that Spark can append to.

    Delivery is at-least-once: a batch that is retried is appended again, unless the format itself
    deduplicates batches.
    """

    type: Literal["spark"] = "spark"
    format: SparkFormat = Field(min_length=1, description="Name of the data source.")
    options: ClientOptions = Field(
        default_factory=dict, description="Options of the data source, including `path`."
    )

    guarantee: ClassVar = "at-least-once"
    example: ClassVar = "type: spark\nformat: noop\n"

    def task_paths(self) -> Iterable[tuple[str, str]]:
        return path_of(self.options)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self.format, self.options)


class _Writer(SinkWriter):
    def __init__(self, name: str, options: dict[str, str]) -> None:
        self.format, self.options = name, options

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        def append(counted: DataFrame) -> None:
            counted.write.format(self.format).options(**self.options).mode("append").save()

        return write_counted(events.frame(), append)


def _in_order(df: DataFrame) -> DataFrame:
    """The frame; for a format that reads files, `$event` orders the events by the times of their files."""
    from pyspark.errors import AnalysisException

    try:
        read = ordered(df)
    except AnalysisException:  # a format that does not read files
        return df
    return read.select(*map(quote, df.columns), event_from(place=quote(ORDER)).alias(EVENT))


def path_of(options: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The path in the options of a format, with its field."""
    return [("options.path", options["path"])] if "path" in options else []


def _problem(error: Any, name: str) -> Problem:
    java = getattr(error, "java_exception", None)
    message = str(java.getMessage() if java is not None else error)
    if "[DATA_SOURCE_NOT_FOUND]" in message:
        return Problem(
            code="unknown_format",
            message=f"Spark has no data source '{name}'",
            path="format",
            hint="add its package to spark.jars.packages",
        )
    return Problem(code="source_error", message=message.splitlines()[0], path="options")
