"""The snapshot of tables at the start of a flow, read in chunks by primary key."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from penstock.connectors.postgres_cdc.catalogue import Catalogue, Published, TableInfo, quoted
from penstock.connectors.postgres_cdc.events import FAULT, MESSAGE, TIME, Changes, Form, fault_of
from penstock.connectors.postgres_cdc.position import Position, lsn_text
from penstock.connectors.postgres_cdc.tables import Table
from penstock.streams.decode.results import Mismatch

PLACE = "ctid"
"""The sort order of a table without a primary key: the physical location of its rows."""


class Snapshot:
    """Reads tables chunk by chunk, starting at a position."""

    def __init__(
        self,
        catalogue: Catalogue,
        tables: Mapping[str, TableInfo],
        published: Mapping[str, Published],
        form: Form,
        chunk_rows: int,
        define: Callable[[TableInfo, Published], Table],
        position: Position,
    ) -> None:
        self._catalogue, self._tables, self._published = catalogue, tables, published
        self._form, self._chunk_rows, self._define = form, chunk_rows, define
        self.position = position

    def begin(self, exported: str | None) -> None:
        """Begin a transaction that sees all tables at one point in time: that of `exported`, if given."""
        statements = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
        if exported is not None:
            statements.append(f"SET TRANSACTION SNAPSHOT '{exported}'")
        self._catalogue.run(*statements)

    def end(self) -> None:
        """End the transaction of `begin`."""
        self._catalogue.run("COMMIT")

    @property
    def left(self) -> list[str]:
        """The tables that are not completely read, in order, but a partially read table first."""
        left = [name for name, table in self._tables.items() if table.label not in self.position.done]
        return sorted(left, key=lambda name: self._tables[name].label != self.position.table)

    def chunk(self) -> pa.RecordBatch:
        """The next rows, empty if a table has no more; advances the position."""
        name = self.left[0]
        info, published = self._tables[name], self._published.get(name, Published())
        table = self._define(info, published)
        after = self.position.key if self.position.table == info.label else ()
        texts, keys = self._rows(info, published, table, after)
        rows = len(texts[0]) if texts else 0
        if rows:
            last = tuple(column[rows - 1].as_py() for column in keys)
            self.position = self.position.reading(info.label, last)
        if rows < self._chunk_rows:
            self.position = self.position.read(info.label)
        return self._events(table, texts, keys)

    def _rows(
        self, info: TableInfo, published: Published, table: Table, after: tuple[str, ...]
    ) -> tuple[list[pa.StringArray], list[pa.StringArray]]:
        order = [quoted(name) for name in info.key] or _places(info)
        conditions = [f"({published.where})"] if published.where else []
        with self._catalogue.connection.cursor() as cursor:
            if after:
                values = ", ".join(cursor.mogrify("%s", (value,)).decode() for value in after)
                conditions.append(f"({', '.join(order)}) > ({values})")
            query = (
                f"SELECT {', '.join([*map(quoted, table.columns), *order])} FROM {info.quoted}"
                f"{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"
                f" ORDER BY {', '.join(order)} LIMIT {self._chunk_rows}"
            )
            body = io.BytesIO()
            cursor.copy_expert(f"COPY ({query}) TO STDOUT WITH (FORMAT csv, FORCE_QUOTE *)", body)
        columns = _read(body.getvalue(), len(table.columns) + len(order))
        return columns[: len(table.columns)], columns[len(table.columns) :]

    def _events(
        self, table: Table, texts: list[pa.StringArray], keys: list[pa.StringArray]
    ) -> pa.RecordBatch:
        size = len(texts[0]) if texts else 0
        faults: dict[int, Mismatch] = {}
        struct = self._form.schema is not None
        after = table.structs(texts, faults) if struct else table.objects(texts)
        key = table.key_texts(texts)
        lsn, now = lsn_text(self.position.lsn), time.time_ns() // 1000
        places = pc.binary_join_element_wise(*keys, ",")
        changes = Changes(
            op=_all("r", size),
            table=_all(table.name, size),
            before=pa.nulls(size, after.type),
            after=after,
            unchanged=pa.nulls(size, pa.list_(pa.field("element", pa.string()))),
            position=_all(lsn, size),
            tx=pa.nulls(size, pa.string()),
            time=pa.array(np.full(size, now)).cast(TIME),
            id=pc.binary_join_element_wise(f"{lsn}:{table.name}:", places, ""),
            key=key,
            message=pa.nulls(size, MESSAGE),
            fault=_faults(table, texts, faults, size),
            xid=pa.nulls(size, pa.int64()),
            lsn=pa.array(np.full(size, self.position.lsn)),
        )
        return self._form.batch(changes)


def _places(info: TableInfo) -> list[str]:
    return ["tableoid", PLACE] if info.kind == "p" else [PLACE]


def _faults(
    table: Table, texts: list[pa.StringArray], faults: dict[int, Mismatch], size: int
) -> pa.StructArray:
    if not faults:
        return pa.nulls(size, FAULT)
    made = {row: fault_of(table, texts, row, fault) for row, fault in faults.items()}
    return pa.array([made.get(row) for row in range(size)], FAULT)


def _all(text: str, size: int) -> pa.StringArray:
    return pa.repeat(text, size)


def _read(body: bytes, width: int) -> list[pa.StringArray]:
    """The columns of a CSV text in which all values but null are quoted."""
    names = [str(i) for i in range(width)]
    if not body:
        return [pa.nulls(0, pa.string()) for _ in names]
    table = pa.csv.read_csv(
        pa.BufferReader(body),
        pa.csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=names),
        pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return [column.combine_chunks() for column in table.columns]
