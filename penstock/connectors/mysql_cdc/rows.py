"""Rows of WRITE_ROWS, UPDATE_ROWS and DELETE_ROWS events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from struct import Struct
from typing import Any

from penstock.connectors.mysql_cdc.table_map import Table, packed
from penstock.connectors.mysql_cdc.values import Reader
from penstock.errors import Invalid, Problem

Row = tuple[Any, ...]
ReadRow = Callable[[bytes, int], tuple[Row, int]]


class PartialRow(Exception):
    """The log contains only some columns of a row."""


def row_reader(table: Table) -> ReadRow:
    """A function that reads a whole row of a table.

    Most rows have no NULL and are read by code generated for the table: a loop over its columns takes 50%
    longer.
    """
    readers = tuple(column.read for column in table.columns)
    careful, size = _careful(readers), (len(readers) + 7) // 8
    known: dict[str, Any] = {"careful": careful, "no_nulls": bytes(size)}
    lines = ["def read(data, start):", f" at = start + {size}"]
    lines += [" if data[start:at] != no_nulls:", "  return careful(data, start)", " try:"]
    i = 0
    while i < len(readers):
        forms, inline = _numbers(readers[i:]), getattr(readers[i], "inline", None)
        if forms:
            numbers = Struct("<" + forms)
            known[f"read{i}"] = numbers.unpack_from
            names = "".join(f"v{i + k}, " for k in range(len(forms)))
            lines += [f"  {names}= read{i}(data, at)", f"  at += {numbers.size}"]
        elif inline is not None:
            lines += ["  end = at + 1 + data[at]", f"  v{i} = data[at + 1:end].decode({inline.codec!r})"]
            lines += ["  at = end"]
        else:
            known[f"read{i}"] = readers[i]
            lines += [f"  v{i}, at = read{i}(data, at)"]
        i += len(forms) or 1
    row = "".join(f"v{i}, " for i in range(len(readers)))
    lines += [f"  return ({row}), at", " except UnicodeDecodeError:", "  return careful(data, start)"]
    exec("\n".join(lines), known)
    made: ReadRow = known["read"]
    return made


def _numbers(readers: Sequence[Reader]) -> str:
    """The `struct` format characters of the next columns, as long as they are numbers."""
    inline: Iterator[Any] = (getattr(reader, "inline", None) for reader in readers)
    return "".join(each.form for each in takewhile(lambda each: each is not None and each.form, inline))


def _careful(readers: Sequence[Reader]) -> ReadRow:
    """A function that reads a row that may have NULL, column by column."""
    size = (len(readers) + 7) // 8
    masks = tuple((reader, 1 << i) for i, reader in enumerate(readers))

    def read(data: bytes, at: int) -> tuple[Row, int]:
        nulls = int.from_bytes(data[at : at + size], "little")
        at += size
        row: list[Any] = []
        for reader, mask in masks:
            if nulls & mask:
                row.append(None)
            else:
                value, at = reader(data, at)
                row.append(value)
        return tuple(row), at

    return read


def rows_of(data: bytes, at: int, count: int, read: ReadRow, *, update: bool) -> list[Row]:
    """The rows of an event, from the offset after its header; for an update, pairs of old and new rows.

    Raises `PartialRow` if the log doesn't contain all columns of the rows.
    """
    width, at = packed(data, at)
    bitmap = (width + 7) // 8
    for _ in range(2 if update else 1):
        present = int.from_bytes(data[at : at + bitmap], "little")
        if width != count or present & (1 << width) - 1 != (1 << width) - 1:
            raise PartialRow
        at += bitmap
    rows, end = [], len(data)
    while at < end:
        row, at = read(data, at)
        rows.append(row)
    return rows


def partial_row(table: str, where: str) -> Invalid:
    """The error for an event without complete rows."""
    return Invalid(
        Problem(
            code="partial_row_image",
            message=f"the change of '{table}' at {where} doesn't contain all columns of the row",
            path="tables",
            hint="set binlog_row_image = FULL, also in the sessions that write, and start over",
        )
    )
