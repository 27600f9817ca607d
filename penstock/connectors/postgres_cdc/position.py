"""Positions in the log of a PostgreSQL server, and in a snapshot of its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace


def lsn_text(lsn: int) -> str:
    """A position in the log as PostgreSQL writes it, such as 0/16B3748."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: str) -> int:
    """A position in the log, such as 0/16B3748, as a number."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


@dataclass(frozen=True)
class Position:
    """The progress of a flow: in the snapshot, in the log, and within a transaction that is read in part."""

    lsn: int
    """All transactions whose commit begins before this position are stored; the stream resumes here."""
    commit: int = 0
    """The commit of the transaction that is stored only in part; 0: none."""
    changes: int = 0
    """The number of changes of that transaction that are stored."""
    done: frozenset[str] = frozenset()
    """The tables whose snapshot is complete."""
    table: str | None = None
    """The table whose snapshot is in progress."""
    key: tuple[str, ...] = ()
    """The key of the last row of `table` that is stored."""
    origin: str = ""
    """The server, the database and the slot that the position belongs to."""

    def text(self) -> str:
        """The position as it is stored with the events."""
        made: dict[str, object] = {"lsn": lsn_text(self.lsn), "origin": self.origin}
        if self.commit:
            made |= {"commit": lsn_text(self.commit), "changes": self.changes}
        if self.done:
            made["done"] = sorted(self.done)
        if self.table is not None:
            made |= {"table": self.table, "key": list(self.key)}
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position from its stored text."""
        found = json.loads(text)
        return cls(
            lsn_number(found["lsn"]),
            lsn_number(found.get("commit", "0/0")),
            found.get("changes", 0),
            frozenset(found.get("done", ())),
            found.get("table"),
            tuple(found.get("key", ())),
            found.get("origin", ""),
        )

    def after(self, lsn: int) -> Position:
        """The position after a complete transaction, or a message outside of one."""
        return replace(self, lsn=lsn, commit=0, changes=0)

    def within(self, commit: int, changes: int) -> Position:
        """The position after a number of changes of a transaction that has not ended."""
        return replace(self, commit=commit, changes=changes)

    def reading(self, table: str, key: tuple[str, ...]) -> Position:
        """The position after a row of a snapshot."""
        return replace(self, table=table, key=key)

    def read(self, table: str) -> Position:
        """The position after the snapshot of a table."""
        return replace(self, done=self.done | {table}, table=None, key=())
