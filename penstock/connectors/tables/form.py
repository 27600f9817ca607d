"""Converts events to the columns and types of a table, and selects the last event of each key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.base import Rejected
from penstock.errors import Invalid, Problem
from penstock.streams.casting import convert, is_wider
from penstock.streams.rendering import plain_values

ROW = "$row"
"""The column with the number of an event in its batch."""

NOT_NULL = "is NOT NULL in the table"


@dataclass(frozen=True)
class Fitted:
    """Events that a table accepts, and rejected events."""

    events: pa.Table
    rejected: list[Rejected]


def fitted(events: pa.Table, target: pa.Schema, *, evolve: bool, fill: bool = True) -> Fitted:
    """Events with the names, the types and the order of a table's columns; new columns come last.

    Columns that the events lack are null with `fill`, else omitted. Raises `Invalid` for a column that the
    table doesn't have, unless it may `evolve`, and for a column that the table's type can't hold.
    """
    if problems := list(_misfits(events.schema, target, evolve=evolve)):
        raise Invalid(*problems)
    have = {name.lower(): name for name in events.schema.names}
    known = {name.lower() for name in target.names}
    fields = [field for field in target if fill or field.name.lower() in have]
    fields += [field for field in events.schema if field.name.lower() not in known]
    made = []
    for batch in events.combine_chunks().to_batches():
        columns = [
            convert(batch.column(have[field.name.lower()]), field.type)[0]
            if field.name.lower() in have
            else pa.nulls(len(batch), field.type)
            for field in fields
        ]
        made.append(pa.RecordBatch.from_arrays(columns, schema=_relaxed(fields)))
    required = [field.name for field in fields if not field.nullable]
    found = without_nulls(pa.Table.from_batches(made, _relaxed(fields)), required, "null_value", NOT_NULL)
    return Fitted(found.events.cast(pa.schema(fields)), found.rejected)


def _relaxed(fields: Sequence[pa.Field]) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in fields])


def _misfits(have: pa.Schema, target: pa.Schema, *, evolve: bool) -> Iterator[Problem]:
    known = {field.name.lower(): field for field in target}
    for field in have:
        wanted = known.get(field.name.lower())
        if wanted is None and not evolve:
            message = f"the table has no column '{field.name}'"
            hint = "set create: evolve to add new columns to the table, or drop the column in a processor"
            yield Problem(code="extra_column", message=message, path="create", hint=hint)
        elif wanted is not None and not is_wider(field.type, wanted.type):
            message = f"the table has '{wanted.name}' as {wanted.type}, which can't hold {field.type}"
            yield Problem(code="wrong_type", message=message, hint="cast the column in a processor")
    named = {name.lower() for name in have.names}
    for wanted in target:
        if not wanted.nullable and wanted.name.lower() not in named:
            message = f"the table's column '{wanted.name}' is NOT NULL, but the events don't have it"
            yield Problem(code="missing_column", message=message, hint="add the column in a processor")


def without_nulls(events: pa.Table, names: Sequence[str], code: str, why: str) -> Fitted:
    """The events with a value in each of the given columns, and the others as rejected events."""
    lacking = [name for name in names if events.column(name).null_count]
    if not lacking:
        return Fitted(events, [])
    bad = reduce(pc.or_, [events.column(name).is_null() for name in lacking])
    apart = events.filter(bad).combine_chunks()
    rows = [row for batch in apart.to_batches() for row in plain_values(batch.to_struct_array())]
    rejected = []
    for row in rows:
        name = next(name for name in lacking if row[name] is None)
        message = f"an event has no '{name}', which {why}"
        rejected.append(Rejected(json.dumps(row, ensure_ascii=False), code, message))
    return Fitted(events.filter(pc.invert(bad)), rejected)


def last_by_key(events: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last event of each key, in the order of the batch."""
    numbered = events.append_column(ROW, pa.array(range(len(events)), pa.int64()))
    last = numbered.select([*key, ROW]).group_by(list(key)).aggregate([(ROW, "max")])
    rows = last.column(f"{ROW}_max").combine_chunks()
    return events.take(rows.take(pc.sort_indices(rows)))
