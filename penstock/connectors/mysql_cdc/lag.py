"""The backlog of a reader of the log, which is known in bytes but not in events."""

from __future__ import annotations

from penstock.connectors.mysql_cdc.catalog import Catalog
from penstock.connectors.mysql_cdc.position import Place


class Lag:
    """Estimates the backlog in events from the backlog in bytes and the average size of past events."""

    def __init__(self) -> None:
        self._events, self._bytes = 1.0, 200.0

    def count(self, events: int, size: int) -> None:
        """Count the events and the bytes of a part."""
        self._events, self._bytes = self._events * 0.9 + events, self._bytes * 0.9 + size

    def events(self, catalog: Catalog, place: Place) -> int:
        """The estimated events between a place and the end of the log; 0 if there are no bytes between."""
        file, pos = catalog.status()
        if file == place.file:
            behind = pos - place.pos
        else:
            logs = [(Place(name, size), size) for name, size in catalog.logs()]
            behind = sum(size for each, size in logs if each.order[0] > place.order[0])
            behind += sum(size - place.pos for each, size in logs if each.file == place.file)
        return 0 if behind <= 0 else max(1, int(behind * self._events / self._bytes))
