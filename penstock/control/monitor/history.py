"""Metrics of the last day: recent ones every two seconds, older ones every minute.

Metrics are read from memory, where only changes are stored: a thousand idle flows take almost no space. A
file retains them across restarts of the server. Times without a sample are missing, or null between samples.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.control.monitor.history_file import HistoryFile, Unsaved, Values

STEP_MS, MINUTE_MS = 2_000, 60_000
FINE_MINUTES, MOST_MINUTES = 15, 24 * 60

MOST_ROWS = 300_000
"""Maximum rows per resolution over all keys: about 50 MB. Beyond that, each key retains fewer old rows."""

FEWEST_ROWS = 60
HOLE = 3
"""Number of steps without a sample after which a chart has a gap, since the values between are unknown."""

SAVED_MS = 10_000
"""Interval at which new values are written to the file."""

NONE = math.nan


@dataclass(frozen=True)
class Series:
    """Metrics over time by column, for a chart."""

    step_ms: int
    at: list[int]
    series: dict[str, list[float | None]]


@dataclass
class _Track:
    """The values of one key: a row for each time at which a value changed."""

    columns: dict[str, int] = field(default_factory=dict)
    rows: deque[tuple[int, bytes]] = field(default_factory=deque)

    def add(self, slot: int, values: Values) -> bool:
        """Add values; false if they are unchanged."""
        for name in values:
            self.columns.setdefault(name, len(self.columns))
        row = array("d", [NONE]) * len(self.columns)
        for name, value in values.items():
            row[self.columns[name]] = NONE if value is None else value
        packed = row.tobytes()
        if self.rows and self.rows[-1][1] == packed:
            return False
        self.rows.append((slot, packed))
        return True

    def forget(self, before: int, most: int) -> None:
        """Remove old rows, but retain the row that is current at `before`."""
        while len(self.rows) > 1 and (self.rows[1][0] <= before or len(self.rows) > most):
            self.rows.popleft()


class Ring:
    """One resolution: sample times, and the values of each key at those times."""

    def __init__(self, step_ms: int, length: int) -> None:
        self.step_ms, self.length = step_ms, length
        self.slots: deque[int] = deque(maxlen=length)
        self._tracks: dict[str, _Track] = {}

    def restore(self, slots: Iterable[int], rows: Iterable[tuple[str, int, Values]]) -> None:
        """Load stored sample times and rows, ordered by time."""
        self.slots.extend(slots)
        for key, slot, values in rows:
            self._tracks.setdefault(key, _Track()).add(slot, values)

    def add(self, slot: int, values: Mapping[str, Values]) -> dict[str, Values]:
        """Add the values of all keys at a slot after the last one; returns the changed ones.

        Keys without values are removed.
        """
        self.slots.append(slot)
        changed = {}
        for key in self._tracks.keys() - values.keys():
            del self._tracks[key]
        most = max(FEWEST_ROWS, MOST_ROWS // max(1, len(values)))
        for key, named in values.items():
            track = self._tracks.setdefault(key, _Track())
            if track.add(slot, named):
                changed[key] = named
            track.forget(self.slots[0], most)
        return changed

    @property
    def keys(self) -> set[str]:
        """The keys that have values."""
        return set(self._tracks)

    def forget(self, key: str) -> None:
        """Clear a key."""
        self._tracks.pop(key, None)

    def read(self, key: str, since_slot: int, until_slot: float = math.inf) -> Series:
        """The values of a key from one slot to another."""
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
            if slot > until_slot:
                break
            if before is not None and slot - before > HOLE:
                put(before + 1, ())
            put(slot, current)
            before = slot
        return Series(self.step_ms, at, dict(zip(track.columns, columns, strict=True)))


class History:
    """The history of all keys in both resolutions. One thread writes, any thread may read."""

    def __init__(self, file: HistoryFile | None = None) -> None:
        self._fine = Ring(STEP_MS, FINE_MINUTES * MINUTE_MS // STEP_MS)
        self._coarse = Ring(MINUTE_MS, MOST_MINUTES)
        self._minute: int | None = None
        self._sums: dict[str, dict[str, tuple[float, int]]] = {}
        self._mutex = threading.Lock()
        self._file, self._unsaved, self._saved_ms = file, Unsaved(), 0
        self._known: set[str] = set()
        if file is not None:
            for ring in (self._fine, self._coarse):
                ring.restore(*file.load(ring.step_ms))
            self._known = self._fine.keys | self._coarse.keys
            self._minute = None

    def add(self, at_ms: int, values: Mapping[str, Values]) -> None:
        """Add the current values of all keys. A second sample for the same slot is ignored."""
        with self._mutex:
            slot, minute = at_ms // STEP_MS, at_ms // MINUTE_MS
            if self._fine.slots and slot <= self._fine.slots[-1]:
                return
            if self._minute is not None and minute > self._minute:
                self._note(self._coarse, self._minute, self._means(values.keys()))
                self._sums = {}
            self._minute = minute
            self._note(self._fine, slot, values)
            for key in self._known - values.keys():
                self._unsaved.forget(key)
            self._known = set(values)
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
            self._unsaved.forget(key)

    def save(self, at_ms: float = math.inf) -> None:
        """Write new values to the file, if the last write is at least `SAVED_MS` ago."""
        with self._mutex:
            if self._file is None or at_ms - self._saved_ms < SAVED_MS:
                return
            self._saved_ms = self._saved_ms if math.isinf(at_ms) else int(at_ms)
            unsaved, self._unsaved = self._unsaved, Unsaved()
            first = {ring.step_ms: ring.slots[0] for ring in (self._fine, self._coarse) if ring.slots}
        self._file.save(unsaved, first)

    def _note(self, ring: Ring, slot: int, values: Mapping[str, Values]) -> None:
        if ring.slots and slot <= ring.slots[-1]:  # the minute in which a server was restarted
            return
        changed = ring.add(slot, values)
        if self._file is not None:
            self._unsaved.add(ring.step_ms, slot, changed)

    def read(self, key: str, minutes: int) -> Series:
        """The last minutes of a key; in the fine resolution if it covers that time."""
        with self._mutex:
            newest = self._fine.slots[-1] if self._fine.slots else 0
            ring = self._ring((newest + 1) * STEP_MS - minutes * MINUTE_MS)
            newest = ring.slots[-1] if ring.slots else 0
            return ring.read(key, newest - minutes * MINUTE_MS // ring.step_ms + 1)

    def between(self, key: str, since_ms: int, until_ms: int) -> Series:
        """The values of a key between two times; in the fine resolution if it covers that range."""
        with self._mutex:
            ring = self._ring(since_ms)
            return ring.read(key, -(-since_ms // ring.step_ms), until_ms // ring.step_ms)

    def _ring(self, since_ms: int) -> Ring:
        """The finest resolution that starts before a time, or contains the whole history."""
        fine, coarse = self._fine, self._coarse
        if not fine.slots or not coarse.slots:
            return fine
        first_ms = fine.slots[0] * STEP_MS
        return fine if first_ms <= since_ms or coarse.slots[0] * MINUTE_MS > first_ms - MINUTE_MS else coarse

    def _means(self, keys: Collection[str]) -> dict[str, dict[str, float | None]]:
        return {
            key: {name: total / count if count else None for name, (total, count) in sums.items()}
            for key, sums in self._sums.items()
            if key in keys
        }
