"""The numbers of streams, a few at a time: thousands of them must not keep a machine busy."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import structlog

from penstock.control.history import Values
from penstock.control.layout import Layout, key_of
from penstock.control.meters import Growth, Meter
from penstock.control.reading import Stats, stats_of
from penstock.control.readings import ReaderPulse, StreamPulse

log = structlog.get_logger()

BUDGET_S = 0.25
"""How long a look at streams may take. The others have their turn at the next one."""

DROPS = {
    "buffer_full": "dropped_buffer_full",
    "timeout": "dropped_timeout",
    "no_reader": "dropped_no_reader",
    "unread": "evicted_unread",
    "damaged": "damaged",
    "restart": "lost_restart",
}
"""Counters of events that nobody will read, by reason. What retention removes in its time is none of them."""


class _Meters:
    def __init__(self) -> None:
        self.events = Meter()
        self.drops = {reason: Meter() for reason in DROPS}
        self.readers: dict[str, Meter] = {}
        self.lost = Growth()


class StreamSampler:
    """Looks at streams. Used by one thread."""

    def __init__(self) -> None:
        self._found: dict[str, StreamPulse] = {}
        self._values: dict[str, dict[str, float | None]] = {}
        self._meters: dict[str, _Meters] = {}
        self._turn: list[str] = []

    def look(self, layout: Layout, full: Mapping[str, str], wall: float) -> dict[str, StreamPulse]:
        """All streams, each as it was at the last look at it; `full` tells those that workers wait for."""
        for id in self._found.keys() - layout.doors.keys():
            for kept in (self._found, self._values, self._meters):
                kept.pop(id, None)
        until = time.monotonic() + BUDGET_S
        # What has waited longest comes first; a new one has waited for ever.
        waiting = [id for id in self._turn if id in layout.doors]
        waiting = [id for id in layout.doors if id not in self._meters] + waiting
        seen = []
        for id in dict.fromkeys(waiting):
            self._look_at(id, layout, full.get(id), wall)
            seen.append(id)
            if time.monotonic() > until:
                break
        self._turn = [*(id for id in dict.fromkeys(waiting) if id not in set(seen)), *seen]
        return {key_of("Stream", id): pulse for id, pulse in self._found.items()}

    def values(self) -> dict[str, Values]:
        """What the history of each stream is to remember of the last look."""
        return {key_of("Stream", id): values for id, values in self._values.items()}

    def lost(self) -> dict[str, tuple[int, float]]:
        """How many events of which streams nobody will read, lately, and since when."""
        grown = ((key_of("Stream", id), meters.lost) for id, meters in self._meters.items())
        return {key: (int(lost.total), lost.since) for key, lost in grown if lost.since is not None}

    def _look_at(self, id: str, layout: Layout, full: str | None, wall: float) -> None:
        meters = self._meters.setdefault(id, _Meters())
        try:
            stats = stats_of(layout.doors[id])
        except Exception as error:  # it is being removed, or its disk is out of reach
            log.debug("a stream cannot be looked at", stream=id, error=str(error))
            self._found.pop(id, None)
            self._values.pop(id, None)
            return
        at = time.monotonic()
        rate = meters.events.mark(at, stats.next)
        drops = {reason: stats.counters.get(name, 0) for reason, name in DROPS.items()}
        rates = {reason: meters.drops[reason].mark(at, count) for reason, count in drops.items()}
        # A transient stream without readers drops all there is: nobody misses that.
        meters.lost.mark(wall, sum(count for reason, count in drops.items() if reason != "no_reader"))
        readers = tuple(self._readers(stats, layout, meters, at))
        found = StreamPulse(
            key_of("Stream", id),
            id,
            layout.names.get(id, id),
            round(rate or 0.0, 2),
            stats.events,
            stats.bytes,
            stats.segments,
            stats.next,
            max((reader.lag_events for reader in readers), default=0),
            stats.buffer["full"] or full,
            sum(drops.values()),
            stats.transient,
            readers,
        )
        self._found[id] = found
        self._values[id] = {
            "in_rate": _rounded(rate),
            "bytes": found.bytes,
            "segments": found.segments,
            "events": found.events,
            "lag_events": found.lag_events,
            "dropped": _rounded(_sum(rates.values())),
            **{f"drop:{reason}": _rounded(rates[reason]) for reason, count in drops.items() if count},
        }

    def _readers(self, stats: Stats, layout: Layout, meters: _Meters, at: float) -> list[ReaderPulse]:
        known = meters.readers
        meters.readers = {reader.reader: known.get(reader.reader, Meter()) for reader in stats.readers}
        return [
            ReaderPulse(
                reader.reader,
                layout.readers.get(reader.reader.partition("/")[0]),  # after the slash: one of its steps
                round(meters.readers[reader.reader].mark(at, reader.cursor) or 0.0, 2),
                reader.lag_events,
                reader.lag_ms,
            )
            for reader in stats.readers
        ]


def _sum(rates: Collection[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
