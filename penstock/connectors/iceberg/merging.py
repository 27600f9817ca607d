"""The rows that a merge removes from an Iceberg table, and the rows that it adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.tables.changes import Changes
from penstock.streams.casting import convert

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

LEFT, RIGHT = "$left", "$right"


@dataclass(frozen=True)
class Merged:
    """A merge in terms of Iceberg operations: delete the rows that meet a condition, then append rows."""

    where: BooleanExpression
    touched: bool
    """Whether any row meets the condition."""
    rows: pa.Table


def merged(table: Table, target: pa.Schema, changes: Changes) -> Merged:
    """The merge of changes into a table.

    The library takes minutes for a condition with thousands of keys of several columns. With several columns,
    the merge therefore removes all rows in which each column has one of its values, and adds the rows with
    other keys again in the same commit.
    """
    from pyiceberg.expressions import And

    key = changes.deleted.column_names
    keys = pa.concat_tables([changes.stored.select(key), changes.deleted])
    conditions: list[BooleanExpression] = [_in(name, keys.column(name).unique().to_pylist()) for name in key]
    where = reduce(And, conditions)
    lacking = [field for field in target if field.name not in changes.stored.column_names]
    old = _rows(table, where, target)
    kept = old.filter(pc.is_null(_found(old, keys, key)))
    rows = changes.stored
    at = _found(rows, old, key)
    for field in lacking:
        rows = rows.append_column(field, old.column(field.name).take(at))
    return Merged(where, old.num_rows > 0, pa.concat_tables([rows, kept], promote_options="default"))


def _in(name: str, values: list[Any]) -> BooleanExpression:
    from pyiceberg.expressions import In

    made: Any = In  # its two constructors confuse type checkers
    condition: BooleanExpression = made(name, values)
    return condition


def _rows(table: Table, where: BooleanExpression, target: pa.Schema) -> pa.Table:
    found = table.scan(row_filter=where).to_arrow().combine_chunks()
    made = [
        pa.RecordBatch.from_arrays(
            [convert(batch.column(field.name), field.type)[0] for field in target], schema=target
        )
        for batch in found.to_batches()
    ]
    return pa.Table.from_batches(made, target)


def _found(rows: pa.Table, among: pa.Table, key: list[str]) -> pa.Array:
    """For each row, the number of a row in `among` with the same key; null if there is none."""
    left = rows.select(key).append_column(LEFT, pa.array(range(rows.num_rows), pa.int64()))
    right = among.select(key).append_column(RIGHT, pa.array(range(among.num_rows), pa.int64()))
    joined = left.join(right, keys=key, join_type="left outer")
    first = joined.group_by(LEFT).aggregate([(RIGHT, "min")]).sort_by(LEFT)
    return first.column(f"{RIGHT}_min").combine_chunks()
