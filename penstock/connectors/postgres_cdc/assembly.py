"""Converts received changes to events, one table of a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.postgres_cdc.events import FAULT, TIME, UNAVAILABLE, Changes, Form, fault_of, split
from penstock.connectors.postgres_cdc.events import MESSAGE as MESSAGE_TYPE
from penstock.connectors.postgres_cdc.position import lsn_text
from penstock.connectors.postgres_cdc.tables import Table
from penstock.connectors.postgres_cdc.wire import (
    DELETE,
    INSERT,
    MESSAGE,
    NEW_ROW,
    TRUNCATE,
    UPDATE,
    Begin,
    Bytes,
    Cells,
    Mask,
    Numbers,
    Payloads,
    message_of,
    rows_at,
)
from penstock.streams.committer import Marks
from penstock.streams.decode.results import Mismatch

OPS = {INSERT: "c", UPDATE: "u", DELETE: "d", TRUNCATE: "t", MESSAGE: "m"}


@dataclass(frozen=True)
class Run:
    """Consecutive changes of one transaction in a batch, or one message outside of a transaction."""

    first: int
    """The index of the first change in the batch."""
    begin: Begin
    number: int
    """The number of the first change in its transaction."""
    ended: bool = True
    """Whether the transaction ends with these changes."""

    @property
    def id(self) -> str | None:
        """The id of the transaction; None for a message outside of a transaction."""
        return f"{self.begin.xid}@{lsn_text(self.begin.commit)}" if self.begin.xid else None


@dataclass(frozen=True)
class Assembled:
    """The events of a batch, and their transactions."""

    events: pa.RecordBatch
    tx: Marks


@dataclass
class Batch:
    """Undecoded changes in the order in which they were received."""

    payloads: list[bytes] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def assembled(self, form: Form, tables: Mapping[int, Table]) -> Assembled:
        """The changes as events; changes of tables that are not in `tables` are omitted."""
        return _Assembly(self, form, tables).made()


class _Assembly:
    """Builds the columns of a batch table by table."""

    def __init__(self, batch: Batch, form: Form, tables: Mapping[int, Table]) -> None:
        self.batch, self.form, self.tables = batch, form, tables
        self.payloads = Payloads(batch.payloads)
        self.size = len(batch.payloads)
        self.struct = form.struct
        self.row = pa.string() if self.struct is None else self.struct
        self.names: list[str | None] = []
        self.name_at = np.zeros(self.size, np.int64)
        self.before = _Pieces(self.size, self.row)
        self.after = _Pieces(self.size, self.row)
        self.key = _Pieces(self.size, pa.string())
        self.unchanged = _Pieces(self.size, pa.list_(pa.field("element", pa.string())))
        self.message = _Pieces(self.size, MESSAGE_TYPE)
        self.keep = np.ones(self.size, np.bool_)
        self.moved = np.zeros(self.size, np.bool_)  # updates that changed the key of a row
        self.old_key = _Pieces(self.size, pa.string())
        self.faults: dict[int, dict[str, str]] = {}

    def made(self) -> Assembled:
        kinds = self.payloads.kinds
        relations = self.payloads.relations
        messages = kinds == MESSAGE
        if messages.any():
            self._add_messages(np.flatnonzero(messages))
        for number in np.unique(relations[~messages]):
            at = np.flatnonzero((relations == number) & ~messages)
            table = self.tables.get(int(number))
            if table is None:
                self.keep[at] = False
            else:
                self._add(table, at, kinds[at])
        changes, keep = self._changes(kinds), self.keep
        if self.moved.any():
            changes = split(changes, self.moved, self.old_key.made())
            keep = np.repeat(keep, 1 + self.moved)
        events = self.form.batch(changes)
        return Assembled(events if keep.all() else events.filter(pa.array(keep)), self._marks())

    def _add(self, table: Table, at: Numbers, kinds: Bytes) -> None:
        """Add the changes of one table."""
        self.name_at[at] = len(self.names)
        self.names.append(table.name)
        rows, width = np.flatnonzero(kinds != TRUNCATE), len(table.relation.columns)
        at, kinds = at[rows], kinds[rows]
        if not len(at):
            return
        data, starts = self.payloads.data, self.payloads.starts[at] + 5
        has_old = data[starts] != NEW_ROW
        old = np.flatnonzero(has_old)
        old_cells, ends = rows_at(self.payloads, starts[old] + 1, width) if len(old) else ([], starts[:0])
        starts[old] = ends
        new = np.flatnonzero(kinds != DELETE)
        cells, _ = rows_at(self.payloads, starts[new] + 1, width) if len(new) else ([], starts[:0])
        deleted, updated = np.flatnonzero(kinds[old] == DELETE), np.flatnonzero(kinds[old] != DELETE)
        both = np.flatnonzero(has_old[new])  # the new rows of updates that have an old row
        if table.relation.identity == "f" and len(updated):
            cells = [
                cell.filled(both, _only(other, updated)) for cell, other in zip(cells, old_cells, strict=True)
            ]
        if len(old):
            texts = [cell.texts(data) for cell in old_cells]
            self._add_rows(self.before, table, at[old], texts, columns=table.identity)
            old_keys = table.key_texts(texts)
            self.key.add(at[old][deleted], old_keys.take(pa.array(deleted)))
        if len(new):
            texts = [cell.texts(data) for cell in cells]
            missing = {i: cell.unchanged for i, cell in enumerate(cells) if cell.unchanged.any()}
            self._add_rows(self.after, table, at[new], texts, missing=missing)
            keys = table.key_texts(texts)
            self.key.add(at[new], keys)
            if len(updated):
                old_keys = old_keys.take(pa.array(updated))
                same = pc.equal(old_keys, keys.take(pa.array(both))).fill_null(True)
                self.moved[at[old][updated]] = ~same.to_numpy(zero_copy_only=False)
                self.old_key.add(at[old][updated], old_keys)
            if missing:
                self._add_unchanged(table, at[new], missing)

    def _add_rows(
        self,
        pieces: _Pieces,
        table: Table,
        at: Numbers,
        texts: list[pa.StringArray],
        *,
        columns: tuple[int, ...] | None = None,
        missing: Mapping[int, Mask] | None = None,
    ) -> None:
        if self.struct is None:
            pieces.add(at, table.objects(texts, columns, _marker(missing, self.form)))
            return
        faults: dict[int, Mismatch] = {}
        pieces.add(at, table.structs(texts, faults))
        for row, fault in faults.items():
            self.faults.setdefault(int(at[row]), fault_of(table, texts, row, fault))

    def _add_unchanged(self, table: Table, at: Numbers, missing: Mapping[int, Mask]) -> None:
        names = table.columns
        rows = np.flatnonzero(np.logical_or.reduce(list(missing.values())))
        lists = [[names[i] for i, mask in missing.items() if mask[row]] for row in rows]
        self.unchanged.add(at[rows], pa.array(lists, self.unchanged.type))

    def _add_messages(self, at: Numbers) -> None:
        self.name_at[at] = len(self.names)
        self.names.append(None)
        found = [message_of(self.batch.payloads[i]) for i in at]
        rows = [{"prefix": each.prefix, "content": each.content} for each in found]
        self.message.add(at, pa.array(rows, MESSAGE_TYPE))

    def _changes(self, kinds: Bytes) -> Changes:
        runs = self.batch.runs
        firsts = np.array([run.first for run in runs], np.int64)
        sizes = np.diff(np.append(firsts, self.size))
        numbers = np.arange(self.size) - np.repeat(firsts, sizes)
        numbers += np.repeat(np.array([run.number for run in runs], np.int64), sizes)
        run_at = pa.array(np.repeat(np.arange(len(runs)), sizes))

        position = pa.array([lsn_text(run.begin.commit) for run in runs], pa.string()).take(run_at)
        ops = pa.array(list(OPS.values()), pa.string())
        return Changes(
            op=ops.take(pc.index_in(pa.array(kinds), pa.array(list(OPS), pa.uint8()))),
            table=pa.array(self.names, pa.string()).take(pa.array(self.name_at)),
            before=self.before.made(),
            after=self.after.made(),
            unchanged=self.unchanged.made(),
            position=position,
            tx=pa.array([run.id for run in runs], pa.string()).take(run_at),
            time=pa.array([run.begin.time_us for run in runs], TIME).take(run_at),
            id=pc.binary_join_element_wise(position, pa.array(numbers).cast(pa.string()), ":"),
            key=self.key.made(),
            message=self.message.made(),
            fault=self._fault(),
            xid=pa.array([run.begin.xid or None for run in runs], pa.int64()).take(run_at),
            lsn=pa.array([run.begin.commit for run in runs], pa.int64()).take(run_at),
        )

    def _fault(self) -> pa.StructArray:
        if not self.faults:
            return pa.nulls(self.size, FAULT)
        return pa.array([self.faults.get(i) for i in range(self.size)], FAULT)

    def _marks(self) -> Marks:
        """The transactions, by the indexes of the retained events."""
        before = np.concatenate(([0], np.cumsum(self.keep * (1 + self.moved))))
        runs, marks = self.batch.runs, []
        for i, run in enumerate(runs):
            end = runs[i + 1].first if i + 1 < len(runs) else self.size
            first, following = int(before[run.first]), int(before[end])
            # A partially appended transaction needs an end, even if none of its events is left.
            if run.id is not None and (first < following or run.number):
                marks.append((first, following, run.id, run.ended))
        return tuple(marks)


class _Pieces:
    """A column of a batch, built from the values of some of its events at a time."""

    def __init__(self, size: int, type_: pa.DataType) -> None:
        self.size, self.type = size, type_
        self.at: list[Numbers] = []
        self.arrays: list[pa.Array] = []

    def add(self, at: Numbers, array: pa.Array) -> None:
        if len(at):
            self.at.append(at)
            self.arrays.append(array)

    def made(self) -> pa.Array:
        """The column; events without a value have null."""
        if not self.arrays:
            return pa.nulls(self.size, self.type)
        if len(self.arrays) == 1 and len(self.arrays[0]) == self.size:
            return self.arrays[0]
        places = np.full(self.size, -1, np.int64)
        at = np.concatenate(self.at)
        places[at] = np.arange(len(at))
        return pa.concat_arrays(self.arrays).take(pa.array(places, mask=places < 0))


def _only(cells: Cells, rows: Numbers) -> Cells:
    return Cells(cells.kinds[rows], cells.starts[rows], cells.lengths[rows])


def _marker(missing: Mapping[int, Mask] | None, form: Form) -> Callable[[int], pa.Array] | None:
    """The JSON placeholders for values that were not sent; None if there are none."""
    if not missing or form.envelope != "debezium":
        return None
    nothing = pa.scalar(None, pa.string())
    marks = {i: pc.if_else(pa.array(mask), UNAVAILABLE, nothing) for i, mask in missing.items()}
    return marks.get
