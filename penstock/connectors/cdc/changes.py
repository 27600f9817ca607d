"""Table changes in the order of the database, stored column by column, with their keys and ids.

All change data capture sources follow the same rules, so that one consumer can read them all:

- `op` is `c` (created), `u` (updated), `d` (deleted), `r` (read by a snapshot) or `t` (all rows of the
  table were removed). An update that changes the key of a row is a `d` of the old key and a `c` of the new
  one, so that a consumer that applies events by key, in order, ends up with the rows of the table.
- The key of an event is the primary key as a JSON object, in the order of the key; `t` has none.
- The id of an event is the same each time the event is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

CREATED, UPDATED, DELETED, READ, TRUNCATED = "c", "u", "d", "r", "t"

Image = bytes | tuple[Any, ...] | None
"""A row before or after a change: JSON text, or the values of its columns; None: no row."""


@dataclass(slots=True)
class Changes:
    """Changes collected for a record batch. All lists have the same length."""

    op: list[str] = field(default_factory=list)
    table: list[str] = field(default_factory=list)
    before: list[Image] = field(default_factory=list)
    after: list[Image] = field(default_factory=list)
    position: list[str] = field(default_factory=list)
    tx: list[str | None] = field(default_factory=list)
    time_us: list[int] = field(default_factory=list)
    """Microseconds since 1970 in UTC."""
    id: list[str] = field(default_factory=list)
    key: list[bytes | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.op)


def key_of(names: Sequence[str], values: Sequence[Any]) -> bytes:
    """The key of an event: the primary key as a JSON object. The values must be plain JSON values."""
    return orjson.dumps(dict(zip(names, values, strict=True)))


def change_id(tx: str, table: str, number: int) -> str:
    """The id of a change: its transaction, its table, and its number among that table's changes in it.

    The id depends neither on which other tables are read nor on how the server splits its log.
    """
    return f"{tx}/{table}/{number}"


def snapshot_id(begun: str, table: str, key: bytes) -> str:
    """The id of a row read by a snapshot: the start position of the snapshot, the table, and the key."""
    return f"{begun}/{table}/{key.decode()}"
