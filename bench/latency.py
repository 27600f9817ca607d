"""HTTP → pipeline → stream at a steady rate: the time from a request until its events can be read.

The contender is what an engineer would write in PySpark for the lowest latency: an HTTP server that appends
to a file, a Python data source that reads the file, and `foreachBatch` that appends to another file.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.jobs.frame_file import end_of, read
from bench.latency_twin import Twin, twin
from bench.product import Product, product
from bench.turns import AGAIN, ROUNDS, take_turns
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log

RATE, WARM_S, MEASURED_S = 1_000, 4, 10
MOST_OF_A_SENDER = 10_000
"""Events per second of one connection, whose requests are sequential: more would wait for responses."""
POLL_S = 0.001
"""Interval in which a file is polled; a stream is polled as often while events arrive."""
HAND_WRITTEN = "hand-written PySpark"

BUDGET_MS = {
    "latestOffset": 5,
    "queryPlanning": 8,
    "walCommit": 6,
    "addBatch": 40,
    "commitOffsets": 6,
    "triggerExecution": 65,
}
"""Time budget of the stages of a warm micro-batch on two quiet cores; the last stage is the total."""

Stages = dict[str, list[float]]
"""Milliseconds of some micro-batches, by stage."""

Arrivals = Callable[[float], Iterator[list[float]]]
"""Yields the send times of arriving events, batch by batch, until a time of the monotonic clock."""


@dataclass(frozen=True)
class Delays:
    """The latencies of the events of one turn, in milliseconds."""

    events: int
    p50: float
    p99: float
    longest: float

    def __str__(self) -> str:
        return f"p50 {self.p50:.0f} ms, p99 {self.p99:.0f} ms"


def measure(work: Path) -> list[str]:
    """The lines of a report."""
    with product(work / "latency-home", workers=1) as running, twin(work / "latency-twin") as other:
        stages: Stages = defaultdict(list)

        turns_taken = itertools.count()

        def penstock() -> Delays:
            seen: Stages = stages if next(turns_taken) else defaultdict(list)  # the first turn warms up
            with _sampled(running, seen):
                return delays(
                    f"{running.url}/ingest/latency", lambda until: from_stream(running, "arrived", until)
                )

        def by_hand() -> Delays:
            with other.awake():
                return delays(other.url, lambda until: _from_file(other, until))

        _create(running)
        turns = {"Penstock": penstock, HAND_WRITTEN: by_hand, HAND_WRITTEN + AGAIN: by_hand}
        found = take_turns(turns)
    lines = [
        f"HTTP → pipeline → stream at {RATE:,} events/s, in bodies of {RATE // 100}: from the request until "
        f"the event can be read at the other end. Turns of {MEASURED_S} s, median of {ROUNDS}.",
        "",
        "| | events | p50, ms | p99, ms | longest, ms | p50 and p99 to hand-written |",
        "|---|---|---|---|---|---|",
    ]
    medians = {name: _median(each) for name, each in found.items()}
    base = medians[HAND_WRITTEN]
    lines += [
        f"| {name} | {each.events:,} | {each.p50:.0f} | {each.p99:.0f} | {each.longest:.0f} "
        f"| {each.p50 / base.p50:.2f}, {each.p99 / base.p99:.2f} |"
        for name, each in medians.items()
    ]
    return [*lines, "", *_stage_table(stages, other.stages())]


def _stage_table(ours: Stages, by_hand: Stages) -> list[str]:
    """The stages of a micro-batch, compared with their budget."""
    lines = [
        "The stages of a micro-batch in milliseconds, medians of the micro-batches that were seen:",
        "",
        f"| | Penstock | {HAND_WRITTEN} | budget | |",
        "|---|---|---|---|---|",
    ]
    for stage, budget in BUDGET_MS.items():
        took, other = (statistics.median(each[stage]) for each in (ours, by_hand))
        lines.append(
            f"| `{stage}` | {took:.0f} | {other:.0f} | {budget} | {'OVER' if took > budget else ''} |"
        )
    return lines


@contextlib.contextmanager
def _sampled(running: Product, stages: Stages) -> Iterator[None]:
    """Record the stages of about one micro-batch per second."""
    stop, seen = threading.Event(), set()

    def sample() -> None:
        with httpx.Client(base_url=running.url, trust_env=False) as client:
            while not stop.wait(0.5):
                last = client.get("/pipelines/latency").json()["ops"].get("last_batch")
                if last is not None and last["id"] not in seen:
                    seen.add(last["id"])
                    for stage, took in last["durations_ms"].items():
                        stages[stage].append(took)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield
    finally:
        stop.set()
        sampler.join()


def _create(running: Product) -> None:
    running.create("Stream", "arrived", {"schema": "sent DOUBLE"})
    source = {"type": "http", "path": "/latency", "schema": "sent DOUBLE"}
    sink = {"type": "stream", "stream": "arrived"}
    running.create("Pipeline", "latency", {"source": source, "buffer": {"type": "wal"}, "sinks": [sink]})


def _median(delays: list[Delays]) -> Delays:
    fields = ("events", "p50", "p99", "longest")
    return Delays(*(statistics.median(getattr(each, field) for each in delays) for field in fields))


def delays(url: str, arrivals: Arrivals, rate: int = RATE) -> Delays:
    """Send events for one turn. Returns the latencies of events that were sent after the warm-up."""
    stop = threading.Event()
    count = max(1, rate // MOST_OF_A_SENDER)
    senders = [threading.Thread(target=_send, args=(url, stop, rate // count)) for _ in range(count)]
    began, begin = time.monotonic(), time.time() + WARM_S
    for sender in senders:
        sender.start()
    try:
        taken = [
            now - sent
            for batch in arrivals(began + WARM_S + MEASURED_S)
            for now in [time.time()]
            for sent in batch
            if sent > begin
        ]
    finally:
        stop.set()
        for sender in senders:
            sender.join()
    if not taken:
        raise SystemExit(f"no event arrived in {MEASURED_S} s")
    taken.sort()
    p50, p99, longest = (taken[int(len(taken) * share)] * 1000 for share in (0.5, 0.99, 1 - 1e-9))
    return Delays(len(taken), p50, p99, longest)


def _send(url: str, stop: threading.Event, rate: int) -> None:
    due, each = time.monotonic(), max(1, rate // 100)
    with httpx.Client(trust_env=False) as client:
        while not stop.is_set():
            body = "\n".join(json.dumps({"sent": time.time()}) for _ in range(each)).encode()
            headers = {"Content-Type": "application/x-ndjson"}
            client.post(url, content=body, headers=headers).raise_for_status()
            due += each / rate
            time.sleep(max(0.0, due - time.monotonic()))


def from_stream(running: Product, stream: str, until: float) -> Iterator[list[float]]:
    """The send times of the events that arrive in a stream."""
    (directory,) = (running.home / "streams" / stream).iterdir()
    log = Log(LocalStorage(directory))
    at = log.bounds().next
    while time.monotonic() < until:
        if log.wait(at, 0.5):
            for chunk in log.read(at):
                at = chunk.next
                if chunk.batch is not None:
                    yield chunk.batch.column("sent").to_pylist()
    log.close()


def _from_file(other: Twin, until: float) -> Iterator[list[float]]:
    at = end_of(other.target, 0)
    while time.monotonic() < until:
        end = end_of(other.target, at)
        if end == at:
            time.sleep(POLL_S)
        for batch in read(other.target, at, end):
            yield batch.column("sent").to_pylist()
        at = end
