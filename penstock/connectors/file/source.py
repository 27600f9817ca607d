"""The `file` source: the existing and new files of a directory."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from penstock.connectors.base import Source
from penstock.connectors.file.check import probe_reading
from penstock.connectors.file.form import CORRUPT, ORDER, READ, Format
from penstock.connectors.file.order import ordered
from penstock.connectors.file.paths import is_local, local_path, qualified
from penstock.connectors.file.storage import storage_for
from penstock.connectors.file.store import Store, explained, hadoop_options, jars_for
from penstock.connectors.probe import Probe
from penstock.errors import Invalid, PenstockError, Problem
from penstock.frames.hidden import EVENT, HIDDEN
from penstock.frames.known import event_from
from penstock.frames.site import Site
from penstock.spark.driver import error_text, java_errors
from penstock.specs.policies import Batch
from penstock.specs.reach import ClientOptions, FilesPath
from penstock.specs.stream import TIMESTAMPS, Timestamps
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from penstock.connectors.file.records import Rule

SAMPLE_BYTES = 256 * 1024 * 1024
"""Larger text inputs are sampled when a schema is inferred, so that saving a pipeline stays quick."""

FOREVER = "36500d"
"""The value of `maxFileAge`: Spark silently ignores a new file that is this much older than the newest."""


DECODED = ("json", "csv")
"""Text formats, which Penstock decodes."""

IGNORED = {
    "csv": ("dateformat", "mode", "timestampformat", "timestampntzformat"),
    "json": (
        "allowbackslashescapinganycharacter", "allowcomments", "allownonnumericnumbers",
        "allownumericleadingzeros", "allowsinglequotes", "allowunquotedcontrolchars",
        "allowunquotedfieldnames", "charset", "dateformat", "encoding", "mode",
        "timestampformat", "timestampntzformat",
    ),
}  # fmt: skip
"""Options of Spark's reader that would conflict with Penstock's own decoding rules, by format."""


class FileSource(Source):
    """Reads a file, a directory or a glob, and watches for new files unless the source is `finite`.

    Each file is read once, as a whole. Write a file elsewhere and move it in when it is complete, so that it
    is never read half written. Names that begin with `_` or `.` are ignored. Without a `schema`, the columns
    are inferred from the files that exist when the document is saved, and pinned in its revision.

    JSON and CSV are decoded by the same rules as events sent to a stream: nothing is rounded, truncated or
    guessed. A record that doesn't match the schema goes to the dead letters with the column and the value
    (`malformed: dead_letter`). CSV follows RFC 4180: an empty field is NULL, and `""` is an empty string.

    The thresholds of `batch:` apply only if they are set: files are split into pieces of `max_bytes`, and a
    micro-batch consists of up to `max_inflight` pieces.
    """

    type: Literal["file"] = "file"
    path: FilesPath = Field(
        min_length=1, description="File, directory or glob, or any URL that Spark can read."
    )
    format: Format = Field(description="`json` is one JSON object per line.")
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark DDL, including those of directories `name=value`; absent: inferred "
        "and pinned.",
    )
    finite: bool = Field(
        default=False, description="Stop as `completed` when all existing files have been read."
    )
    malformed: Literal["dead_letter", "fail", "nulls"] = Field(
        default="dead_letter",
        description="Handling of a record that doesn't match the schema: keep it as a dead letter, fail the "
        "pipeline, or read it as nulls.",
    )
    timestamps: Timestamps = Field(default="iso", description=TIMESTAMPS)
    poll_ms: int = Field(default=1_000, ge=10, description="Interval between checks for new files.")
    options: ClientOptions = Field(
        default_factory=dict, description="Additional options of Spark's reader, such as `sep` for csv."
    )
    store: Store | None = Field(default=None, description="Access settings for the object store of `path`.")

    guarantee: ClassVar = "exactly-once"
    position_fields: ClassVar = ("type", "path")
    batch_fields: ClassVar = frozenset({"max_bytes", "max_inflight"})
    tested: ClassVar = "local files, S3 (versitygw 1.8.0)"
    example: ClassVar = """\
type: file
path: in/orders/*.json
format: json
schema: id BIGINT, customer STRING, amount DOUBLE
"""

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.format == "text":
            return self
        if self.schema_ is None:
            return self.model_copy(update={"schema_": self._inferred(spark)})
        parse_schema(spark, self.schema_, field="schema")
        if self.format in DECODED:
            self._check()
        return self

    def _check(self) -> None:
        """Reject column types and reader options that the decoder does not support."""
        from penstock.frames.columns import declared

        declared(self.schema_ or "")
        if name := next((name for name in self.options if name.lower() in IGNORED[self.format]), None):
            message = f"'{name}' has no effect: {self.format} is decoded by Penstock, as for streams"
            hint = "read the column as STRING and convert it in a processor, or use format: text and decode"
            problem = Problem(code="unsupported_option", message=message, path=f"options.{name}", hint=hint)
            raise Invalid(problem)

    def columns(self, spark: SparkSession, site: Site) -> StructType | None:
        ddl = "value STRING" if self.format == "text" else self.schema_
        return None if ddl is None else parse_schema(spark, ddl, field="schema")

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        df, columns = self._read(spark, batch), self.columns(spark, site)
        assert columns is not None
        # Spark adds a column for each directory `name=value`, such as the batch directories of the file sink.
        hidden = [name for name in HIDDEN if name in df.columns]
        # Spark reads the largest file of a micro-batch first; in that order, events of other files would
        # count as late.
        event = event_from(place=quote(ORDER)).alias(EVENT)
        return df.select(*map(quote, [*columns.names, *hidden]), event)

    def _read(self, spark: SparkSession, batch: Batch) -> DataFrame:
        set_ = batch.model_fields_set
        if "max_bytes" in set_:
            spark.conf.set("spark.sql.files.maxPartitionBytes", str(batch.max_bytes))
        access = hadoop_options(spark, self.path, self.store)
        options = {"maxFileAge": FOREVER, **self._options(), **access}
        if "max_inflight" in set_ and batch.max_inflight != "auto":
            options["maxBytesPerTrigger"] = str(batch.max_bytes * batch.max_inflight)
        reader = spark.readStream.options(**options)
        path = self._watched(spark, access)
        if self.format == "text":
            return ordered(reader.format("text").load(path))
        schema = parse_schema(spark, self.schema_ or "", field="schema")
        if self.format not in DECODED:
            return ordered(reader.format(self.format).schema(schema).load(path))
        if self.format == "json" and not self._whole_files():
            return self._lines(reader, spark, schema, path)
        return self._decoded(reader, schema, path)

    def reason(self, row: str) -> tuple[str, str] | None:
        """The code and the reason why a JSON line doesn't match the schema."""
        return self._rule().reason(row)

    def _rule(self) -> Rule:
        from penstock.connectors.file.records import Rule
        from penstock.frames.columns import declared

        return Rule(declared(self.schema_ or ""), self.timestamps)

    def _whole_files(self) -> bool:
        options = {name.lower(): value.lower() for name, value in self.options.items()}
        return options.get("multiline") == "true"

    def _lines(
        self, reader: DataStreamReader, spark: SparkSession, schema: StructType, path: str
    ) -> DataFrame:
        from penstock.connectors.file import lines as file_lines

        read = ordered(file_lines.reader(reader, spark, schema, self.timestamps).load(path))
        return file_lines.events(read, schema, self._rule(), self.malformed)

    def _decoded(self, reader: DataStreamReader, schema: StructType, path: str) -> DataFrame:
        from pyspark.sql.types import StringType, StructField, StructType

        from penstock.connectors.file.records import Kind, decoded

        kind: Kind = "csv"
        if self.format == "csv":
            fields = [StructField(name, StringType()) for name in (*schema.names, CORRUPT)]
            reader = reader.format("csv").options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
            read = ordered(reader.schema(StructType(fields)).load(path))
        else:
            kind = "documents"
            read = ordered(reader.format("text").option("wholetext", "true").load(path))
        return decoded(read, schema, self.timestamps, kind, self.malformed)

    def task_paths(self) -> Iterable[tuple[str, str]]:
        return [("path", self.path)]

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_reading(spark, self.path, self.store)

    @property
    def needed_jars(self) -> str | None:
        return jars_for(self.path)

    def explained(self, text: str) -> PenstockError | None:
        return explained(text, self.path, self.store)

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return {"availableNow": True} if self.finite else {"processingTime": f"{self.poll_ms} milliseconds"}

    def _watched(self, spark: SparkSession, access: Mapping[str, str]) -> str:
        """The path in a form that Spark can watch.

        Spark refuses to watch a single file, or a directory that doesn't exist yet, unless the path is a
        pattern, even one that matches only that path.
        """
        path = qualified(self.path)
        if glob.has_magic(path) or self._is_directory(spark, path, access):
            return path
        if self.finite and not storage_for(path, spark, access).exists(path):
            message, hint = f"nothing found at '{self.path}'", "check the path, or add a file first"
            raise Invalid(Problem(code="path_not_found", message=message, path="path", hint=hint))
        return re.sub(r"(\w)(\W*)$", r"[\1]\2", path)

    def _is_directory(self, spark: SparkSession, path: str, access: Mapping[str, str]) -> bool:
        try:
            return storage_for(path, spark, access).is_directory(path)
        except java_errors() as error:
            raise self.explained(error_text(error)) or error from None

    def _options(self) -> dict[str, str]:
        return {**READ.get(self.format, {}), **self.options}

    def _inferred(self, spark: SparkSession) -> str:
        from pyspark.errors import PySparkException

        from penstock.connectors.file.sink import BATCH

        options = {"inferSchema": "true", **self._options(), "mode": "PERMISSIVE"}
        if self.format in ("json", "csv") and (size := self._local_bytes()) > SAMPLE_BYTES:
            options.setdefault("samplingRatio", str(SAMPLE_BYTES / size))
        try:
            options |= hadoop_options(spark, self.path, self.store)
            found = spark.read.format(self.format).options(**options).load(qualified(self.path))
            schema = found.drop(BATCH).schema
        except PySparkException as error:
            if (known := self.explained(error_text(error))) is not None:
                raise known from None
            raise Invalid(self._cannot_infer(str(error).splitlines()[0])) from None
        fields = [f for f in schema.fields if f.name != "_corrupt_record"]
        if not fields:
            raise Invalid(self._cannot_infer("the files have no columns"))
        return type(schema)(fields).toDDL()

    def _cannot_infer(self, why: str) -> Problem:
        return Problem(
            code="schema_unknown",
            message=f"can't infer a schema from '{self.path}': {why}",
            path="schema",
            hint="declare 'schema', or add a file first",
        )

    def _local_bytes(self) -> int:
        if not is_local(self.path):
            return 0
        total = 0
        for match in glob.glob(local_path(self.path)):
            files = [os.path.join(d, f) for d, _, fs in os.walk(match) for f in fs] or [match]
            total += sum(os.path.getsize(f) for f in files if os.path.isfile(f))
        return total
