"""Metrics of flows, from the reports of their workers."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.control.events.sinks import state_of
from penstock.control.graph.layout import FlowLayout, Layout, key_of
from penstock.control.monitor.history_file import Values
from penstock.control.monitor.meters import Growth, Headway
from penstock.control.monitor.snapshot import FlowPulse, ReaderPulse, SinkPulse, StreamPulse
from penstock.control.registry.records import FlowState, Running
from penstock.engine.runtime.meter import WINDOW_S, Meter

LAG_MARKS, LAG_EVERY_S, LAG_WORTH = 4, 60.0, 1000
"""A lag grows if it was larger each minute for three minutes, and is at least LAG_WORTH events."""


@dataclass
class _Meters:
    """The meters of a flow, retained between samples."""

    uid: str
    new_letters: Growth
    input: Meter = field(default_factory=Meter)
    letters: Meter = field(default_factory=Meter)
    sinks: dict[str, Meter] = field(default_factory=dict)
    headway: Headway = field(default_factory=Headway)
    lags: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=LAG_MARKS))
    batch: Any = None
    batch_at: float | None = None


class FlowSampler:
    """Samples flows. Used by one thread."""

    def __init__(self, stalled_s: float) -> None:
        self._stalled_s = stalled_s
        self._meters: dict[str, _Meters] = {}
        self._values: dict[str, Values] = {}
        self._baseline: float | None = None
        """Dead letters of a flow before its first sample: 0 for flows created after the first `look`."""
        self.renewed: set[str] = set()
        """Keys that belonged to another flow in the last sample: a deleted document of the same name."""
        self.stalls: dict[str, float | None] = {}
        """Since when flows have made no progress, by uid: only flows for which this has changed."""

    def look(
        self, flows: Sequence[Running], layout: Layout, streams: Mapping[str, StreamPulse], wall: float
    ) -> dict[str, FlowPulse]:
        """The current metrics of all flows."""
        readers = {
            (stream.id, reader.key): reader
            for stream in streams.values()
            for reader in stream.readers
            if reader.key is not None and "/" not in reader.reader
        }
        keyed = {key_of(each.kind, each.flow.id): each for each in flows}
        self.renewed = {k for k, each in keyed.items() if k in self._meters and self._is_other(k, each)}
        for key in (self._meters.keys() - keyed.keys()) | self.renewed:
            self._meters.pop(key, None)
        for key in keyed.keys() - self._meters.keys():
            flow = keyed[key].flow
            self._meters[key] = _Meters(flow.uid, Growth(baseline=self._baseline), headway=_headway(flow))
        self._baseline = 0
        self._values, self.stalls = {}, {}
        found = {}
        for key, each in keyed.items():
            laid_out = layout.flows.get(each.flow.uid)
            reader = readers.get((laid_out.reads, key)) if laid_out and laid_out.reads else None
            found[key] = self._look_at(key, each, laid_out, self._meters[key], reader, wall)
        return found

    def values(self) -> dict[str, Values]:
        """The values of the last sample for the history of each flow."""
        return self._values

    def letters(self) -> dict[str, tuple[int, float]]:
        """Dead letters of the last minutes by flow: their number, and the time of the first."""
        grown = ((key, meters.new_letters) for key, meters in self._meters.items())
        return {key: (int(new.total), new.since) for key, new in grown if new.since is not None}

    def growing(self) -> dict[str, float]:
        """Flows whose lag keeps growing, and since when."""
        found = {}
        for key, meters in self._meters.items():
            lags = [lag for _, lag in meters.lags]
            grows = all(before < after for before, after in itertools.pairwise(lags))
            if len(lags) == LAG_MARKS and grows and lags[-1] >= LAG_WORTH:
                found[key] = meters.lags[0][0]
        return found

    def _is_other(self, key: str, each: Running) -> bool:
        return self._meters[key].uid != each.flow.uid

    def _look_at(
        self,
        key: str,
        each: Running,
        laid_out: FlowLayout | None,
        meters: _Meters,
        reader: ReaderPulse | None,
        wall: float,
    ) -> FlowPulse:
        flow, at = each.flow, time.monotonic()
        ops, held = flow.ops, flow.worker is not None
        taken, letters = int(ops.get("input_events", 0)), int(ops.get("dead_letters", 0))
        in_rate = _rate(meters.input, at, taken, held)
        letters_rate = _rate(meters.letters, at, letters, held)
        meters.new_letters.mark(wall, letters)
        sinks = _sinks(ops.get("sinks", {}), flow, laid_out, meters, at)
        rates = [rate for _, rate in sinks if rate is not None]
        last = ops.get("last_batch") or {} if held else {}
        fresh = _is_fresh(meters, last, at)
        receiver = (ops.get("receiver") or {}) if held else {}
        lag = reader.lag_events if reader else ops.get("lag_events")
        if reader and receiver:  # the backlog of the input stream and of the system before it
            lag = reader.lag_events + int(ops.get("lag_events") or 0)
        if lag is not None and (not meters.lags or wall - meters.lags[-1][0] >= LAG_EVERY_S):
            meters.lags.append((wall, lag))
        meters.headway.mark(wall, int(ops.get("batches", 0)), lag, flow.status == "active")
        stalled = meters.headway.stalled_since(wall, self._stalled_s)
        if (stalled is None) != (flow.stalled_since is None):
            self.stalls[flow.uid] = stalled
        found = FlowPulse(
            key,
            each.kind,
            flow.id,
            each.name,
            flow.status,
            flow.phase if stalled is None or flow.phase == "draining" else "stalled",
            flow.worker,
            in_rate or 0.0,
            round(sum(rates), 2),
            lag,
            reader.lag_ms if reader else None,
            last.get("latency_ms"),
            last.get("duration_ms"),
            taken,
            letters,
            tuple(sink for sink, _ in sinks),
            flow.error,
            flow.updated_at,
            ops.get("latency") if held else None,
            receiver.get("state") == "reconnecting",
            flow.waits_for,
            flow.failed_attempts,
            meters.headway.grows,
            datetime.fromtimestamp(ops["good_at"], UTC) if ops.get("good_at") else None,
            stalled,
        )
        self._values[key] = {
            "in_rate": in_rate,
            "out_rate": round(sum(rates), 2) if rates else None,
            "batch_ms": found.batch_ms if fresh else None,
            "latency_ms": found.latency_ms if fresh else None,
            "lag_events": lag,
            "lag_ms": None if lag is None else found.lag_ms or 0,
            "dead_letters": letters_rate,
            **{f"sink:{sink.id}": rate for sink, rate in sinks},
        }
        return found


def _headway(flow: FlowState) -> Headway:
    """The initial headway of a flow: if stalled when this server started, it is so until its next batch."""
    if flow.stalled_since is None:
        return Headway()
    return Headway(int(flow.ops.get("batches", 0)), flow.stalled_since, backlog=0)


def _sinks(
    counts: Mapping[str, Any], flow: FlowState, laid_out: FlowLayout | None, meters: _Meters, at: float
) -> list[tuple[SinkPulse, float | None]]:
    """The sinks of the document, each with the counters of the worker."""
    types = {sink.id: sink.type for sink in laid_out.sinks} if laid_out else dict.fromkeys(counts, "unknown")
    meters.sinks = {sink_id: meters.sinks.get(sink_id, Meter()) for sink_id in types}
    runs = flow.phase in ("running", "draining")
    found = []
    for sink_id, connector in types.items():
        counted = counts.get(sink_id, {})
        events, state = int(counted.get("events", 0)), counted.get("state", "in_sync")
        rate = _rate(meters.sinks[sink_id], at, events, flow.worker is not None)
        failures = int(counted.get("failures", 0))
        pulse = SinkPulse(sink_id, connector, state_of(state, runs), rate or 0.0, events, failures)
        found.append((pulse, rate))
    return found


def _rate(meter: Meter, at: float, value: int, held: bool) -> float | None:
    """The rate of a counter; 0 for a flow without a worker."""
    if not held:
        meter.rest()
        return 0.0
    rate = meter.mark(at, value)
    return None if rate is None else round(rate, 2)


def _is_fresh(meters: _Meters, last: Mapping[str, Any], at: float) -> bool:
    """Whether a batch has ended in the last seconds; false for a batch before the first sample."""
    mark = (last.get("id"), last.get("at"))
    if mark != meters.batch:
        meters.batch_at = None if meters.batch is None else at
        meters.batch = mark
    return bool(last) and meters.batch_at is not None and at - meters.batch_at <= WINDOW_S
