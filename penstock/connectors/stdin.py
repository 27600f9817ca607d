"""The `stdin` source: the events that are piped into `penstock run`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.messages.source import MessageSource, raw_events
from penstock.connectors.received import Ended, Received, Receiver
from penstock.connectors.remote import wait_readable
from penstock.errors import Invalid, Problem
from penstock.frames.site import Site
from penstock.specs.conditions import only_with
from penstock.specs.policies import Batch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LineFormat = Literal["json", "csv", "text"]

CHUNK = 1 << 20
"""The maximum number of bytes per read."""

LONGEST = 64 * 1024 * 1024
"""The maximum size of a line in bytes. An input without line endings would exhaust the memory."""

BOM = b"\xef\xbb\xbf"
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


class StdinSource(MessageSource):
    """Reads events from standard input, one per line: `cat orders.jsonl | penstock run pipeline.yaml`.

    The pipeline ends as `completed` at the end of the input. Only `penstock run` has a standard input, so a
    server rejects this source. Lines are stored in the pipeline's own stream before they are processed: after
    a kill they are not lost, and the next run processes them. Standard input cannot be read again, so the
    next run reads its own input. `--fresh` deletes lines that earlier runs have stored.

    `json` is an object per line, and `csv` has a header and follows RFC 4180; both need a `schema` and are
    decoded by the same rules as events sent to a stream. A line that does not fit goes to the dead letters.
    `text` results in a column `value`.
    """

    type: Literal["stdin"] = "stdin"
    format: LineFormat = Field(  # type: ignore[assignment]
        default="json", description="A JSON object per line, CSV with a header, or any text."
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark DDL.",
        json_schema_extra=only_with(format=["json", "csv"]),
    )

    piped: ClassVar = True
    tested: ClassVar = "pipes of Linux"
    guarantee: ClassVar = "at-most-once"
    example: ClassVar = "type: stdin\nformat: csv\nschema: id BIGINT, amount DOUBLE\n"

    @model_validator(mode="after")
    def _value_fits(self) -> Self:
        if self.format != "text" and self.schema_ is None:
            raise ValueError(f"format '{self.format}' needs a 'schema'; 'text' doesn't")
        given = self.model_fields_set & {"schema_", "schema", "malformed", "timestamps"}
        if self.format == "text" and given:
            names = ", ".join(f"'{name.rstrip('_')}'" for name in sorted(given))
            raise ValueError(f"{names} can't be used with format 'text'")
        return self

    def receiver(self, site: Site) -> Receiver:
        return _Receiver(self)

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        MessageSource.pinned(self._as_json(), spark, site)
        return self

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        from pyspark.sql.types import StructType

        found = MessageSource.columns(self._as_json(), spark, site)
        return StructType([field for field in found.fields if field.name not in self._hidden()])

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        return MessageSource.read(self._as_json(), spark, batch, site).drop(*self._hidden())

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return MessageSource.reread(self._as_json(), spark, site, first, end).drop(*self._hidden())

    def reason(self, row: str) -> tuple[str, str] | None:
        if self.format == "csv" and not row.startswith("{"):
            return "wrong_length", "the record doesn't match the header"
        return MessageSource.reason(self._as_json(), row)

    def _as_json(self) -> Self:
        """This source with format JSON: the receiver converts CSV to JSON."""
        return self.model_copy(update={"format": "json"}) if self.format == "csv" else self

    def _hidden(self) -> tuple[str, ...]:
        return ("key", "headers") if self.format == "text" else ()


class _Input:
    """The standard input of this process: the data that was read and is not stored yet."""

    def __init__(self) -> None:
        self.rest = b""
        self.header: bytes | None = None
        self.ended = False
        self.pending: list[bytes | None] = []
        """Lines that were received and are not acknowledged: a new receiver starts with them."""

    def read(self, wait_s: float) -> bytes:
        """The next bytes; empty if none arrive within `wait_s` seconds, or at the end."""
        if sys.stdin is None:
            self.ended = True
            return b""
        try:
            number = sys.stdin.fileno()
        except (OSError, ValueError):  # not a file, as in tests
            found = sys.stdin.buffer.read(CHUNK)
        else:
            if not wait_readable(number, wait_s):
                return b""
            found = os.read(number, CHUNK)
        self.ended = not found
        return found

    def lines(self, wait_s: float, *, quoted: bool) -> list[bytes]:
        """Complete lines; with `quoted`, a line ending within quotes is part of the line."""
        self.rest += self.read(wait_s)
        body, self.rest = self.rest, b""
        found = list(_split(body, quoted=quoted))
        if not self.ended and found:
            self.rest = found.pop()
        if len(self.rest) > LONGEST:
            message = f"a line of standard input is longer than {LONGEST} bytes"
            raise Invalid(
                Problem(code="line_too_long", message=message, hint="end each event with a line break")
            )
        return [line for line in found if line]


INPUT = _Input()


class _Receiver(Receiver):
    def __init__(self, source: StdinSource) -> None:
        self.source = source

    def open(self, position: str | None) -> None:
        """Do nothing: standard input is open, and cannot seek to a position."""

    def receive(self, wait_s: float) -> Received | None:
        if not INPUT.pending:
            if INPUT.ended:
                raise Ended
            first = INPUT.header is None
            lines = INPUT.lines(wait_s, quoted=self.source.format == "csv")
            if first and lines:
                lines[0] = lines[0].removeprefix(BOM)
                INPUT.header = lines[0]
            INPUT.pending = list(self._values(lines, first=first)) if lines else []
        return Received(raw_events(INPUT.pending)) if INPUT.pending else None

    def acknowledge(self, received: Received) -> None:
        INPUT.pending = []

    def _values(self, lines: list[bytes], *, first: bool) -> Iterator[bytes]:
        if self.source.format != "csv":
            yield from lines
            return
        records = lines[1:] if first else lines
        if records:
            yield from _records(INPUT.header or b"", records, self.source)


def _split(body: bytes, *, quoted: bool) -> Iterator[bytes]:
    """The lines of a body without line endings; the last one follows the last line ending."""
    if not quoted or b'"' not in body:
        yield from (line.removesuffix(b"\r") for line in body.split(b"\n"))
        return
    line, quotes = b"", 0
    for part in body.split(b"\n"):
        line += part
        quotes += part.count(b'"')
        if quotes % 2:
            line += b"\n"
        else:
            yield line.removesuffix(b"\r")
            line, quotes = b"", 0
    if line:
        yield line.removesuffix(b"\n")


def _records(header: bytes, records: list[bytes], source: StdinSource) -> Iterator[bytes]:
    """CSV records as JSON objects, with numbers unchanged; records of another length stay unchanged."""
    from penstock.streams.decode.csv_body import decode_csv
    from penstock.streams.schema import arrow_schema

    schema = arrow_schema(source.schema_ or "")
    found = decode_csv(b"\n".join([header, *records]), None, header=True)
    plain = _plain_columns(schema, numbers=source.timestamps != "iso")
    for value in found.batch.column(0).to_pylist():
        row = json.loads(value)
        if unknown := next((name for name in row if name not in schema.names), None):
            message, hint = f"the schema has no column '{unknown}'", f"it has {', '.join(schema.names)}"
            raise Invalid(Problem(code="bad_header", message=message, path="schema", hint=hint))
        members = (f"{json.dumps(name)}:{_literal(text, name in plain)}" for name, text in row.items())
        yield f"{{{','.join(members)}}}".encode()
    yield from (misfit.value for misfit in found.misfits)


def _plain_columns(schema: pa.Schema, *, numbers: bool) -> set[str]:
    """The columns whose values are written without quotes in JSON."""
    import pyarrow.types as kinds

    plain = [kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_boolean]
    plain += [kinds.is_timestamp] if numbers else []
    return {field.name for field in schema if any(is_kind(field.type) for is_kind in plain)}


def _literal(text: str | None, plain: bool) -> str:
    if text is None:
        return "null"
    if plain and (NUMBER.fullmatch(text) or text in ("true", "false")):
        return text
    return json.dumps(text)
