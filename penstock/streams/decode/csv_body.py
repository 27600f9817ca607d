"""CSV bodies (RFC 4180). An empty field is null; an empty field in quotes is the empty string.

The first record is the header; with `header=absent` in the content type there is no header, and the columns
are in the order of the schema. Columns that are not in the schema are ignored. Nested values are JSON. Raw
events are JSON objects of strings, or arrays of strings if there is no header.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pydantic_core
from pyarrow import types as is_

from penstock.errors import did_you_mean
from penstock.streams.casting import convert
from penstock.streams.decode import columns
from penstock.streams.decode.results import Decoded, Misfit, Mismatch, nothing, raw_batch, whole
from penstock.streams.decode.values import text_reader

csv.field_size_limit(2**31 - 1)  # the size of a body is limited elsewhere


def decode_csv(body: bytes, schema: pa.Schema | None, *, header: bool) -> Decoded:
    """The records of a body, as typed events or as raw ones."""
    try:
        first = _first_record(body.decode(errors="replace"))
    except _Quoting as error:
        return whole(body, schema, "bad_csv", str(error), error.line)
    if first is None:
        return Decoded(nothing(schema))
    names = first if header else None if schema is None else schema.names
    if schema is not None and names is not None and (reason := _unusable(names, schema)):
        return whole(body, schema, "bad_header", reason)
    try:
        table = _Table(body, len(names or first), header)
    except pa.ArrowInvalid as error:  # any other error of Arrow
        return whole(body, schema, "bad_csv", str(error))
    if schema is None or names is None:
        return table.split(raw_batch(_as_json(table.texts, names)))
    return table.split(_typed(table, names, schema))


class _Table:
    """The records as columns of text.

    `faults` has the fault of each invalid row; `uneven` has the records with a different number of fields,
    which are not rows.
    """

    def __init__(self, body: bytes, width: int, header: bool) -> None:
        self.uneven: list[Misfit] = []
        self.faults: dict[int, Mismatch] = {}
        self.charset = _charset(body)
        body = body if self.charset == "utf-8" else body.decode(self.charset).encode()
        names = [str(i) for i in range(width)]
        read = pa.csv.read_csv(
            pa.BufferReader(body),
            pa.csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=names),
            pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=self._skip),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        skipped = {misfit.line for misfit in self.uneven}
        total = read.num_rows + len(skipped)
        self.numbers = [n for n in range(1 + header, total + 1) if n not in skipped]
        """The record number of each row; the header is number 1."""
        self.fields = [self._field(column.combine_chunks()[int(header) :]) for column in read.columns]
        self.texts = [self._text(field) for field in self.fields]

    def _skip(self, row: pyarrow.csv.InvalidRow) -> str:
        reason = f"the record has {row.actual_columns} fields, not {row.expected_columns}"
        self.uneven.append(Misfit(row.number, row.text.encode(self.charset), "wrong_length", reason))
        return "skip"

    def _field(self, read: pa.BinaryArray) -> pa.BinaryArray:
        """The bytes of a column as they were in the body."""
        if self.charset == "utf-8":
            return read
        values = (None if value is None else value.decode() for value in read.to_pylist())
        return pa.array([None if text is None else text.encode(self.charset) for text in values], pa.binary())

    def _text(self, field: pa.BinaryArray) -> pa.StringArray:
        text, lost = convert(field, pa.string())
        if lost is not None:
            for i in pc.indices_nonzero(lost).to_pylist():
                self.faults[i] = Mismatch("invalid_utf8", "the record is not UTF-8")
        return text

    def split(self, batch: pa.RecordBatch) -> Decoded:
        """The valid rows, and the records with a fault."""
        if self.faults:
            batch = batch.filter(pa.array([i not in self.faults for i in range(len(batch))]))
        found = [fault.of(self.numbers[i], self._record(i)) for i, fault in self.faults.items()]
        return Decoded(batch, sorted(found + self.uneven, key=lambda misfit: misfit.line))

    def _record(self, i: int) -> bytes:
        return record_text([field[i].as_py() for field in self.fields])


def record_text(fields: Sequence[bytes | None]) -> bytes:
    """A record as CSV text."""
    quoted = []
    for value in fields:
        plain = value is None or (value and not any(mark in value for mark in b',"\r\n'))
        quoted.append(value or b"" if plain else b'"%b"' % value.replace(b'"', b'""'))  # type: ignore[union-attr]
    return b",".join(quoted)


def _typed(table: _Table, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as typed columns; adds faults to those of the table."""
    arrays = []
    for field in schema:
        given = field.name in names
        texts = table.texts[names.index(field.name)] if given else pa.nulls(len(table.numbers), pa.string())
        arrays.append(read_column(texts, field, table.faults, "is null" if given else "is missing"))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_column(
    texts: pa.StringArray, field: pa.Field, faults: dict[int, Mismatch], missing: str = "is null"
) -> pa.Array:
    """A typed column, with a fault for every null in a required column; `missing` is its message."""
    made = parse_column(texts, field, faults)
    if not field.nullable and texts.null_count:
        for i in pc.indices_nonzero(texts.is_null()).to_pylist():
            faults.setdefault(i, Mismatch("missing_field", missing, field.name))
    return made


def parse_column(texts: pa.StringArray, field: pa.Field, faults: dict[int, Mismatch]) -> pa.Array:
    """Parse a whole column, or value by value if a value may not fit; adds faults to `faults`."""
    if not is_.is_nested(field.type):
        try:
            return columns.parse_texts(texts, field.type)
        except columns.Unsure:
            pass
    read = text_reader(field.type)
    made = []
    for i, text in enumerate(texts.to_pylist()):
        try:
            made.append(None if text is None else read(text))
        except Mismatch as mismatch:
            faults.setdefault(i, mismatch.below(field.name))
            made.append(None)
    return pa.array(made, field.type)


def _charset(body: bytes) -> str:
    """UTF-8 if the body is valid UTF-8, else Latin-1, which decodes any byte, to find invalid fields."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _as_json(texts: list[pa.StringArray], names: Sequence[str] | None) -> list[bytes]:
    rows = zip(*(column.to_pylist() for column in texts), strict=True)
    events = rows if names is None else (dict(zip(names, row, strict=True)) for row in rows)
    return [pydantic_core.to_json(event) for event in events]


def _unusable(names: Sequence[str], schema: pa.Schema) -> str | None:
    """The reason why a header does not define the columns, or None."""
    known = set(names) & set(schema.names)
    if not known:
        hint = did_you_mean(names[0], schema.names)
        return f"no column of the stream is in the header, which begins with {names[0]!r}: {hint}"
    twice = sorted(name for name in known if list(names).count(name) > 1)
    return f"duplicate column '{twice[0]}' in the header" if twice else None


class _Quoting(Exception):
    """A quote that is not closed, or closed too early, so that the ends of fields are unknown."""

    def __init__(self, error: csv.Error, line: int) -> None:
        super().__init__(f"invalid quoting at line {line}: {error}")
        self.line = line


def _first_record(text: str) -> list[str] | None:
    """The first record, if there is one.

    If there are quotes, all records are parsed, to find an unclosed quote: Arrow, which reads the body
    afterwards, would treat the rest of the body as one field.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    first = None
    try:
        for record in reader:
            first = first or record or None
            if first and '"' not in text:
                break
    except csv.Error as error:
        raise _Quoting(error, reader.line_num) from None
    return first
