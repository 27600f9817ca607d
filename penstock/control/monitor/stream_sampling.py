"""Metrics of streams, sampled a few at a time: thousands of streams must not keep a machine busy."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import structlog

from penstock.control.graph.layout import Layout, key_of
from penstock.control.monitor.history_file import Values
from penstock.control.monitor.meters import Growth
from penstock.control.monitor.snapshot import ReaderPulse, StreamPulse
from penstock.control.streams.pages import Stats, stats_of
from penstock.engine.runtime.meter import Meter

log = structlog.get_logger()

BUDGET_S = 0.25
"""Seconds that sampling streams may take. The remaining streams follow in the next sample."""

DROPS = {
    "buffer_full": "dropped_buffer_full",
    "timeout": "dropped_timeout",
    "no_reader": "dropped_no_reader",
    "unread": "evicted_unread",
    "damaged": "damaged",
    "restart": "lost_restart",
}
"""Counters of events that readers have missed, by reason. Regular retention is not included."""


class _Meters:
    def __init__(self, baseline: float | None) -> None:
        self.events = Meter()
        self.drops = {reason: Meter() for reason in DROPS}
        self.readers: dict[str, Meter] = {}
        self.lost = Growth(baseline=baseline)
        self.unended = Growth(baseline=baseline)


class StreamSampler:
    """Samples streams. Used by one thread."""

    def __init__(self) -> None:
        self._found: dict[str, StreamPulse] = {}
        self._values: dict[str, dict[str, float | None]] = {}
        self._meters: dict[str, _Meters] = {}
        self._turn: list[str] = []
        self._older: set[str] | None = None
        """Streams of the first sample: it is unknown whether their earlier counts are recent."""

    def look(self, layout: Layout, full: Mapping[str, str], wall: float) -> dict[str, StreamPulse]:
        """The last sample of every stream; `full` maps streams that workers wait for to the reason."""
        self._older = set(layout.doors) if self._older is None else self._older & layout.doors.keys()
        for stream in self._meters.keys() - layout.doors.keys():
            for kept in (self._found, self._values, self._meters):
                kept.pop(stream, None)
        until = time.monotonic() + BUDGET_S
        # Least recently sampled first; new streams before all others.
        waiting = [stream for stream in self._turn if stream in layout.doors]
        waiting = [stream for stream in layout.doors if stream not in self._meters] + waiting
        seen = []
        for stream in dict.fromkeys(waiting):
            self._look_at(stream, layout, full.get(stream), wall)
            seen.append(stream)
            if time.monotonic() > until:
                break
        self._turn = [*(stream for stream in dict.fromkeys(waiting) if stream not in set(seen)), *seen]
        return {key_of("Stream", stream): pulse for stream, pulse in self._found.items()}

    def values(self) -> dict[str, Values]:
        """The values of the last sample for the history of each stream."""
        return {key_of("Stream", stream): values for stream, values in self._values.items()}

    def lost(self) -> dict[str, tuple[int, float]]:
        """Unread events dropped in the last minutes, by stream: their number, and the time of the first."""
        grown = ((key_of("Stream", stream), meters.lost) for stream, meters in self._meters.items())
        return {key: (int(lost.total), lost.since) for key, lost in grown if lost.since is not None}

    def unended(self) -> dict[str, tuple[int, float]]:
        """Recent transactions that did not end in time, by stream: number, and time of the first."""
        grown = ((key_of("Stream", stream), meters.unended) for stream, meters in self._meters.items())
        return {key: (int(found.total), found.since) for key, found in grown if found.since is not None}

    def _look_at(self, stream: str, layout: Layout, full: str | None, wall: float) -> None:
        if stream not in self._meters:
            self._meters[stream] = _Meters(None if stream in (self._older or ()) else 0)
        meters = self._meters[stream]
        try:
            stats = stats_of(layout.doors[stream])
        except Exception as error:  # it is being removed, or its disk is unreachable
            log.debug("a stream could not be sampled", stream=stream, error=str(error))
            self._found.pop(stream, None)
            self._values.pop(stream, None)
            return
        at = time.monotonic()
        rate = meters.events.mark(at, stats.next)
        drops = {reason: stats.counters.get(name, 0) for reason, name in DROPS.items()}
        rates = {reason: meters.drops[reason].mark(at, count) for reason, count in drops.items()}
        # A transient stream without readers drops all events: that does not count as a loss.
        meters.lost.mark(wall, sum(count for reason, count in drops.items() if reason != "no_reader"))
        meters.unended.mark(wall, stats.counters.get("unended_transactions", 0))
        readers = tuple(self._readers(stats, layout, meters, at))
        found = StreamPulse(
            key_of("Stream", stream),
            stream,
            layout.names.get(stream, stream),
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
        self._found[stream] = found
        self._values[stream] = {
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
