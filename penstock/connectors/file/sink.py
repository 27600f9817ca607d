"""The `file` sink: batches as files, each published atomically."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Events, Rejected, Sink, SinkWriter, write_counted
from penstock.connectors.file.check import probe_writing
from penstock.connectors.file.form import (
    NO_FORM,
    NO_FORM_IN_ORC,
    READ,
    UNHELD,
    WRITE,
    Format,
    in_form,
    unheld,
)
from penstock.connectors.file.paths import qualified
from penstock.connectors.file.storage import Storage, storage_for
from penstock.connectors.file.store import (
    Store,
    explained,
    hadoop_options,
    is_object_store,
    jars_for,
    misplaced,
)
from penstock.connectors.probe import Probe
from penstock.errors import Problem, did_you_mean
from penstock.frames.site import Site
from penstock.spark.driver import error_text, java_errors
from penstock.specs.reach import ClientOptions, FilePath
from penstock.sql.names import quote
from penstock.sql.rows import to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

BATCH = "penstock_batch"
"""Name of the partition directory that holds a batch."""

TOLERANCE = 1.25
"""The factor by which a file may exceed `max_file_bytes` before the batch is rewritten with smaller files."""


class FileSink(Sink):
    """Writes each batch as a directory `penstock_batch=…` of files, which becomes visible when complete.

    Delivery is exactly-once: a reader of the directory never sees a partial batch, and a batch that is
    retried after a crash is recognized by its name and not written again. The directory name is a Hive-style
    partition, so Spark, DuckDB, Trino and pyarrow read the whole tree as one table, with the batch of each
    event in the column `penstock_batch`. `batch:` sets the size and the frequency of batches.

    In an object store (`s3a://…`) a batch is a single object, because objects can't be published together
    atomically. `partition_by` and `max_file_bytes` are therefore not available; to partition data in an
    object store, write a table with the sink `delta` or `iceberg`.

    Values are written without loss: timestamps keep their microseconds, and readers get back the values that
    were written. `docs/concepts.md` lists how `json` and `csv` represent types that they don't have. `csv`
    doesn't support arrays, maps and structs. An event that a format can't represent, such as a value with a
    line break in `text`, goes to the dead letters.
    """

    type: Literal["file"] = "file"
    path: FilePath = Field(min_length=1, description="Directory, or any URL that Spark can write to.")
    format: Format = Field(description="`json` is one JSON object per line.")
    partition_by: list[str] = Field(
        default_factory=list, description="Partition columns: each value becomes a directory below the batch."
    )
    max_file_bytes: int | None = Field(
        default=None, ge=1, description="Roll to a new file at about this size; absent: one file per task."
    )
    options: ClientOptions = Field(
        default_factory=dict, description="Additional options of Spark's writer, such as `compression`."
    )
    store: Store | None = Field(default=None, description="Access settings for the object store of `path`.")

    guarantee: ClassVar = "exactly-once"
    tested: ClassVar = "local files, S3 (versitygw 1.8.0)"
    example: ClassVar = """\
type: file
path: out/orders
format: parquet
partition_by: [country]
max_file_bytes: 134217728
"""

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        from pyspark.sql.types import ArrayType, MapType, StringType, StructType

        yield from misplaced(self.path, self.store)
        for option in ("partition_by", "max_file_bytes"):
            if is_object_store(self.path) and getattr(self, option):
                yield _only_one_object(option)
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
            yield Problem(code="no_columns", message="no columns remain for the files", path="partition_by")
        if BATCH in schema.names:
            yield Problem(
                code="reserved_column",
                message=f"the column '{BATCH}' conflicts with the partition column of the sink",
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
        for field in rest:
            nested = isinstance(field.dataType, ArrayType | MapType | StructType)
            if self.format == "csv" and nested:
                yield _cannot_hold(self.format, field, "add a flatten or map step, or write json")
            elif self.format != "text" and has_no_form(field.dataType, self.format):
                yield _cannot_hold(self.format, field, "cast it to STRING or BIGINT, or write parquet")

    def task_paths(self) -> Iterable[tuple[str, str]]:
        return [("path", self.path)]

    @property
    def needed_jars(self) -> str | None:
        return jars_for(self.path)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_writing(spark, self.path, self.store)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self, site.epoch)


def has_no_form(kind: DataType, file_format: Format) -> bool:
    """Whether the format can't hold a type or one of its nested types."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return has_no_form(kind.elementType, file_format)
    if isinstance(kind, MapType):
        # Spark and pyarrow both read back fewer entries than were written.
        return file_format == "orc" or any(
            has_no_form(each, file_format) for each in (kind.keyType, kind.valueType)
        )
    if isinstance(kind, StructType):
        return any(has_no_form(field.dataType, file_format) for field in kind.fields)
    return kind.simpleString().startswith(NO_FORM_IN_ORC if file_format == "orc" else NO_FORM)


def _only_one_object(field: str) -> Problem:
    message = "a batch in an object store is a single object, so that it becomes visible atomically"
    hints = {
        "partition_by": "remove it, or write a table with the sink delta or iceberg",
        "max_file_bytes": "remove it, and limit the size of a batch with batch.max_bytes",
    }
    return Problem(code="one_object", message=message, path=field, hint=hints[field])


def _cannot_hold(file_format: Format, field: StructField, hint: str) -> Problem:
    message = f"{file_format} can't hold '{field.name}', a {field.dataType.simpleString()}"
    return Problem(code="unsupported_type", message=message, path="format", hint=hint)


class _Writer(SinkWriter):
    """Writes to a staging directory and publishes it in one step: a rename, or the completion of an upload.

    That step is the commit: a directory with the name of a batch exists if and only if the batch was
    delivered (invariants 3 and 4). The name includes the lineage of the checkpoint, so that a pipeline that
    starts over, and counts from zero again, is not mistaken for the old one. The name of the staging
    directory includes the epoch: a worker that has lost the flow without knowing it yet writes to a separate
    directory.
    """

    def __init__(self, sink: FileSink, epoch: int) -> None:
        self.sink, self.epoch = sink, epoch
        self.output = qualified(sink.path)
        self.storage: Storage | None = None
        self.access: dict[str, str] = {}
        self.events_per_file: int | None = None

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        try:
            return self._write(events.frame(), delivery)
        except java_errors() as error:
            raise explained(error_text(error), self.sink.path, self.sink.store) or error from None

    def _write(self, df: DataFrame, delivery: DeliveryId) -> Delivered:
        storage = self.storage or self._opened(df.sparkSession)
        owner = hashlib.sha256(f"{delivery.lineage}/{delivery.sink}".encode()).hexdigest()[:12]
        target = f"{self.output}/{BATCH}={owner}-{delivery.batch:010d}"
        staged = f"{storage.staging(self.output)}/{owner}-e{self.epoch:08d}-{delivery.batch:010d}"
        if self.storage is None:
            self.storage = storage
            self._clean(storage, owner)
        held, rejected = self._sifted(df)
        df = in_form(held, self.sink.format)
        if storage.exists(target):
            return Delivered(self._read(df, target).count(), rejected)
        options = storage.begin(target)
        whole = df.coalesce(1) if storage.one_file else df
        number = write_counted(whole, lambda counted: self._stage(counted, staged, options)).events
        if number:
            staged = self._rolled(df, storage, staged, number)
            self.permitted()
            storage.publish(staged, target)
        else:
            storage.remove(staged)
        return Delivered(number, rejected)

    def close(self) -> None:
        self.storage = None

    def _opened(self, spark: SparkSession) -> Storage:
        self.access = hadoop_options(spark, self.output, self.sink.store)
        return storage_for(self.output, spark, self.access)

    def _sifted(self, df: DataFrame) -> tuple[DataFrame, Iterable[Rejected]]:
        """The events that the format can represent, and separately the rejected events."""
        names = [name for name in df.columns if name not in self.sink.partition_by]
        bad = unheld(names, self.sink.format)
        if bad is None:
            return df, ()
        rows = df.filter(bad).select(to_json(*map(df.__getitem__, map(quote, df.columns))))
        message = f"{self.sink.format} can't represent the value of '{names[0]}': {UNHELD[self.sink.format]}"
        return df.filter(~bad), (Rejected(row[0], "no_form", message) for row in rows.toLocalIterator())

    def _read(self, like: DataFrame, path: str) -> DataFrame:
        file_format = self.sink.format
        forms = {**WRITE.get(file_format, {}), **READ.get(file_format, {})}
        options = {**forms, **self.sink.options, **self.access}
        return like.sparkSession.read.format(file_format).schema(like.schema).options(**options).load(path)

    def _stage(self, df: DataFrame, path: str, options: Mapping[str, str] | None = None) -> None:
        writer = (
            df.write.format(self.sink.format)
            .mode("overwrite")
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .option("mapreduce.fileoutputcommitter.algorithm.version", "2")
            .options(**{**WRITE.get(self.sink.format, {}), **self.sink.options, **self.access})
            .options(**(options or {}))
        )
        if self.events_per_file:
            writer = writer.option("maxRecordsPerFile", self.events_per_file)
        if self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        writer.save(path)

    def _rolled(self, df: DataFrame, storage: Storage, staged: str, events: int) -> str:
        """The path of the staged batch, rewritten if its files exceed the size limit.

        Spark can only limit events per file, so the size of an event is measured from the first files. That
        batch is written twice, the second time from its own files: recomputing the batch might produce
        different events.
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
        """Remove unfinished files of earlier runs of this pipeline."""
        for path in storage.children(storage.staging(self.output)):
            name = path.rsplit("/", 1)[-1]
            if name.startswith(f"{owner}-") and name < f"{owner}-e{self.epoch + 1:08d}":
                storage.remove(path)
