"""Places in a server's log, and the position of a flow: its place and the progress of its snapshot."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

_FILE = re.compile(r"^(.+)\.([0-9]+)$")


@dataclass(frozen=True)
class Place:
    """A place between two transactions in a server's log."""

    file: str
    pos: int
    gtid: str | None = None
    """The GTID set of all transactions before the place, as the server writes it; None: no GTIDs."""

    def reaches(self, other: Place) -> bool:
        """Whether this place is at or after another place in the same log."""
        return self.order >= other.order

    @property
    def order(self) -> tuple[int, int]:
        """The sort key of places in a log."""
        found = _FILE.match(self.file)
        return (int(found[2]) if found else 0, self.pos)

    def __str__(self) -> str:
        return f"{self.file}:{self.pos}"


@dataclass(frozen=True)
class Progress:
    """The progress of a snapshot."""

    begun: str
    """The place in the log where the snapshot began."""
    done: frozenset[str] = frozenset()
    """The tables that were read completely."""
    table: str | None = None
    """The table that is being read."""
    after: tuple[str, ...] = ()
    """The key of the last row that was read, each part as the text of a literal."""


@dataclass(frozen=True)
class Position:
    """The position of a flow: all that it needs to resume."""

    place: Place
    rows: dict[str, int] = field(default_factory=dict)
    """Number of changes already read from the transaction after the place, by table."""
    snapshot: Progress | None = None
    """None: no snapshot."""

    def text(self) -> str:
        """The position as it is stored with the events."""
        made: dict[str, Any] = {"file": self.place.file, "pos": self.place.pos}
        if self.place.gtid is not None:
            made["gtid"] = self.place.gtid
        if self.rows:
            made["rows"] = self.rows
        if self.snapshot is not None:
            given = self.snapshot
            made["snapshot"] = {
                "begun": given.begun, "done": sorted(given.done), "table": given.table, "after": given.after,
            }  # fmt: skip
        return orjson.dumps(made).decode()

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position from its stored text."""
        found = orjson.loads(text)
        snapshot = None
        if (given := found.get("snapshot")) is not None:
            snapshot = Progress(
                given["begun"], frozenset(given["done"]), given["table"], tuple(given["after"])
            )
        place = Place(found["file"], found["pos"], found.get("gtid"))
        return cls(place, found.get("rows", {}), snapshot)

    def at(self, place: Place) -> Position:
        """The position at another place, with no changes read from the next transaction."""
        return replace(self, place=place, rows={})


class GtidSet:
    """The GTIDs of transactions that were read: on MariaDB the last of each domain, on MySQL all."""

    def __init__(self, text: str | None) -> None:
        self.domains: dict[str, str] = {}
        self.ranges: dict[str, list[list[int]]] = {}
        for part in (text or "").replace("\n", "").split(","):
            part = part.strip()
            if ":" in part:
                server, *ranges = part.split(":")
                self.ranges[server.lower()] = [_range(each) for each in ranges]
            elif part:
                self.domains[part.partition("-")[0]] = part

    def add(self, gtid: str) -> None:
        """Add the GTID of a transaction."""
        if ":" not in gtid:
            self.domains[gtid.partition("-")[0]] = gtid
            return
        server, _, number = gtid.partition(":")
        n, known = int(number), self.ranges.setdefault(server, [])
        for each in reversed(known):
            if each[0] <= n <= each[1]:
                return
            if n == each[1] + 1:
                each[1] = n
                break
        else:
            known.append([n, n])
        if len(known) > 1:
            self.ranges[server] = _joined(known)

    def __str__(self) -> str:
        ranges = (":".join([server, *map(_text, known)]) for server, known in self.ranges.items())
        return ",".join([*self.domains.values(), *ranges])


def _range(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return [int(first), int(last or first)]


def _text(given: list[int]) -> str:
    return str(given[0]) if given[0] == given[1] else f"{given[0]}-{given[1]}"


def _joined(ranges: list[list[int]]) -> list[list[int]]:
    found: list[list[int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(last, found[-1][1])
        else:
            found.append([first, last])
    return found
