"""The `file` source: files in a directory, now and as they arrive."""

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from penstock.connectors.base import Site, Source
from penstock.connectors.paths import is_local, local_path, qualified
from penstock.errors import Invalid, Problem
from penstock.processors.base import EVENT, NOTE
from penstock.specs.policies import Batch
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Format = Literal["json", "csv", "parquet", "text", "orc"]

SAMPLE_BYTES = 256 * 1024 * 1024
"""Text beyond this is sampled when a schema is inferred, so that saving a pipeline stays quick."""

FORMAT_OPTIONS = {"csv": {"header": "true"}}

FOREVER = "36500d"
"""Spark ignores a new file that is older than the newest one by `maxFileAge`, without a word."""


CORRUPT = "$corrupt"
"""The column in which Spark keeps the text of a record that does not fit."""


class FileSource(Source):
    """Reads files: one file, a directory or a glob; watches for new ones unless it is finite.

    Each file is read once, whole; write a file elsewhere and move it in, so that it is never seen half
    written. Names that begin with `_` or `.` are passed over. Without a `schema` the columns are inferred
    from the files there are when the document is saved, and pinned in its revision. A record of JSON or CSV
    that does not fit goes to the dead letters as it stands in the file (`malformed: dead_letter`).

    The thresholds of `batch:` apply where they are set: `max_bytes` is the size of the pieces files are
    split into, and with `max_inflight` that many pieces make up a micro-batch.
    """

    type: Literal["file"] = "file"
    path: str = Field(min_length=1, description="A file, a directory or a glob; any URL that Spark can read.")
    format: Format = Field(description="`json` is one JSON object per line.")
    schema_: str | None = Field(
        default=None, alias="schema", description="Columns as Spark DDL; absent: inferred and pinned."
    )
    finite: bool = Field(default=False, description="End as `completed` when all files there are were read.")
    malformed: Literal["dead_letter", "fail", "nulls"] = Field(
        default="dead_letter",
        description="A record that does not fit: keep it as a dead letter, fail the pipeline, or read it as "
        "nulls.",
    )
    poll_ms: int = Field(default=1_000, ge=10, description="How often to look for new files.")
    options: dict[str, str] = Field(
        default_factory=dict, description="Further options of Spark's reader, such as `sep` for csv."
    )

    position_fields: ClassVar = ("type", "path")
    batch_fields: ClassVar = frozenset({"max_bytes", "max_inflight"})
    example: ClassVar = """\
type: file
path: in/orders/*.json
format: json
schema: id BIGINT, customer STRING, amount DOUBLE
"""

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.format == "text":
            return self
        if self.schema_ is not None:
            parse_schema(spark, self.schema_, field="schema")
            return self
        return self.model_copy(update={"schema_": self._inferred(spark)})

    def columns(self, spark: SparkSession, site: Site) -> StructType | None:
        ddl = "value STRING" if self.format == "text" else self.schema_
        return None if ddl is None else parse_schema(spark, ddl, field="schema")

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        set_ = batch.model_fields_set
        if "max_bytes" in set_:
            spark.conf.set("spark.sql.files.maxPartitionBytes", str(batch.max_bytes))
        options = {"maxFileAge": FOREVER, **self._options()}
        if "max_inflight" in set_ and batch.max_inflight != "auto":
            options["maxBytesPerTrigger"] = str(batch.max_bytes * batch.max_inflight)
        reader = spark.readStream.format(self.format).options(**options)
        if self.format == "text":
            return reader.load(self._watched())
        schema = parse_schema(spark, self.schema_ or "", field="schema")
        if not self._keeps_malformed:
            return reader.schema(schema).load(self._watched())
        return _noted(reader.schema(schema.add(CORRUPT, "string")).load(self._watched()))

    @property
    def _keeps_malformed(self) -> bool:
        return self.malformed == "dead_letter" and self.format in ("json", "csv")

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return {"availableNow": True} if self.finite else {"processingTime": f"{self.poll_ms} milliseconds"}

    def _watched(self) -> str:
        """The path as Spark can watch it.

        Spark refuses to watch one file, or a directory that is not there yet, unless the path is a
        pattern, even one that matches nothing else.
        """
        path = qualified(self.path)
        if not is_local(path) or glob.has_magic(path) or os.path.isdir(path):
            return path
        if self.finite and not os.path.exists(path):
            message = f"there is nothing at '{self.path}'"
            raise Invalid(Problem(code="path_not_found", message=message, path="path"))
        return re.sub(r"(\w)(\W*)$", r"[\1]\2", path)

    def _options(self) -> dict[str, str]:
        mode = "PERMISSIVE" if self.malformed == "nulls" or self._keeps_malformed else "FAILFAST"
        kept = {"columnNameOfCorruptRecord": CORRUPT} if self._keeps_malformed else {}
        return {"mode": mode, **kept, **FORMAT_OPTIONS.get(self.format, {}), **self.options}

    def _inferred(self, spark: SparkSession) -> str:
        from pyspark.errors import PySparkException

        options = {"inferSchema": "true", **self._options(), "mode": "PERMISSIVE"}
        if self.format in ("json", "csv") and (size := self._local_bytes()) > SAMPLE_BYTES:
            options.setdefault("samplingRatio", str(SAMPLE_BYTES / size))
        try:
            schema = spark.read.format(self.format).options(**options).load(qualified(self.path)).schema
        except PySparkException as error:
            raise Invalid(self._cannot_infer(str(error).splitlines()[0])) from None
        fields = [f for f in schema.fields if f.name not in ("_corrupt_record", CORRUPT)]
        if not fields:
            raise Invalid(self._cannot_infer("the files hold no column"))
        return type(schema)(fields).toDDL()

    def _cannot_infer(self, why: str) -> Problem:
        return Problem(
            code="schema_unknown",
            message=f"no schema can be inferred from '{self.path}': {why}",
            path="schema",
            hint="declare 'schema', or put a file there first",
        )

    def _local_bytes(self) -> int:
        if not is_local(self.path):
            return 0
        total = 0
        for match in glob.glob(local_path(self.path)):
            files = [os.path.join(d, f) for d, _, fs in os.walk(match) for f in fs] or [match]
            total += sum(os.path.getsize(f) for f in files if os.path.isfile(f))
        return total


def _noted(df: DataFrame) -> DataFrame:
    """The events, and notes of the records that are none."""
    from pyspark.sql import functions as f

    from penstock.processors.known import event_of
    from penstock.processors.noting import note

    text = f.col(f"`{CORRUPT}`")
    made = note("fault", "source", "malformed", message=f.lit("the record does not fit the schema"), row=text)
    columns = [f.col(f"`{name}`") for name in df.columns if name != CORRUPT]
    return df.select(*columns, event_of().alias(EVENT), f.when(text.isNotNull(), made).alias(NOTE))
