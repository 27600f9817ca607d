"""The parts of a soak test: pipelines, a sender, faults, and samples of all processes."""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.http_server import Asked, Said, Server

BATCH, PAUSE_S = 50, 0.1
"""Events of a request, and seconds between two requests."""

BAD_EVERY = 97
"""One event of so many cannot be processed."""

SAMPLE_S = 3.0
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "id BIGINT, code STRING, amount DOUBLE, at TIMESTAMP"
SCRIPT = "function processBatch(events) { return events.map(e => ({id: e.id, seen: true})) }"


def documents(directory: Path, service: str) -> list[dict[str, Any]]:
    """HTTP → SQL → three sinks; from one of them JavaScript and a window, each into a stream of its own."""
    clean = "SELECT id, CAST(code AS INT) AS code, amount * 1.1 AS gross, at FROM input"
    file = {"id": "files", "type": "file", "path": str(directory / "orders"), "format": "json"}
    sent = {"id": "service", "type": "http", "url": f"{service}/orders", "body": "array", "required": False}
    script = {"type": "javascript", "inline": SCRIPT, "schema": "id BIGINT, seen BOOLEAN"}
    window = {"type": "window", "time": "at", "size": "10s", "aggregates": {"orders": "count(*)"}}
    return [
        _document("Stream", "orders", {"schema": "id BIGINT, code INT, gross DOUBLE, at TIMESTAMP"}),
        _document("Stream", "scripted", {"schema": "id BIGINT, seen BOOLEAN"}),
        _document("Stream", "windows", {}),
        _document(
            "Pipeline",
            "intake",
            {
                "source": {"type": "http", "path": "/orders", "schema": SCHEMA},
                "processors": [{"type": "sql", "query": clean}],
                "sinks": [{"id": "orders", "type": "stream", "stream": "orders"}, file, sent],
            },
        ),
        _document("Pipeline", "script", _between("orders", script, "scripted")),
        _document("Pipeline", "window", _between("orders", window, "windows")),
    ]


def _between(source: str, step: dict[str, Any], sink: str) -> dict[str, Any]:
    ends = {"source": {"type": "stream", "stream": source}, "sinks": [{"type": "stream", "stream": sink}]}
    return {**ends, "processors": [step]}


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


def event(number: int, at: timedelta | None = None) -> dict[str, Any]:
    """The event of a number. Its time grows by 10 ms from one to the next."""
    when = BEGIN + (at or timedelta(milliseconds=10 * number))
    code = "none" if number % BAD_EVERY == 0 else str(number % 7)
    return {"id": number, "code": code, "amount": number / 10, "at": when.isoformat()}


@dataclass
class Sender:
    """Sends events over HTTP until it is stopped. A request that is refused is repeated."""

    url: str
    sent: int = 0
    """Events that were acknowledged: those with the numbers below."""
    refused: int = 0
    error: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def sending(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="sender", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
        if self.error is not None:
            raise self.error

    def send(self, events: Sequence[dict[str, Any]]) -> None:
        body = "\n".join(map(json.dumps, events))
        headers = {"Content-Type": "application/x-ndjson"}
        while True:
            answer = httpx.post(f"{self.url}/ingest/orders", content=body, headers=headers, timeout=60)
            if answer.status_code == 200:
                return
            if answer.status_code not in (429, 503):
                raise AssertionError(answer.text)
            self.refused += 1
            time.sleep(float(answer.headers.get("Retry-After", 1)))

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_S):
                self.send([event(number) for number in range(self.sent, self.sent + BATCH)])
                self.sent += BATCH
        except BaseException as error:
            self.error = error


@dataclass
class Service:
    """The service behind the `http` sink: it is away at times, answers 500 at times, and keeps all ids."""

    ids: set[int] = field(default_factory=set)
    failing: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.server = Server(self._answer)

    def _answer(self, asked: Asked) -> Said:
        self.server.asked.clear()  # it would grow with the test
        if self.failing:
            return Said({"error": "on purpose"}, status=500)
        with self._lock:
            self.ids.update(each["id"] for each in asked.json())
        return Said({})


@dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    at: float
    memory: int
    descriptors: int
    threads: int


Samples = dict[tuple[str, int], list[Sample]]
"""The samples of each process, by its role and id."""


class Sampler:
    """Samples all processes of a running `penstock up`."""

    def __init__(self, server: int) -> None:
        self._server, self.began = psutil.Process(server), time.monotonic()
        self.samples: Samples = {}

    def sample(self) -> None:
        """Take one sample of each process."""
        at = time.monotonic() - self.began
        for process in [self._server, *self._server.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                role = self._role(process)
                taken = Sample(at, process.memory_full_info().pss, process.num_fds(), process.num_threads())
                self.samples.setdefault((role, process.pid), []).append(taken)

    def _role(self, process: psutil.Process) -> str:
        command = process.cmdline()
        if process.pid == self._server.pid:
            return "server"
        if process.name() == "java":
            return "JVM of the worker"
        if any(part.endswith("guard.py") for part in command):
            return "guard"
        return "worker" if "worker" in command and "--leash" in command else "Python of Spark"

    def totals(self, value: Callable[[Sample], float]) -> dict[str, list[tuple[float, float]]]:
        """A curve for each role: the sum over its processes at each moment."""
        found: dict[str, dict[float, float]] = {}
        for (role, _), samples in self.samples.items():
            curve = found.setdefault(role, {})
            for sample in samples:
                curve[sample.at] = curve.get(sample.at, 0) + value(sample)
        return {role: sorted(curve.items()) for role, curve in found.items()}


def growth(curve: Sequence[tuple[float, float]], since: float) -> tuple[float, float]:
    """The level of a curve at first, and how much it has grown at last: medians of a third of the time."""
    values = [value for at, value in curve if at >= since]
    third = len(values) // 3
    first, last = statistics.median(values[:third]), statistics.median(values[-third:])
    return first, last - first
