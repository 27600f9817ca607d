"""The pulse: one thread that samples flows, streams and workers every two seconds, for all clients.

While no flow runs, the pulse costs almost nothing. It only reads, except that it stores which flows are
stalled by a growing backlog: a worker doesn't know the lag of its flows.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import WorkerInfo
from penstock.control.graph.layout import Layouts, key_of
from penstock.control.monitor.attention import Scene, attention
from penstock.control.monitor.flow_sampling import FlowSampler
from penstock.control.monitor.history import STEP_MS, History
from penstock.control.monitor.history_file import HistoryFile, Values
from penstock.control.monitor.meters import LATELY_S
from penstock.control.monitor.snapshot import (
    Attention,
    FlowPulse,
    GoneWorker,
    Lately,
    Look,
    StreamPulse,
    Totals,
    WorkerPulse,
)
from penstock.control.monitor.stream_sampling import StreamSampler
from penstock.engine.runtime.meter import Meter

log = structlog.get_logger()

TOTALS = "totals"
"""The key of the history of the totals."""

END_S = 5.0
"""Seconds that `stop` waits for a blocked sample; a sample only reads, so it may be abandoned."""

RESTART_S = 86_400.0
"""Seconds after the server's start for which events lost by the restart are reported."""

KEPT_GONE = 10_000
"""Maximum removed keys that are retained for clients that follow changes."""


@dataclass(frozen=True)
class Sample:
    """A sample of the whole installation. `number` grows with each sample."""

    number: int
    look: Look
    attention: list[Attention]


@dataclass(frozen=True)
class Changes:
    """The changes since an earlier sample: changed entries, and removed keys."""

    sample: Sample
    flows: list[FlowPulse]
    streams: list[StreamPulse]
    gone: list[str]


class Pulse:
    """Samples the flows, streams and workers of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.started_at = datetime.now(UTC)
        self.history = History(HistoryFile(service.settings.home))
        self.on_sample: Callable[[], None] = lambda: None
        self._layouts = Layouts(service)
        self._flows = FlowSampler(service.settings.monitor.stalled_ms / 1000)
        self._streams, self._workers = StreamSampler(), _Workers()
        self._letters = Meter()
        self._sample: Sample | None = None
        self._changed: dict[str, int] = {}
        self._gone: deque[tuple[int, str]] = deque(maxlen=KEPT_GONE)
        self._looking, self._mutex = threading.Lock(), threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        self._stop.set()
        self._thread.join(END_S)
        self.history.save()

    def latest(self) -> Sample:
        """The last sample; the first caller waits until it is taken."""
        return self._sample or self.look()

    def since(self, number: int) -> Changes | None:
        """The changes since an earlier sample; None if it is too old, so that a whole sample is needed."""
        with self._mutex:
            sample = self._sample
            if sample is None or (len(self._gone) == KEPT_GONE and self._gone[0][0] > number):
                return None
            changed = {key for key, when in self._changed.items() if when > number}
            return Changes(
                sample,
                [flow for key, flow in sample.look.flows.items() if key in changed],
                [stream for key, stream in sample.look.streams.items() if key in changed],
                [key for when, key in self._gone if when > number and key not in self._changed],
            )

    def look(self) -> Sample:
        """Take a sample now."""
        with self._looking:
            found = self._look()
            settings = self._service.settings
            told = attention(Scene(found, self.started_at, settings.streams.free_bytes))
            return self._take(found, told)

    def _run(self) -> None:
        step, down = STEP_MS / 1000, False
        while not self._stop.wait(step - time.time() % step):  # aligned with the slots of the history
            try:
                self.look()
                down = False
            except Exception as error:  # the registry may be temporarily unreachable
                if not down:
                    log.warning("the overview could not be computed", error=str(error))
                down = True

    def _look(self) -> Look:
        service, now = self._service, datetime.now(UTC)
        wall = now.timestamp()
        layout = self._layouts.current()
        workers, running = service.flows.workers(), service.registry.running()
        full = {stream: why for each in workers for stream, why in each.info.get("full_streams", {}).items()}
        streams = self._streams.look(layout, full, wall)
        flows = self._flows.look(running, layout, streams, wall)
        service.flows.stall(self._flows.stalls)
        pulses = self._workers.look(workers, flows, wall)
        disk = shutil.disk_usage(service.settings.home)
        totals = Totals(
            round(sum(flow.in_rate for flow in flows.values()), 2),
            round(sum(flow.out_rate for flow in flows.values()), 2),
            sum(flow.lag_events or 0 for flow in flows.values()),
            sum(flow.dead_letters for flow in flows.values()),
            sum(stream.bytes for stream in streams.values()),
            disk.free,
            disk.total,
        )
        lately = Lately(
            self._flows.letters(),
            self._streams.lost(),
            self._lost_by_restart(wall),
            self._flows.growing(),
            self._workers.gone(wall),
            self._streams.unended(),
        )
        self._remember(wall, totals)
        return Look(now, totals, flows, streams, pulses, lately, tuple(service.startup()))

    def _lost_by_restart(self, wall: float) -> dict[str, tuple[int, float]]:
        at = self.started_at.timestamp()
        lost = self._service.streams.lost if wall - at < RESTART_S else {}
        return {key_of("Stream", stream): (events, at) for stream, events in lost.items()}

    def _remember(self, wall: float, totals: Totals) -> None:
        letters = self._letters.mark(time.monotonic(), totals.dead_letters)
        all_together: Values = {
            "in_rate": totals.in_rate,
            "out_rate": totals.out_rate,
            "lag_events": totals.lag_events,
            "dead_letters": None if letters is None else round(letters, 2),
            "stream_bytes": totals.stream_bytes,
        }
        for key in self._flows.renewed:
            self.history.forget(key)
        values = {TOTALS: all_together, **self._flows.values(), **self._streams.values()}
        self.history.add(int(wall * 1000), values)
        self.history.save(wall * 1000)

    def _take(self, found: Look, told: list[Attention]) -> Sample:
        with self._mutex:
            before = self._sample
            sample = Sample(before.number + 1 if before else 1, found, told)
            known = {**before.look.flows, **before.look.streams} if before else {}
            now: dict[str, FlowPulse | StreamPulse] = {**found.flows, **found.streams}
            for key, pulse in now.items():
                if known.get(key) != pulse:
                    self._changed[key] = sample.number
            for key in known.keys() - now.keys():
                del self._changed[key]
                self._gone.append((sample.number, key))
            self._sample = sample
        self.on_sample()
        return sample


class _Workers:
    """Current workers, and workers that have recently disappeared."""

    def __init__(self) -> None:
        self._seen: dict[str, WorkerInfo] = {}
        self._gone: list[GoneWorker] = []

    def look(
        self, workers: list[WorkerInfo], flows: dict[str, FlowPulse], wall: float
    ) -> tuple[WorkerPulse, ...]:
        present = {worker.id: worker for worker in workers}
        for worker_id, worker in self._seen.items():
            # A worker that shuts down cleanly reports that first; the end of a worker without flows affects
            # no flow.
            if worker_id not in present and worker.state == "ready" and worker.flows:
                self._gone.append(GoneWorker(worker_id, worker.flows, wall, worker.info.get("ailment")))
        self._seen = present
        held: dict[str, list[str]] = {}
        for key, flow in flows.items():
            if flow.worker is not None:
                held.setdefault(flow.worker, []).append(key)
        return tuple(
            WorkerPulse(
                **vars(worker),
                cpu_percent=worker.info.get("cpu_percent"),
                memory_bytes=worker.info.get("memory_bytes"),
                flow_keys=tuple(held.get(worker.id, ())),
            )
            for worker in workers
        )

    def gone(self, wall: float) -> tuple[GoneWorker, ...]:
        self._gone = [each for each in self._gone if wall - each.since < LATELY_S]
        return tuple(self._gone)
