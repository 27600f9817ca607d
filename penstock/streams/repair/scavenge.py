"""Finding rows that SQLite can no longer reach, in the raw pages of a damaged database.

The checksum of a row shows whether it is valid, and an offset is never assigned twice: a row found on a freed
page is the same row. See "B-tree Pages" and "Record Format" of SQLite's file format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from penstock.streams.sqlite.rows import PAGE, Row

LEAF = 13
"""The first byte of a page that holds rows."""

FIELDS = 7
_MOST_LOCAL = PAGE - 35
_LEAST_LOCAL = (PAGE - 12) * 32 // 255 - 23
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
"""The length of a number in bytes, by its type code."""

Value = int | bytes | None


def scavenge(path: Path) -> Iterator[Row]:
    """Every complete row of events, in the order of the pages. No process may have the database open."""
    with path.open("rb") as file:
        pages = path.stat().st_size // PAGE
        for number in range(1, pages + 1):
            page = _page(file, number)
            if page[:1] != bytes([LEAF]):
                continue
            for cell in range(struct.unpack_from(">H", page, 3)[0]):
                try:
                    row = _row(file, page, struct.unpack_from(">H", page, 8 + 2 * cell)[0], pages)
                except (IndexError, struct.error, ValueError):
                    continue  # damaged
                if row is not None and row.sound:
                    yield row


def _page(file: IO[bytes], number: int) -> bytes:
    file.seek((number - 1) * PAGE)
    return file.read(PAGE)


def _row(file: IO[bytes], page: bytes, at: int, pages: int) -> Row | None:
    """The row in a cell, if it has the form of an event row."""
    size, at = _varint(page, at)
    base, at = _varint(page, at)
    local = size
    if size > _MOST_LOCAL:
        local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % (PAGE - 4)
        local = local if local <= _MOST_LOCAL else _LEAST_LOCAL
    if size > pages * PAGE or at + local > PAGE:
        return None
    parts, got = [page[at : at + local]], local
    following = struct.unpack_from(">I", page, at + local)[0] if local < size else 0
    while got < size:
        if not 0 < following <= pages:
            return None
        overflow = _page(file, following)
        following = struct.unpack_from(">I", overflow)[0]
        parts.append(overflow[4 : 4 + size - got])
        got += len(parts[-1])
    values = _values(b"".join(parts))
    if len(values) != FIELDS or not all(isinstance(value, int) for value in values[1:5]):
        return None
    return Row(base, *values[1:])  # type: ignore[arg-type]  # its checksum is verified next


def _values(record: bytes) -> list[Value]:
    """The fields of a record."""
    end, at = _varint(record, 0)
    kinds: list[int] = []
    while at < end and len(kinds) <= FIELDS:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values: list[Value] = []
    at = end
    for kind in kinds:
        size = (kind - 12) // 2 if kind >= 12 else _SIZES.get(kind, 0)
        data, at = record[at : at + size], at + size
        if kind >= 12:
            values.append(data)
        elif kind in (8, 9):
            values.append(kind - 8)
        else:
            values.append(int.from_bytes(data, "big", signed=True) if kind else None)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer of SQLite, and the position after it."""
    value = 0
    for i in range(9):
        byte = data[at + i]
        if i == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, at + i + 1
