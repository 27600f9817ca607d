"""The place that a flow reaches in the log while none of its tables change.

Positions are stored with events. If only other tables change for days, the log at the last stored position
would be purged, and a restart would fail. The place is therefore also saved in a file of the flow, and used
as long as the last stored position is the one from which the place was reached.
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
"""Seconds between writes of the file."""


class IdlePlace:
    """The file with the place of an idle flow, and the last position stored with events."""

    def __init__(self, site: Site) -> None:
        self._path: Path | None = None if site.state is None else site.state / NAME
        self._stored: str | None = None
        self._written = ""
        self._at = 0.0

    def after(self, stored: str | None, *, snapshot: bool) -> str | None:
        """The position to resume from, given the last position stored with events.

        A flow that has no stored position and takes a snapshot starts with the snapshot.
        """
        self._stored = stored
        if self._path is None or not self._path.exists() or (stored is None and snapshot):
            return stored
        with contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError):  # cut by a crash
            found = orjson.loads(self._path.read_bytes())
            if found["after"] == stored:
                return str(found["position"])
        return stored

    def appended(self, position: str) -> None:
        """Record the position of events that are about to be stored."""
        self._stored = position

    def note(self, between: bool, now: Callable[[], Position]) -> None:
        """Save the current position while there are no events. The caller must have stored all events."""
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
