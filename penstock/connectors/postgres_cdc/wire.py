"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1.

A change is not decoded until its batch is complete. The values of all changes of a table are then located
with a few array operations for each column, not value by value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

BEGIN, COMMIT, RELATION, TYPE, ORIGIN, MESSAGE, TRUNCATE = b"BCRYOMT"
INSERT, UPDATE, DELETE = b"IUD"
CHANGES = frozenset(b"IUD")
OLD_KEY, OLD_ROW, NEW_ROW = b"KON"
TEXT, UNCHANGED = b"tu"

EPOCH_US = 946_684_800_000_000
"""PostgreSQL's epoch, 2000-01-01, in microseconds since 1970."""

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Begin:
    """The start of a transaction. Its changes follow, and then its commit."""

    commit: int
    """The position of its commit."""
    time_us: int
    xid: int


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: int
    """The OID of its type."""
    modifier: int = -1
    """The modifier of its type, such as the digits of a numeric; -1: none."""
    identity: bool = False
    """Whether it is part of the replica identity."""


@dataclass(frozen=True)
class Relation:
    """A table as it was defined when the changes that follow were made."""

    id: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    identity: str = "d"
    """Its replica identity: d (primary key), f (the whole row), i (an index) or n (none)."""

    @property
    def table(self) -> str:
        """The name of the table with its schema."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Message:
    """A message that was written to the log by `pg_logical_emit_message`."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


def begin_of(payload: bytes) -> Begin:
    """The start of a transaction."""
    commit, time_us, xid = struct.unpack_from(">QqI", payload, 1)
    return Begin(commit, time_us + EPOCH_US, xid)


def commit_end(payload: bytes) -> int:
    """The position after the commit of a transaction."""
    (end,) = struct.unpack_from(">Q", payload, 10)
    return int(end)


def relation_of(payload: bytes) -> Relation:
    """The description of a table."""
    (number,) = struct.unpack_from(">I", payload, 1)
    schema, at = _string(payload, 5)
    name, at = _string(payload, at)
    identity = chr(payload[at])
    (count,) = struct.unpack_from(">H", payload, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = payload[at]
        column, at = _string(payload, at + 1)
        kind, modifier = struct.unpack_from(">Ii", payload, at)
        columns.append(Column(column, kind, modifier, bool(flags & 1)))
        at += 8
    return Relation(number, schema or "pg_catalog", name, tuple(columns), identity)


def truncated(payload: bytes) -> list[int]:
    """The ids of the tables that were truncated."""
    (count,) = struct.unpack_from(">I", payload, 1)
    return list(struct.unpack_from(f">{count}I", payload, 6))


def message_of(payload: bytes) -> Message:
    """A message, with its content."""
    flags, lsn = struct.unpack_from(">BQ", payload, 1)
    prefix, at = _string(payload, 10)
    (length,) = struct.unpack_from(">I", payload, at)
    return Message(bool(flags & 1), lsn, prefix, payload[at + 4 : at + 4 + length])


def _string(payload: bytes, at: int) -> tuple[str, int]:
    end = payload.index(0, at)
    return payload[at:end].decode(), end + 1


class Payloads:
    """The payloads of changes in one buffer."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        # Padding: if the last value is null, the four bytes after it are read as a length, and not used.
        self.data = np.frombuffer(b"".join((*payloads, bytes(8))), np.uint8)
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self.starts = np.cumsum(lengths) - lengths

    @property
    def kinds(self) -> Bytes:
        """The kind of each change."""
        kinds: Bytes = self.data[self.starts]
        return kinds

    @property
    def relations(self) -> Numbers:
        """The id of each change's table."""
        return self.number(self.starts + 1)

    def number(self, at: Numbers) -> Numbers:
        """The four bytes at each offset as a number."""
        data = self.data
        made: Numbers = (
            (data[at].astype(np.int64) << 24)
            | (data[at + 1].astype(np.int64) << 16)
            | (data[at + 2].astype(np.int64) << 8)
            | data[at + 3]
        )
        return made


@dataclass(frozen=True)
class Cells:
    """The location of a column's values in the buffer, for several rows."""

    kinds: Bytes
    starts: Numbers
    lengths: Numbers

    @property
    def unchanged(self) -> Mask:
        """The rows whose value was not sent because it is large and has not changed."""
        unchanged: Mask = self.kinds == UNCHANGED
        return unchanged

    def texts(self, data: Bytes) -> pa.StringArray:
        """The values in PostgreSQL's text format; unchanged values are null, too."""
        offsets = np.zeros(len(self.lengths) + 1, np.int32)
        np.cumsum(self.lengths, out=offsets[1:])
        places = np.repeat(self.starts - offsets[:-1], self.lengths)
        places += np.arange(offsets[-1])
        present = self.kinds == TEXT
        valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
        return pa.StringArray.from_buffers(
            len(self.lengths), pa.py_buffer(offsets), pa.py_buffer(data[places]), valid
        )

    def filled(self, rows: Numbers, other: Cells) -> Cells:
        """These values, with unchanged values of `rows` taken from `other`, which has one for each row."""
        missing = self.unchanged[rows]
        if not missing.any():
            return self
        kinds, starts, lengths = self.kinds.copy(), self.starts.copy(), self.lengths.copy()
        at = rows[missing]
        kinds[at], starts[at] = other.kinds[missing], other.starts[missing]
        lengths[at] = other.lengths[missing]
        return Cells(kinds, starts, lengths)


def rows_at(payloads: Payloads, at: Numbers, columns: int) -> tuple[list[Cells], Numbers]:
    """The columns of the rows that begin at these offsets, and the offset after each row."""
    data, found = payloads.data, []
    at = at + 2  # skip the number of columns
    for _ in range(columns):
        kinds = data[at]
        present = kinds == TEXT
        lengths = np.where(present, payloads.number(at + 1), 0)
        found.append(Cells(kinds, at + 5, lengths))
        at = np.where(present, at + 5 + lengths, at + 1)
    return found, at
