"""The `file` sink: batches as files, each visible whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Sink, SinkWriter, Site, write_counted
from penstock.connectors.file_source import FORMAT_OPTIONS, Format
from penstock.connectors.paths import qualified
from penstock.connectors.storage import Storage, storage_for
from penstock.errors import Problem, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

BATCH = "penstock_batch"
"""Name of the partition directory that holds a batch."""

TOLERANCE = 1.25
"""How far a file may exceed `max_file_bytes` before the batch is written anew with smaller ones."""


class FileSink(Sink):
    """Writes each batch as a directory `penstock_batch=…` of files, renamed into place when it is complete.

    Delivery is exactly-once: a reader of the directory never sees part of a batch, and a batch that is
    repeated after a crash is recognised by its name and not written again. The directory name is a
    partition in the manner of Hive, so Spark, DuckDB, Trino and pyarrow read the whole tree as one table,
    and `penstock_batch` tells which batch an event came with. How large and how frequent batches are is
    the business of `batch:`. On object stores, where a directory cannot be renamed at once, write to a
    table format through the `spark` sink instead.
    """

    type: Literal["file"] = "file"
    path: str = Field(min_length=1, description="The directory; any URL that Spark can write to.")
    format: Format = Field(description="`json` is one JSON object per line.")
    partition_by: list[str] = Field(
        default_factory=list, description="Columns that become directories below each batch."
    )
    max_file_bytes: int | None = Field(
        default=None, ge=1, description="Roll to a new file at about this size; absent: one file per task."
    )
    options: dict[str, str] = Field(
        default_factory=dict, description="Further options of Spark's writer, such as `compression`."
    )

    guarantee: ClassVar = "exactly-once"
    example: ClassVar = """\
type: file
path: out/orders
format: parquet
partition_by: [country]
max_file_bytes: 134217728
"""

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        from pyspark.sql.types import ArrayType, MapType, StringType, StructType

        for i, name in enumerate(self.partition_by):
            if name not in schema.names:
                yield Problem(
                    code="unknown_column",
                    message=f"there is no column '{name}' to partition by",
                    path=f"partition_by[{i}]",
                    hint=did_you_mean(name, schema.names),
                )
        rest = [field for field in schema.fields if field.name not in self.partition_by]
        if not rest:
            yield Problem(
                code="no_columns", message="no column is left for the files themselves", path="partition_by"
            )
        if BATCH in schema.names:
            yield Problem(
                code="reserved_column",
                message=f"the column '{BATCH}' would hide the one that tells the batch",
                path="path",
                hint="drop or rename it in a processor",
            )
        if self.format == "text" and [type(field.dataType) for field in rest] != [StringType]:
            yield Problem(
                code="unsupported_type",
                message="text files hold one string column, not " + ", ".join(f.name for f in rest),
                path="format",
                hint="select one column in a processor, or write json",
            )
        if self.format == "csv":
            for field in rest:
                if isinstance(field.dataType, ArrayType | MapType | StructType):
                    yield Problem(
                        code="unsupported_type",
                        message=f"csv cannot hold '{field.name}', a {field.dataType.simpleString()}",
                        path="format",
                        hint="add a flatten or map step, or write json",
                    )

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self)


class _Writer(SinkWriter):
    """Writes to a staging directory and publishes it with one rename.

    The rename is the commit: a directory with the name of a batch exists if and only if the batch was
    delivered (invariants 3 and 4). The name has the lineage of the checkpoint in it, so that a pipeline
    that starts anew, and counts from zero again, is not taken for the old one.
    """

    def __init__(self, sink: FileSink) -> None:
        self.sink = sink
        self.output = qualified(sink.path)
        self.storage: Storage | None = None
        self.events_per_file: int | None = None

    def write(self, df: DataFrame, delivery: DeliveryId) -> Delivered:
        storage = self.storage or storage_for(self.output, df.sparkSession)
        owner = hashlib.sha256(f"{delivery.lineage}/{delivery.sink}".encode()).hexdigest()[:12]
        target = f"{self.output}/{BATCH}={owner}-{delivery.batch:010d}"
        staged = f"{storage.staging(self.output)}/{owner}-{delivery.batch:010d}"
        if self.storage is None:
            self.storage = storage
            self._clean(storage, owner)
        if storage.exists(target):
            return Delivered(self._read(df, target).count())
        events = write_counted(df, lambda counted: self._stage(counted, staged)).events
        if events:
            staged = self._rolled(df, storage, staged, events)
            storage.publish(staged, target)
        else:
            storage.remove(staged)
        return Delivered(events)

    def close(self) -> None:
        self.storage = None

    @property
    def _options(self) -> dict[str, str]:
        return {**FORMAT_OPTIONS.get(self.sink.format, {}), **self.sink.options}

    def _read(self, like: DataFrame, path: str) -> DataFrame:
        reader = like.sparkSession.read.format(self.sink.format).schema(like.schema)
        return reader.options(**self._options).load(path)

    def _stage(self, df: DataFrame, path: str) -> None:
        writer = (
            df.write.format(self.sink.format)
            .mode("overwrite")
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .option("mapreduce.fileoutputcommitter.algorithm.version", "2")
            .options(**self._options)
        )
        if self.events_per_file:
            writer = writer.option("maxRecordsPerFile", self.events_per_file)
        if self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        writer.save(path)

    def _rolled(self, df: DataFrame, storage: Storage, staged: str, events: int) -> str:
        """The staged batch in files of the wanted size.

        Spark can only count events per file, so the size of an event is learnt from what was written. The
        batch that teaches it is written twice, from its own files: computing it again might give others.
        """
        limit = self.sink.max_file_bytes
        if limit is None:
            return staged
        sizes = storage.sizes(staged)
        events_per_file = max(1, limit * events // max(1, sum(sizes)))
        oversized = max(sizes) > limit * TOLERANCE and events > len(sizes)
        self.events_per_file = events_per_file
        if not oversized:
            return staged
        self._stage(self._read(df, staged), f"{staged}-rolled")
        storage.remove(staged)
        return f"{staged}-rolled"

    def _clean(self, storage: Storage, owner: str) -> None:
        """Remove what an earlier run of this pipeline left unfinished."""
        for path in storage.children(storage.staging(self.output)):
            if path.rsplit("/", 1)[-1].startswith(owner):
                storage.remove(path)
