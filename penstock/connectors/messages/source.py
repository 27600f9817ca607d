"""The base of sources that receive messages, such as sources for queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.messages.values import RAW, ValueFormat, decoded_value, with_columns
from penstock.connectors.received import ReceivedSource
from penstock.frames.hidden import EVENT
from penstock.frames.known import event_from
from penstock.frames.site import Site
from penstock.frames.streams.read import BESIDE_COLUMNS, METADATA_COLUMNS, read_stream, reread_stream
from penstock.specs.conditions import only_with
from penstock.specs.policies import Batch
from penstock.specs.stream import TIMESTAMPS, Timestamps
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.connectors.file.records import Rule

BESIDE = ("_offset", "_time", "_key", "_headers")


class MessageSource(ReceivedSource):
    """A source of messages with a value, a key and headers, which are stored unchanged and decoded later.

    With `format: json` the columns are those of `schema`, decoded by the same rules as all other events:
    nothing is rounded, truncated or guessed, and a message that doesn't match the schema goes to the dead
    letters with the column and the value. `text` and `bytes` yield `value`, `key` and `headers`.
    """

    format: ValueFormat = Field(default="json", description="Format of the value of a message.")
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark DDL.",
        json_schema_extra=only_with(format=["json"]),
    )
    malformed: Literal["dead_letter", "fail", "nulls"] = Field(
        default="dead_letter",
        json_schema_extra=only_with(format=["json"]),
        description="Handling of a message that doesn't match the schema: keep it as a dead letter, "
        "fail the pipeline, or read it as nulls.",
    )
    timestamps: Timestamps = Field(
        default="iso", description=TIMESTAMPS, json_schema_extra=only_with(format=["json"])
    )
    metadata: bool = Field(
        default=False,
        description="Add `_offset` and `_time` of the event in the input stream, and for `json` `_key` and "
        "`_headers`.",
    )

    @model_validator(mode="after")
    def _value_fits(self) -> Self:
        if self.format == "json" and self.schema_ is None:
            raise ValueError("format 'json' needs a 'schema'; 'text' and 'bytes' don't")
        given = self.model_fields_set & {"schema_", "schema", "malformed", "timestamps"}
        if self.format != "json" and given:
            names = ", ".join(f"'{name.rstrip('_')}'" for name in sorted(given))
            raise ValueError(f"{names} can't be used with format '{self.format}'")
        return self

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.format == "json":
            self._rule()
        self._columns(spark, metadata=self.metadata)
        return self

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        return self._columns(spark, metadata=self.metadata)

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        place = self.reads(site)
        return self._events(read_stream(spark, batch, site, place, "earliest", "skip", metadata=True))

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return self._events(reread_stream(spark, self.reads(site), first, end, metadata=True))

    def reason(self, row: str) -> tuple[str, str] | None:
        """The code and the reason why a value doesn't match the schema."""
        return self._rule().reason(row)

    def _columns(self, spark: SparkSession, *, metadata: bool) -> StructType:
        raw = self.format != "json"
        beside = "key STRING, headers MAP<STRING, STRING>"
        parts = [f"value {RAW[self.format]}, {beside}" if raw else self.schema_ or ""]
        if metadata:
            parts += [METADATA_COLUMNS] if raw else [METADATA_COLUMNS, BESIDE_COLUMNS]
        return parse_schema(spark, ", ".join(parts), field="schema")

    def _events(self, df: DataFrame) -> DataFrame:
        """The events of the raw input stream, with its metadata, as the columns of this source."""
        from pyspark.sql import functions as f

        beside = {"_offset": "_offset", "_time": "_time", "_key": "key", "_headers": "headers"}
        event = event_from(offset="_offset", time="_time", key="_key", headers="_headers").alias(EVENT)
        kept = [f.col(name).alias(alias) for alias, name in beside.items()]
        if self.format != "json":
            value = f.col("value").cast(RAW[self.format]).alias("value")
            read = df.select(value, *kept)
            shown: list[Column] = [
                f.col("value"),
                f.col("_key").alias("key"),
                f.col("_headers").alias("headers"),
            ]
            shown += [f.col("_offset"), f.col("_time")] if self.metadata else []
            return read.select(*shown, event)
        schema = self._columns(df.sparkSession, metadata=False)
        read = df.select(decoded_value(df, schema, self.timestamps).alias("value"), *kept)
        wanted = [f.col(name) for name in BESIDE] if self.metadata else []
        return with_columns(read, schema, self._rule(), self.malformed, event, wanted)

    def _rule(self) -> Rule:
        from penstock.connectors.file.records import Rule
        from penstock.frames.columns import declared

        return Rule(declared(self.schema_ or ""), self.timestamps)


def raw_events(
    values: Iterable[bytes | None],
    keys: Iterable[bytes | None] | None = None,
    headers: Iterable[Mapping[str, str] | None] | None = None,
) -> pa.RecordBatch:
    """Messages as events of a raw stream."""
    import pyarrow as pa

    from penstock.streams.decode.results import raw_batch, with_meta
    from penstock.streams.events import HEADERS, KEY, META

    batch = raw_batch(list(values))
    none: list[Any] = [None] * batch.num_rows
    made = none if headers is None else [list(each.items()) if each else None for each in headers]
    return with_meta(
        batch,
        pa.array(none if keys is None else list(keys), META.field(KEY).type),
        pa.array(made, META.field(HEADERS).type),
    )
