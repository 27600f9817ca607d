"""A stream as a table: what it holds at one moment, for queries that have an end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.connectors.logs import LOGS
from penstock.connectors.python_source import register
from penstock.connectors.stream_reader import shaped
from penstock.connectors.stream_source import columns_of
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION = 100_000
"""Events that one of Spark's tasks reads: little enough that others soon get their turn."""

MOST_PARTITIONS = 1_000


def read_table(spark: SparkSession, place: StreamPlace) -> DataFrame:
    """The events that a stream has now, with `_offset` and `_time`; those that cannot be read are left out.

    The session has to know `TableDataSource`.
    """
    bounds = LOGS.log(place.directory).bounds()
    return _read(spark, place, bounds.first, bounds.next)


def read_range(spark: SparkSession, place: StreamPlace, first: int, next: int) -> DataFrame:
    """The events from an offset on, before another, with all that is known of them."""
    register(spark, TableDataSource)
    return _read(spark, place, first, next)


def _read(spark: SparkSession, place: StreamPlace, first: int, next: int) -> DataFrame:
    raw = place.spec.schema_ is None
    table = {"directory": str(place.directory), "first": first, "next": next, "raw": raw}
    reader = spark.read.format(TableDataSource.name()).option("table", json.dumps(table))
    return reader.schema(columns_of(spark, place, metadata=True)).load()


class TableDataSource(DataSource):
    """The events of a stream as Spark reads them in a batch."""

    @classmethod
    def name(cls) -> str:
        return "penstock_table"

    def reader(self, schema: StructType) -> TableReader:
        return TableReader(json.loads(self.options["table"]), schema)


class Range(InputPartition):
    """Offsets `first` to `next`, the latter exclusive."""

    def __init__(self, first: int, next: int) -> None:
        self.first, self.next = first, next


class TableReader(DataSourceReader):
    """Reads a stream in ranges of offsets."""

    def __init__(self, table: dict[str, Any], schema: StructType) -> None:
        self.directory, self.raw = Path(table["directory"]), bool(table["raw"])
        self.first, self.next = int(table["first"]), int(table["next"])
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        size = max(PARTITION, -(-(self.next - self.first) // MOST_PARTITIONS))
        found = [Range(n, min(n + size, self.next)) for n in range(self.first, self.next, size)]
        return found or [Range(self.first, self.first)]  # of none Spark would make one without a range

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        target = to_arrow_schema(self.schema, timezone="UTC")
        for chunk in LOGS.log(self.directory).read(partition.first, partition.next):
            if chunk.batch is not None:
                yield shaped(chunk, target, raw=self.raw)
