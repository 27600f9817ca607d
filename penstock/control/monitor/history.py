"""Metrics of the last day, in memory: every two seconds for recent ones, every minute for older ones.

Only changes take memory: a thousand idle flows take next to none. The history begins when the server starts.
Moments without a sample are missing, or null between samples.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

STEP_MS, MINUTE_MS = 2_000, 60_000
FINE_MINUTES, MOST_MINUTES = 15, 24 * 60

MOST_ROWS = 300_000
"""Rows of a resolution, of all keys together: about 50 MB. Beyond, each key keeps fewer of its oldest."""

FEWEST_ROWS = 60
HOLE = 3
"""After this many steps without a sample the line is interrupted, since values in between are unknown."""

Values = Mapping[str, float | None]
NONE = math.nan


@dataclass(frozen=True)
class Series:
    """Numbers over time by column, for a chart."""

    step_ms: int
    at: list[int]
    series: dict[str, list[float | None]]


@dataclass
class _Track:
    """The values of one key: a row for each moment at which one of them changed."""

    columns: dict[str, int] = field(default_factory=dict)
    rows: deque[tuple[int, bytes]] = field(default_factory=deque)

    def add(self, slot: int, values: Values) -> None:
        for name in values:
            self.columns.setdefault(name, len(self.columns))
        row = array("d", [NONE]) * len(self.columns)
        for name, value in values.items():
            row[self.columns[name]] = NONE if value is None else value
        packed = row.tobytes()
        if not self.rows or self.rows[-1][1] != packed:
            self.rows.append((slot, packed))

    def forget(self, before: int, most: int) -> None:
        """Remove old rows. The row that is in force at `before` stays."""
        while len(self.rows) > 1 and (self.rows[1][0] <= before or len(self.rows) > most):
            self.rows.popleft()


class Ring:
    """One resolution: moments, and the values of each key at them."""

    def __init__(self, step_ms: int, length: int) -> None:
        self.step_ms, self.length = step_ms, length
        self.slots: deque[int] = deque(maxlen=length)
        self._tracks: dict[str, _Track] = {}

    def add(self, slot: int, values: Mapping[str, Values]) -> None:
        """Add the values of all keys at a slot after the last one. Keys without values are removed."""
        self.slots.append(slot)
        for key in self._tracks.keys() - values.keys():
            del self._tracks[key]
        most = max(FEWEST_ROWS, MOST_ROWS // max(1, len(values)))
        for key, named in values.items():
            track = self._tracks.setdefault(key, _Track())
            track.add(slot, named)
            track.forget(self.slots[0], most)

    def forget(self, key: str) -> None:
        """Clear a key."""
        self._tracks.pop(key, None)

    def read(self, key: str, since_slot: int) -> Series:
        """The values of a key from a moment on."""
        track = self._tracks.get(key) or _Track()
        at: list[int] = []
        columns: list[list[float | None]] = [[] for _ in track.columns]

        def put(slot: int, row: Collection[float]) -> None:
            at.append(slot * self.step_ms)
            values = list(row) + [NONE] * (len(columns) - len(row))
            for column, value in zip(columns, values, strict=True):
                column.append(None if math.isnan(value) else round(value, 3))

        rows, position, before = list(track.rows), -1, None
        current = array("d")
        for slot in self.slots:
            while position + 1 < len(rows) and rows[position + 1][0] <= slot:
                position += 1
                current = array("d", rows[position][1])
            if position < 0 or slot < since_slot:
                continue
            if before is not None and slot - before > HOLE:
                put(before + 1, ())
            put(slot, current)
            before = slot
        return Series(self.step_ms, at, dict(zip(track.columns, columns, strict=True)))


class History:
    """The history of all keys in both resolutions. One thread adds, any may read."""

    def __init__(self) -> None:
        self._fine = Ring(STEP_MS, FINE_MINUTES * MINUTE_MS // STEP_MS)
        self._coarse = Ring(MINUTE_MS, MOST_MINUTES)
        self._minute: int | None = None
        self._sums: dict[str, dict[str, tuple[float, int]]] = {}
        self._mutex = threading.Lock()

    def add(self, at_ms: int, values: Mapping[str, Values]) -> None:
        """Add the current values of all keys. A second sample for the same moment is ignored."""
        with self._mutex:
            slot, minute = at_ms // STEP_MS, at_ms // MINUTE_MS
            if self._fine.slots and slot <= self._fine.slots[-1]:
                return
            if self._minute is not None and minute > self._minute:
                self._coarse.add(self._minute, self._means(values.keys()))
                self._sums = {}
            self._minute = minute
            self._fine.add(slot, values)
            for key, named in values.items():
                sums = self._sums.setdefault(key, {})
                for name, value in named.items():
                    total, count = sums.get(name, (0.0, 0))
                    known = value is not None
                    sums[name] = (total + (value or 0.0), count + known)

    def forget(self, key: str) -> None:
        """Clear a key, for a new document of the same name."""
        with self._mutex:
            self._fine.forget(key)
            self._coarse.forget(key)
            self._sums.pop(key, None)

    def read(self, key: str, minutes: int) -> Series:
        """The last minutes of a key; in the fine resolution if it covers them."""
        with self._mutex:
            fine = self._fine
            young = len(fine.slots) < fine.length
            ring = fine if minutes <= FINE_MINUTES or young else self._coarse
            newest = ring.slots[-1] if ring.slots else 0
            return ring.read(key, newest - minutes * MINUTE_MS // ring.step_ms + 1)

    def _means(self, keys: Collection[str]) -> dict[str, dict[str, float | None]]:
        return {
            key: {name: total / count if count else None for name, (total, count) in sums.items()}
            for key, sums in self._sums.items()
            if key in keys
        }
