"""Events over HTTP: one at a time with a sync each, and in bodies of a thousand."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from bench.data import SCHEMA, batch
from bench.product import Product, product

CLIENTS, SINGLES_S, BODIES_S, BODY = 64, 5.0, 10.0, 1_000
SLOW_SYNC_MS = 5
"""What a sync costs on a common network volume. A virtual disk with a write cache may take a tenth of it."""


def measure(work: Path) -> list[str]:
    """The lines of a report."""
    with product(work / "ingest-home", workers=0) as running:
        return [*_bodies(running), "", *_singles(running, work)]


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
            sent, seconds = _load(running, f"/streams/{stream}/events", kind, body, 2, BODIES_S)
            used = running.cpu_s() - used
            events = sent * BODY
            lines.append(f"| {form} | {stream} | {events / seconds:,.0f} | {events / used:,.0f} |")
    return lines


def _singles(running: Product, work: Path) -> list[str]:
    body = json.dumps(batch(1).to_pylist()[0]).encode()
    running.create("Stream", "grouped", {"wal": {"sync": True}})
    running.create("Stream", "each", {"wal": {"sync": True, "batch": {"max_events": 1, "max_ms": 0}}})
    rates, syncs = {}, {}
    for stream in ("each", "grouped"):
        path = f"/streams/{stream}/events"
        sent, seconds = _load(running, path, "application/json", body, CLIENTS, SINGLES_S)
        rates[stream] = sent / seconds
        syncs[stream] = _frames(running, stream) / running.next_offset(stream)
    return [
        f"Single events from {CLIENTS} clients, `sync: true`: {rates['grouped']:,.0f} requests/s with group "
        f"commit ({1 / syncs['grouped']:.0f} events share a sync), {rates['each']:,.0f} with a sync for "
        f"each: {rates['grouped'] / rates['each']:.1f} times.",
        "",
        *_slow_disk(work),
    ]


def _frames(running: Product, stream: str) -> int:
    """How many frames, and so syncs, the log of a stream has."""
    from penstock.streams.local import LocalStorage

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


def _load(
    running: Product, path: str, kind: str, body: bytes, clients: int, seconds: float
) -> tuple[int, float]:
    """How many requests clients of another process get answered, and in what time."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_clients, (running.url, path, kind, body, clients, seconds))


def _clients(url: str, path: str, kind: str, body: bytes, clients: int, seconds: float) -> tuple[int, float]:
    return asyncio.run(_all_clients(url, path, kind, body, clients, seconds))


async def _all_clients(
    url: str, path: str, kind: str, body: bytes, clients: int, seconds: float
) -> tuple[int, float]:
    place = urlsplit(url)
    head = [f"POST {path} HTTP/1.1", f"Host: {place.netloc}", f"Content-Type: {kind}"]
    request = "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body
    began = time.perf_counter()

    def on() -> bool:
        return time.perf_counter() - began < seconds

    host, port = place.hostname or "", place.port or 80
    sent = await asyncio.gather(*(_client(host, port, request, on) for _ in range(clients)))
    return sum(sent), time.perf_counter() - began


async def _client(host: str, port: int, request: bytes, on: Callable[[], bool]) -> int:
    """A client on one connection that sends again as soon as it has its answer."""
    reader, writer = await asyncio.open_connection(host, port)
    sent = 0
    while on():
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(head.decode())
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        sent += 1
    writer.close()
    return sent
