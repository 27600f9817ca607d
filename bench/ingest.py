"""Events over HTTP: in bodies of 1,000, and one at a time, without and with a sync."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.data import SCHEMA, batch
from bench.echo import echo
from bench.load import Load, load
from bench.product import Product, product

CLIENTS, SINGLES_S, BODIES_S, BODY = 64, 5.0, 10.0, 1_000
CONNECTIONS, ROUNDS, ROUND_S, WARM_S = 32, 5, 2.0, 1.0
"""Settings for single events into a durable stream: the rounds of all contenders alternate."""
SLOW_SYNC_MS = 5
"""Duration of a sync on a common network volume. A virtual disk with a write cache may need a tenth of it."""


def measure(work: Path) -> list[str]:
    """The lines of a report."""
    with product(work / "ingest-home", workers=0) as running:
        return [*_bodies(running), "", *_alone(running), "", *_singles(running, work)]


def _bodies(running: Product) -> list[str]:
    rows = batch(BODY).to_pylist()
    forms = {
        "NDJSON": ("application/x-ndjson", "\n".join(json.dumps(row) for row in rows).encode()),
        "JSON array": ("application/json", json.dumps(rows).encode()),
    }
    lines = [
        f"Bodies of {BODY:,} events from two clients:",
        "",
        "| body | stream | events/s | events per second of the server's processor time |",
        "|---|---|---|---|",
    ]
    running.create("Stream", "typed", {"schema": SCHEMA})
    running.create("Stream", "raw", {})
    for form, (kind, body) in forms.items():
        for stream in ("typed", "raw"):
            used = running.cpu_s()
            sent = load(running.url, f"/streams/{stream}/events", kind, body, 2, BODIES_S)
            used = running.cpu_s() - used
            events = sent.answers * BODY
            lines.append(f"| {form} | {stream} | {events / sent.seconds:,.0f} | {events / used:,.0f} |")
    return lines


def _alone(running: Product) -> list[str]:
    """Single events into durable streams, compared with an application that only responds."""
    body = json.dumps(batch(1).to_pylist()[0]).encode()
    running.create("Stream", "one raw", {})
    running.create("Stream", "one typed", {"schema": SCHEMA})
    running.create("Source", "one", {"type": "http", "stream": "one_raw"})
    with echo() as (echo_url, echo_pid):
        contenders = {
            "raw stream": (running.url, running.pid, "/streams/one_raw/events"),
            "raw stream again (A/A)": (running.url, running.pid, "/streams/one_raw/events"),
            "typed stream": (running.url, running.pid, "/streams/one_typed/events"),
            "`http` source of the raw stream": (running.url, running.pid, "/ingest/one"),
            "an ASGI app that answers at once": (echo_url, echo_pid, "/"),
        }
        for url, _, path in contenders.values():
            load(url, path, "application/json", body, CONNECTIONS, WARM_S)
        rounds: dict[str, list[tuple[Load, float]]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, (url, pid, path) in contenders.items():
                used = _cpu_s(pid)
                sent = load(url, path, "application/json", body, CONNECTIONS, ROUND_S)
                rounds[name].append((sent, _cpu_s(pid) - used))
    return [
        f"Single events of {len(body)} bytes from {CONNECTIONS} keep-alive connections of one other process, "
        f"default settings; the median of {ROUNDS} rounds of {ROUND_S:.0f} s that take turns, load "
        f"{os.getloadavg()[0]:.1f} at the end:",
        "",
        "| | requests/s | best round | server, processor µs/request | client, processor µs/request |",
        "|---|---|---|---|---|",
        *(f"| {name} | {_row(found)} |" for name, found in rounds.items()),
    ]


def _row(rounds: list[tuple[Load, float]]) -> str:
    def median(of: Callable[[Load, float], float]) -> float:
        return statistics.median(of(sent, used) for sent, used in rounds)

    rate, best = median(lambda sent, _: sent.rate), max(sent.rate for sent, _ in rounds)
    server = median(lambda sent, used: used / sent.answers * 1e6)
    client = median(lambda sent, _: sent.cpu_s / sent.answers * 1e6)
    return f"{rate:,.0f} | {best:,.0f} | {server:.0f} | {client:.0f}"


def _cpu_s(pid: int) -> float:
    return sum(psutil.Process(pid).cpu_times()[:2])


def _singles(running: Product, work: Path) -> list[str]:
    body = json.dumps(batch(1).to_pylist()[0]).encode()
    running.create("Stream", "grouped", {"wal": {"sync": True}})
    running.create("Stream", "each", {"wal": {"sync": True, "batch": {"max_events": 1, "max_ms": 0}}})
    rates, syncs = {}, {}
    for stream in ("each", "grouped"):
        path = f"/streams/{stream}/events"
        rates[stream] = load(running.url, path, "application/json", body, CLIENTS, SINGLES_S).rate
        syncs[stream] = _frames(running, stream) / running.next_offset(stream)
    return [
        f"Single events from {CLIENTS} clients, `sync: true`: {rates['grouped']:,.0f} requests/s with group "
        f"commit ({1 / syncs['grouped']:.0f} events share a sync), {rates['each']:,.0f} with a sync for "
        f"each: {rates['grouped'] / rates['each']:.1f} times.",
        "",
        *_slow_disk(work),
    ]


def _frames(running: Product, stream: str) -> int:
    """The number of frames in the log of a stream, which equals the number of syncs."""
    from penstock.streams.local.storage import LocalStorage

    (directory,) = (running.home / "streams" / stream).iterdir()
    return sum(1 for _ in LocalStorage(directory).spans(0))


def _slow_disk(work: Path) -> list[str]:
    """The same without HTTP, on a disk whose sync takes as long as on a network volume."""
    from bench.log import grouped_rate

    rates = [grouped_rate(work, grouped, CLIENTS, SLOW_SYNC_MS) for grouped in (False, True)]
    return [
        f"On a disk that needs {SLOW_SYNC_MS} ms for a sync (slowed down for this), {CLIENTS} threads that "
        f"append single events: {rates[1]:,.0f}/s with group commit, {rates[0]:,.0f}/s with a sync for each: "
        f"{rates[1] / rates[0]:.0f} times."
    ]
