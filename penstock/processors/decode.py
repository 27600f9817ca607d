"""The `decode` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.frames.columns import (
    as_one,
    as_struct,
    declared,
    found,
    index_of,
    joined,
    put_together,
    shown,
    without_rows,
)
from penstock.processors.base import BadEvent, Desk, Outcome, Stage, Work
from penstock.processors.formats.registry import registry_for
from penstock.processors.formats.spec import TEXT, FormatProcessor, needed
from penstock.specs.conditions import only_with
from penstock.specs.stream import TIMESTAMPS, Timestamps

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.processors.formats.patterns import Pattern
    from penstock.processors.formats.text import Decode


class DecodeProcessor(FormatProcessor):
    """Parses a text or binary value in a common format into columns.

    The columns are those of `schema`, which may be left out for `regex` and `grok` (the named groups), `avro`
    and `protobuf` (all fields of `schema_file`). Nothing is guessed or lost: an event that is not in the
    format, or has a value that does not fit its column, goes to the dead letters with the place of the fault.
    A null value gives nulls.

    - `json`: an object; members without a column are passed over.
    - `csv`: one record; its fields are the columns in their order.
    - `kv`: pairs such as `level=info msg="it is done"`.
    - `regex`, `grok`: `pattern` is searched for in the text, as Python's `re` does it. Grok knows the usual
      patterns of Logstash, types (`%{NUMBER:ms:float}`), and your own `patterns`.
    - `avro`: a record without a file around it. `registry` tells the schema it was written with;
      `schema_file` is what it is read as, or what all were written with if there is no registry.
    - `protobuf`: a message of `schema_file`.
    """

    example: ClassVar[str] = """\
type: decode
format: grok
pattern: '%{IPORHOST:client} %{WORD:method} %{URIPATHPARAM:path} %{NUMBER:ms:float}'
"""

    type: Literal["decode"] = "decode"
    format: Literal["json", "csv", "kv", "regex", "grok", "avro", "protobuf"] = Field(
        description="Format of the value."
    )
    field: str = Field(default="value", min_length=1, description="Column to decode, STRING or BINARY.")
    schema_: str | None = Field(default=None, alias="schema", description="Output columns as Spark DDL.")
    keep: bool = Field(default=True, description="Whether to keep the other columns.")
    into: str | None = Field(
        default=None,
        min_length=1,
        description="Name of a struct for the decoded columns. Default: top-level columns.",
    )
    timestamps: Timestamps = Field(
        default="iso", description=TIMESTAMPS, json_schema_extra=only_with(format=TEXT)
    )
    pattern: str | None = Field(
        default=None,
        min_length=1,
        description="Pattern with named groups.",
        json_schema_extra=only_with(format=["regex", "grok"]),
    )
    patterns: dict[str, str] | None = Field(
        default=None,
        description="Custom patterns by name; patterns may refer to each other.",
        json_schema_extra=only_with(format=["grok"]),
    )

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The kept columns and those that are read."""
        self.load()
        source = found(schema, self.field, "field")
        if source.dataType.typeName() not in ("string", "binary"):
            message = f"column '{source.name}' is {source.dataType.simpleString()}, not text or bytes"
            raise Invalid(Problem(code="sql_type", message=message, path="field"))
        read = as_struct(self._read())
        if self.into is not None:
            read = type(schema)().add(self.into, read)
        kept = [field for field in schema.fields if self.keep and field.name != source.name]
        return joined(kept, read, "into", "decode into a struct with another name, or set keep: false")

    def open(self, desk: Desk) -> Work:
        """The reader of batches."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from penstock.streams.decode.epochs import as_kept, as_sent

        read = self._read()
        decode = self._decoder(as_sent(read, self.timestamps), desk)
        required = next((field.name for field in read if not field.nullable), None)

        def work(batch: pa.RecordBatch) -> Outcome:
            name = batch.schema.names[index_of(batch.schema.names, self.field)]
            # Bytes, for the strings of a raw stream need not be UTF-8.
            values = batch.column(name).cast(pa.binary())
            rows = pc.indices_nonzero(values.is_valid()).to_pylist()
            decoded = as_kept(decode(values.drop_null().to_pylist()), read)
            bad = {rows[m.line - 1]: BadEvent(rows[m.line - 1], m.code, m.reason) for m in decoded.misfits}
            if required and values.null_count:
                message = f"column '{required}' is missing: '{name}' is null"
                empty = pc.indices_nonzero(values.is_null()).to_pylist()
                bad |= {row: BadEvent(row, "missing_field", message) for row in empty}
            made = _in_place(decoded.batch, values, bad)
            kept = shown(batch, without=(name,)) if self.keep else []
            made = as_one(made, self.into) if self.into is not None else made
            return Outcome(put_together(without_rows(batch, bad), kept, made), list(bad.values()))

        return work

    def _read(self) -> pa.Schema:
        """The columns that are read."""
        given = declared(self.schema_) if self.schema_ is not None else None
        if self.format in ("regex", "grok"):
            return _chosen(given, self._compiled().schema)
        if self.format == "avro":
            parsed = self.avro_schema()
            if parsed is None and self.registry is None:
                raise needed("schema_file", "format 'avro' needs a schema: a file or a registry")
            if given is None and parsed is not None:
                from penstock.processors.formats import avro

                return avro.columns(parsed)
        if self.format == "protobuf":
            from penstock.processors.formats import protobuf

            message = self.message_type()
            return protobuf.columns(message) if given is None else given
        if given is None:
            raise needed("schema", f"format '{self.format}' doesn't define the columns")
        return given

    def _decoder(self, read: pa.Schema, desk: Desk) -> Decode:
        from penstock.processors.formats.csv import csv_splitter
        from penstock.processors.formats.kv import kv_splitter
        from penstock.processors.formats.text import json_decoder, text_decoder

        match self.format:
            case "json":
                return json_decoder(read)
            case "csv":
                return text_decoder(csv_splitter(len(read), self.delimiter, self.null_text), read)
            case "kv":
                return text_decoder(kv_splitter(read.names, self.pair_separator, self.key_separator), read)
            case "regex" | "grok":
                return text_decoder(self._compiled().splitter(read.names), read)
            case "avro":
                from penstock.processors.formats import avro

                registry = registry_for(self.registry, desk) if self.registry else None
                return avro.avro_decoder(read, self.avro_schema(), registry, header=self.framed)
            case "protobuf":
                from penstock.processors.formats import protobuf

                return protobuf.protobuf_decoder(read, self.message_type(), header=self.framed)

    def _compiled(self) -> Pattern:
        from penstock.processors.formats.patterns import grok, regex

        if self.pattern is None:
            raise needed("pattern", f"format '{self.format}' needs a pattern")
        return regex(self.pattern) if self.format == "regex" else grok(self.pattern, self.patterns or {})


def _chosen(given: pa.Schema | None, groups: pa.Schema) -> pa.Schema:
    """The columns among the groups of a pattern."""
    from penstock.sql.problems import unknown_column

    if given is None:
        return groups
    unknown = [unknown_column(name, groups.names) for name in given.names if name not in groups.names]
    if unknown:
        raise Invalid(*(problem.model_copy(update={"path": "schema"}) for problem in unknown))
    return given


def _in_place(batch: pa.RecordBatch, values: pa.Array, bad: dict[int, BadEvent]) -> pa.RecordBatch:
    """The rows that were read, with nulls for the values that were null."""
    import pyarrow as pa

    if not values.null_count:
        return batch
    numbers = iter(range(batch.num_rows))
    valid = enumerate(values.is_valid().to_pylist())
    return batch.take(pa.array([next(numbers) if v else None for i, v in valid if i not in bad], pa.int64()))
