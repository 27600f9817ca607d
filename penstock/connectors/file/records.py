"""Records of CSV files and JSON documents, decoded by the rules of streams (`penstock.streams.decode`).

JSON lines are read by `lines.py`; this module only finds the reason why a line doesn't match the schema.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.file.form import CORRUPT, ORDER
from penstock.frames.faults import Fault
from penstock.frames.hidden import NOTE, NOTE_TYPE
from penstock.specs.stream import Timestamps
from penstock.sql.names import quote
from penstock.sql.schemas import parse_schema
from penstock.streams.decode.csv_body import read_column, record_text
from penstock.streams.decode.epochs import as_kept, as_sent
from penstock.streams.decode.json_body import BLANK, decode_document, decode_texts
from penstock.streams.decode.results import Decoded, Misfit, Mismatch, nothing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


Malformed = Literal["dead_letter", "fail", "nulls"]
Kind = Literal["documents", "csv"]


@dataclass(frozen=True)
class Rule:
    """Decodes records into events of a schema."""

    schema: pa.Schema
    timestamps: Timestamps = "iso"

    @cached_property
    def sent(self) -> pa.Schema:
        """The schema with timestamps in the type in which records contain them."""
        return as_sent(self.schema, self.timestamps)

    def lines(self, texts: list[bytes]) -> Decoded:
        """The events of JSON lines; blank lines are skipped."""
        stripped = [text.strip(BLANK) for text in texts]
        return as_kept(decode_texts([text for text in stripped if text], self.sent), self.schema)

    def reason(self, line: str) -> tuple[str, str] | None:
        """The code and the reason why a line doesn't match the schema; None if it does."""
        found = self.lines([line.encode()]).misfits
        return (found[0].code, found[0].reason) if found else None

    def documents(self, texts: list[bytes]) -> Decoded:
        """The events of JSON documents, each an object or an array of objects."""
        found = [decode_document(text, self.sent) for text in texts]
        batches = [nothing(self.sent), *(each.batch for each in found)]
        misfits = [misfit for each in found for misfit in each.misfits]
        return as_kept(Decoded(pa.concat_batches(batches), misfits), self.schema)

    def records(self, batch: pa.RecordBatch) -> Decoded:
        """The events of CSV records as split by Spark: a text column for each field, and `$corrupt`."""
        faults: dict[int, Mismatch] = {}
        corrupt = batch.column(CORRUPT)
        for i in pc.indices_nonzero(corrupt.is_valid()).to_pylist():
            faults[i] = _uneven(corrupt[i].as_py(), len(self.schema))
        arrays = [read_column(batch.column(field.name), field, faults) for field in self.sent]
        good = pa.RecordBatch.from_arrays(arrays, schema=self.sent)
        if faults:
            good = good.filter(pa.array([i not in faults for i in range(len(good))]))
        misfits = [faults[i].of(i + 1, self._record(batch, i)) for i in sorted(faults)]
        return as_kept(Decoded(good, misfits), self.schema)

    def _record(self, batch: pa.RecordBatch, i: int) -> bytes:
        whole = batch.column(CORRUPT)[i].as_py()
        if whole is not None:
            return str(whole).encode()
        fields = [batch.column(name)[i].as_py() for name in self.schema.names]
        return record_text([None if field is None else field.encode() for field in fields])


@dataclass(frozen=True)
class Records:
    """Decodes records in Spark's Python processes."""

    rule: Rule
    kind: Kind
    malformed: Malformed
    output: pa.Schema
    """The columns of the events, `$note`, and `$order`."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in _by_order(batch):
                found, order = self._decoded(part), part.column(ORDER)[0]
                yield self._put(found.batch.columns, len(found.batch), order, pa.nulls)
                if found.misfits:
                    yield self._left(found.misfits, order)

    def _decoded(self, batch: pa.RecordBatch) -> Decoded:
        if self.kind == "csv":
            return self.rule.records(batch)
        texts = batch.column(0).cast(pa.binary()).to_pylist()
        return self.rule.documents(texts)

    def _left(self, misfits: list[Misfit], order: pa.Scalar) -> pa.RecordBatch:
        """The notes for records that don't match the schema, or nulls; raises for `malformed: fail`."""
        if self.malformed == "fail":
            raise Fault(misfits[0].code, f"{misfits[0].reason}, in {_text(misfits[0])[:200]}")
        columns = [pa.nulls(len(misfits), kind) for kind in self.rule.schema.types]
        if self.malformed == "nulls":
            return self._put(columns, len(misfits), order, pa.nulls)
        notes = [
            {"kind": "fault", "step": "source", "code": m.code, "message": m.reason, "row": _text(m)}
            for m in misfits
        ]
        return self._put(columns, len(misfits), order, lambda _, kind: pa.array(notes, kind))

    def _put(
        self,
        columns: list[pa.Array],
        rows: int,
        order: pa.Scalar,
        notes: Callable[[int, pa.DataType], pa.Array],
    ) -> pa.RecordBatch:
        made = notes(rows, self.output.field(NOTE).type)
        return pa.RecordBatch.from_arrays([*columns, made, pa.repeat(order, rows)], schema=self.output)


def _by_order(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The parts of a batch, each from one file or from files with the same modification time."""
    if not len(batch):
        return
    order = batch.column(ORDER).to_numpy()
    ends = [*(np.flatnonzero(order[1:] != order[:-1]) + 1).tolist(), len(batch)]
    for first, end in pairwise([0, *ends]):
        yield batch.slice(first, end - first)


def decoded(
    df: DataFrame, schema: StructType, timestamps: Timestamps, kind: Kind, malformed: Malformed
) -> DataFrame:
    """The events in a frame of texts or CSV fields, and notes for records that don't match the schema."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    note = parse_schema(df.sparkSession, f"{quote(NOTE)} {NOTE_TYPE}", field="schema")
    nullable = [type(field)(field.name, field.dataType, True) for field in schema.fields]
    whole = StructType([*nullable, *note.fields, df.schema[ORDER]])
    rule = Rule(to_arrow_schema(schema, timezone="UTC"), timestamps)
    records = Records(rule, kind, malformed, to_arrow_schema(whole, timezone="UTC"))
    return df.mapInArrow(records, whole)


def _uneven(record: str, width: int) -> Mismatch:
    found = next(csv.reader(io.StringIO(record)), [])
    return Mismatch("wrong_length", f"the record has {len(found)} fields, not {width}")


def _text(misfit: Misfit) -> str:
    return misfit.value.decode(errors="replace")
