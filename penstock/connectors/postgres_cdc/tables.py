"""The rows of one table: from columns of text to structs, JSON objects and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.postgres_cdc.kinds import NUMERIC, Kind
from penstock.connectors.postgres_cdc.wire import Relation
from penstock.errors import Invalid, Problem
from penstock.streams.casting import is_wider
from penstock.streams.decode.results import Mismatch
from penstock.streams.schema import arrow_schema

Texts = Sequence[pa.StringArray]
"""The columns of rows, with values in PostgreSQL's text format."""


@dataclass(frozen=True)
class Table:
    """A table as defined at some point in time, and the conversion of its rows to events."""

    relation: Relation
    kinds: tuple[Kind, ...]
    keys: tuple[int, ...]
    """The columns of its primary key, or else of its replica identity."""
    struct: pa.StructType | None = None
    """The declared columns, if rows become structs; None: they become JSON."""

    @property
    def name(self) -> str:
        """The full name of the table."""
        return self.relation.table

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.relation.columns]

    @property
    def identity(self) -> tuple[int, ...]:
        """The columns that the old row of a change contains."""
        columns = self.relation.columns
        if self.relation.identity == "f":
            return tuple(range(len(columns)))
        return tuple(i for i, column in enumerate(columns) if column.identity)

    def structs(self, texts: Texts, faults: dict[int, Mismatch]) -> pa.StructArray:
        """Rows as structs; adds rows with a value that doesn't match its column to `faults`."""
        assert self.struct is not None
        names, arrays = self.columns, []
        for field in self.struct:
            at = names.index(field.name)
            arrays.append(self.kinds[at].typed(texts[at], field, faults))
        return pa.StructArray.from_arrays(arrays, fields=list(self.struct))

    def objects(
        self,
        texts: Texts,
        columns: Iterable[int] | None = None,
        fill: Callable[[int], pa.Array] | None = None,
    ) -> pa.StringArray:
        """Rows as JSON objects of all columns or the given ones; `fill` marks values that are unknown."""
        parts: list[pa.Array | str] = []
        for at in range(len(texts)) if columns is None else columns:
            name = orjson.dumps(self.relation.columns[at].name).decode()
            value = self.kinds[at].json(texts[at])
            parts += [f"{',' if parts else '{'}{name}:", value if fill is None else fill_in(value, fill(at))]
        if not parts:
            return pa.array(["{}"] * (len(texts[0]) if texts else 0), pa.string())
        return pc.binary_join_element_wise(*parts, "}", "", null_handling="replace", null_replacement="null")

    def key_texts(self, texts: Texts) -> pa.StringArray:
        """The keys of rows as JSON objects; null if the table has no key."""
        if not self.keys:
            return pa.nulls(len(texts[0]) if texts else 0, pa.string())
        return self.objects(texts, self.keys)


def fill_in(values: pa.StringArray, marks: pa.StringArray | None) -> pa.StringArray:
    """The values, replaced by the marks where there are any."""
    return values if marks is None else pc.coalesce(marks, values)


def struct_of(schema: str) -> pa.StructType:
    """The struct type of a table's rows, from its declared columns."""
    return arrow_schema(f"after STRUCT<{schema}>").field(0).type


def check_columns(table: Table) -> list[str]:
    """The undeclared columns; raises `Invalid` if a declared column was dropped or has another type."""
    assert table.struct is not None
    kinds = dict(zip(table.columns, table.kinds, strict=True))
    if problems := [problem for field in table.struct for problem in _misfit(table.name, field, kinds)]:
        raise Invalid(*problems)
    declared = {field.name for field in table.struct}
    return [name for name in table.columns if name not in declared]


def _misfit(table: str, field: pa.Field, kinds: dict[str, Kind]) -> Iterator[Problem]:
    kind = kinds.get(field.name)
    if kind is None:
        yield Problem(
            code="column_dropped",
            message=f"the column '{field.name}' of the table '{table}' no longer exists",
            path="schema",
            hint="remove the column from 'schema', and save the pipeline",
        )
        return
    have: pa.DataType = arrow_schema(f"c {kind.ddl}").field(0).type
    number = kind.type == NUMERIC and pa.types.is_decimal(field.type)
    if not number and not is_wider(have, field.type):
        yield Problem(
            code="column_changed",
            message=f"the column '{field.name}' of the table '{table}' is now {kind.ddl}, which doesn't "
            f"match its declared type {field.type}",
            path="schema",
            hint=f"declare the column as {kind.ddl}; if events with the old type are stored, start over",
        )
