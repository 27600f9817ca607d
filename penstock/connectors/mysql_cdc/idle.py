"""The place that a flow has reached while none of its tables changed.

Positions are stored with events. Where only other tables change for days, the last stored position would be
purged from the log, and a restart would fail. So the place is kept in a file of the flow, too, and used while
the last stored position is still the one it was reached from.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from penstock.connectors.mysql_cdc.position import Position
    from penstock.frames.site import Site

NAME = "mysql_cdc.json"
EVERY_S = 10.0
"""Seconds between two writes."""


class IdlePlace:
    """The file, and the position that was stored last."""

    def __init__(self, site: Site) -> None:
        self._path: Path | None = None if site.state is None else site.state / NAME
        self._stored: str | None = None
        self._written = ""
        self._at = 0.0

    def after(self, stored: str | None, *, snapshot: bool) -> str | None:
        """The position to go on from, by the one that was stored last.

        A flow that has stored none, and takes a snapshot, begins with that.
        """
        self._stored = stored
        if self._path is None or not self._path.exists() or (stored is None and snapshot):
            return stored
        with contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError):  # cut off by a crash
            found = orjson.loads(self._path.read_bytes())
            if found["after"] == stored:
                return str(found["position"])
        return stored

    def appended(self, position: str) -> None:
        """Note the position of events that are about to be stored."""
        self._stored = position

    def note(self, between: bool, now: Callable[[], Position]) -> None:
        """Keep the current position, while there are no events. Whoever calls it has stored the last ones."""
        if self._path is None or not between or time.monotonic() < self._at + EVERY_S:
            return
        self._at = time.monotonic()
        text = now().text()
        if text == self._written:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_bytes(orjson.dumps({"after": self._stored, "position": text}))
        part.replace(self._path)
        self._written = text
