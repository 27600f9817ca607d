"""The events of a batch for `mode: merge`: one per key, which either stores or deletes a row."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.base import Rejected
from penstock.connectors.tables.form import fitted, last_by_key, without_nulls
from penstock.connectors.tables.sink import TableSink


@dataclass(frozen=True)
class Changes:
    """The changes of a batch to a table."""

    stored: pa.Table
    """Rows to insert or update, with the columns of the table that the events have."""
    deleted: pa.Table
    """Keys of the rows to delete."""
    count: int
    """The number of accepted events; of events with the same key, only the last has an effect."""
    rejected: list[Rejected]


def changes_of(events: pa.Table, sink: TableSink, target: pa.Schema) -> Changes:
    """The changes to a table with the columns `target`; raises `Invalid` if it can't accept them."""
    keyed = without_nulls(events, sink.key, "null_key", "is part of the key")
    latest = last_by_key(keyed.events, sink.key)
    deletes = pa.array([False] * len(latest))
    if sink.op is not None:
        ops = latest.column(sink.op.column).cast(pa.string())
        deletes = pc.fill_null(pc.is_in(ops, pa.array(sink.op.delete)), False)
        latest = latest.drop_columns([sink.op.column])
    taken = fitted(latest.filter(pc.invert(deletes)), target, evolve=sink.evolves, fill=False)
    keys = keys_of(latest.filter(deletes), sink, taken.events.schema)
    rejected = [*keyed.rejected, *taken.rejected]
    return Changes(taken.events, keys, len(events) - len(rejected), rejected)


def keys_of(events: pa.Table, sink: TableSink, like: pa.Schema) -> pa.Table:
    """The keys of events, with the column names and types of `like`."""
    fields = {field.name.lower(): field for field in like}
    schema = pa.schema([fields[name.lower()] for name in sink.key])
    return events.select(sink.key).rename_columns(schema.names).cast(schema)
