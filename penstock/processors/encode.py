"""The `encode` step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import pydantic_core
from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.frames.columns import found, index_of, joined, put_together, shown, without_rows
from penstock.processors.base import BadEvent, Desk, Outcome, Stage, Work
from penstock.processors.formats.registry import Registry, registry_for
from penstock.processors.formats.spec import FormatProcessor, needed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.streams.decode.results import Mismatch

    Encode = Callable[[pa.RecordBatch], Sequence[str | bytes | Mismatch]]


class EncodeProcessor(FormatProcessor):
    """Encodes columns into one value that `decode` can read.

    The value is STRING for `json`, `csv` and `kv`, and BINARY for `avro` and `protobuf`. Times are ISO 8601,
    bytes are base64, and what is nested is JSON where the format has nothing better. An event that does not
    fit the schema of `avro` or `protobuf` goes to the dead letters. With `registry` the value begins with a
    header that names the latest schema of its `subject`; for `avro` that is also the schema to write with,
    unless there is a `schema_file`.
    """

    example: ClassVar[str] = """\
type: encode
format: json
fields: [id, amount, country]
"""

    type: Literal["encode"] = "encode"
    format: Literal["json", "csv", "kv", "avro", "protobuf"] = Field(description="Format of the value.")
    fields_: list[str] | None = Field(
        default=None,
        alias="fields",
        min_length=1,
        description="Columns to encode, in this order. Default: all.",
    )
    into: str = Field(default="value", min_length=1, description="Name of the column with the value.")
    keep: bool = Field(default=False, description="Whether to keep the columns that are not encoded.")

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The kept columns and the value."""
        from pyspark.sql.types import BinaryType, StringType

        self.load()
        written = [
            found(schema, name, f"fields[{i}]").name for i, name in enumerate(self.fields_ or schema.names)
        ]
        if self.format == "kv":
            self._check_names(written)
        if self.format == "protobuf":
            self.message_type()
        if self.format == "avro" and self.avro_schema() is None and self.registry is None:
            raise needed("schema_file", "format 'avro' needs a schema: a file or a registry")
        if (self.registry is None or self.registry.subject is None) and (self.framed or self.registry):
            raise needed("registry.subject", "the value header needs a schema registry")
        kept = [field for field in schema.fields if self.keep and field.name not in written]
        value = type(schema)().add(self.into, BinaryType() if self._binary else StringType())
        return joined(kept, value, "into", "choose another name, or set keep: false")

    def open(self, desk: Desk) -> Work:
        """The writer of batches."""
        import pyarrow as pa

        from penstock.streams.decode.results import Mismatch

        encode = self._encoder(desk)
        kind = pa.binary() if self._binary else pa.string()

        def work(batch: pa.RecordBatch) -> Outcome:
            names = batch.schema.names
            written = [names[index_of(names, name)] for name in self.fields_ or shown(batch)]
            values = encode(batch.select(written))
            bad = [
                BadEvent(i, value.code, str(value))
                for i, value in enumerate(values)
                if isinstance(value, Mismatch)
            ]
            made = pa.array([value for value in values if not isinstance(value, Mismatch)], kind)
            kept = shown(batch, without=written) if self.keep else []
            rest = without_rows(batch, {each.row for each in bad})
            new = pa.RecordBatch.from_arrays([made], names=[self.into])
            return Outcome(put_together(rest, kept, new), bad)

        return work

    @property
    def _binary(self) -> bool:
        return self.format in ("avro", "protobuf")

    def _encoder(self, desk: Desk) -> Encode:
        from penstock.processors.formats.csv import csv_line
        from penstock.processors.formats.kv import kv_line

        match self.format:
            case "json":
                return _json
            case "csv":
                return lambda batch: [
                    csv_line(row, self.delimiter, self.null_text) for row in zip(*_texts(batch), strict=True)
                ]
            case "kv":
                return lambda batch: [
                    kv_line(
                        zip(batch.schema.names, row, strict=True), self.pair_separator, self.key_separator
                    )
                    for row in zip(*_texts(batch), strict=True)
                ]
            case "avro":
                from penstock.processors.formats import avro

                schema_id, text = self._registered(desk)
                return avro.avro_encoder(self.avro_schema() or avro.parse(text, "registry"), schema_id)
            case "protobuf":
                from penstock.processors.formats import protobuf

                return protobuf.protobuf_encoder(self.message_type(), self._registered(desk)[0])

    def _registered(self, desk: Desk) -> tuple[int | None, str]:
        """Id and text of the schema that the header names; no id: there is no header."""
        if self.registry is None or self.registry.subject is None:
            return None, ""
        registry: Registry = registry_for(self.registry, desk)
        schema_id, text = registry.latest(self.registry.subject)
        return (schema_id if self.framed else None), text

    def _check_names(self, names: Sequence[str]) -> None:
        problems = [
            Problem(
                code="invalid_value",
                message=f"the name '{name}' contains a separator",
                path="fields",
                hint="rename the column in an earlier step",
            )
            for name in names
            if self.key_separator in name or self.pair_separator in name or any(c.isspace() for c in name)
        ]
        if problems:
            raise Invalid(*problems)


def _json(batch: pa.RecordBatch) -> Sequence[str]:
    from penstock.streams.rendering import plain_values

    names = batch.schema.names
    rows = zip(*(plain_values(column) for column in batch.columns), strict=True)
    return [pydantic_core.to_json(dict(zip(names, row, strict=True))).decode() for row in rows]


def _texts(batch: pa.RecordBatch) -> list[list[str | None]]:
    """The columns as text."""
    from penstock.streams.rendering import plain_values

    return [[_text(value) for value in plain_values(column)] for column in batch.columns]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return pydantic_core.to_json(value).decode()
