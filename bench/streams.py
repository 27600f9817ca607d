"""Streams through Spark: how fast a stream is filtered into another, and how long an event takes."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import SCHEMA, batch
from bench.product import Product, product
from penstock.streams.local import LocalStorage
from penstock.streams.log import Log

QUERY = "SELECT id, user, round(amount * 1.19, 2) AS gross, at FROM input WHERE ok AND amount > 50"
OUTPUT = "id BIGINT, user STRING, gross DOUBLE, at STRING"
RATE, LATENCY_S, WARM_S = 1_000, 20, 8
ROUNDS = 3


def measure(work: Path, count: int) -> list[str]:
    """The lines of a report."""
    with product(work / "streams-home", workers=1) as running:
        return [*_throughput(running, work, count), "", *_latency(running)]


def _throughput(running: Product, work: Path, count: int) -> list[str]:
    running.create("Stream", "source", {"schema": SCHEMA, "wal": {"max_segments": 1000}})
    passing = _fill(running, work / "parquet", count)
    times: dict[str, list[float]] = {"stream → sql → stream": [], "Parquet files → sql → Parquet files": []}
    for number in range(ROUNDS + 1):
        for name, run in zip(times, (_stream_job, _file_job), strict=True):
            seconds = run(running, work, number, passing)
            if number:  # the first round warms Spark up
                times[name].append(seconds)
    medians = {name: statistics.median(found) for name, found in times.items()}
    lines = [
        f"{count:,} typed events of about 200 bytes, {passing:,} pass; on a warm worker, from the start of "
        f"the pipeline to its last event, median of {ROUNDS}:",
        "",
        "| | seconds | events/s |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {seconds:.1f} | {count / seconds:,.0f} |" for name, seconds in medians.items()]
    first, second = medians.values()
    return [*lines, "", f"Streams are {second / first:.2f} times as fast as Parquet files."]


def _fill(running: Product, files: Path, count: int) -> int:
    """Put the same events into the stream and into Parquet files; how many of them pass the query."""
    files.mkdir()
    passing = 0
    writer: pq.ParquetWriter | None = None
    for number, events in enumerate(_batches(count)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, events.schema) as stream:
            stream.write_batch(events)
        body, kind = sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.stream"
        answer = running.client.post("/streams/source/events", content=body, headers={"Content-Type": kind})
        answer.raise_for_status()
        if number % 50 == 0:
            if writer:
                writer.close()
            writer = pq.ParquetWriter(files / f"part-{number:05d}.parquet", events.schema)
        assert writer is not None
        writer.write_batch(events)
        passing += sum(ok and amount > 50 for ok, amount in zip(*map(list, _judged(events)), strict=True))
    if writer:
        writer.close()
    return passing


def _batches(count: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, count, 10_000):
        yield batch(min(10_000, count - first), first)


def _judged(events: pa.RecordBatch) -> tuple[list[bool], list[float]]:
    return events.column("ok").to_pylist(), events.column("amount").to_pylist()


def _stream_job(running: Product, work: Path, number: int, passing: int) -> float:
    name = f"filtered-{number}"
    running.create("Stream", name, {"schema": OUTPUT, "wal": {"max_segments": 1000}})
    return _timed(
        running,
        f"job-{number}",
        {"type": "stream", "stream": "source"},
        {"type": "stream", "stream": name},
        lambda _: running.next_offset(name) >= passing,
    )


def _file_job(running: Product, work: Path, number: int, passing: int) -> float:
    target = work / f"out-{number}"
    return _timed(
        running,
        f"file-job-{number}",
        {
            "type": "file",
            "path": str(work / "parquet"),
            "format": "parquet",
            "schema": SCHEMA,
            "finite": True,
        },
        {"type": "file", "path": str(target), "format": "parquet"},
        lambda pipeline: pipeline["status"] == "completed",
    )


def _timed(running: Product, name: str, source: dict[str, Any], sink: dict[str, Any], done: Any) -> float:
    processors = [{"type": "sql", "query": QUERY}]
    began = time.monotonic()
    running.create("Pipeline", name, {"source": source, "processors": processors, "sinks": [sink]})
    while not done(pipeline := running.client.get(f"/pipelines/{name}").json()):
        if pipeline["status"] == "failed":
            raise SystemExit(f"{name}: {pipeline['error']}")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    running.client.delete(f"/pipelines/{name}").raise_for_status()
    return seconds


def _latency(running: Product) -> list[str]:
    """Events that carry the time they were sent, until they can be read from the stream at the other end."""
    running.create("Stream", "arrived", {"schema": "sent DOUBLE"})
    source = {"type": "http", "path": "/latency", "schema": "sent DOUBLE"}
    sink = {"type": "stream", "stream": "arrived"}
    running.create("Pipeline", "latency", {"source": source, "buffer": {"type": "wal"}, "sinks": [sink]})
    stop = threading.Event()
    sender = threading.Thread(target=_send, args=(running.url, stop))
    sender.start()
    taken = sorted(_arrivals(running))
    stop.set()
    sender.join()
    p50, p99, longest = (taken[int(len(taken) * share)] * 1000 for share in (0.5, 0.99, 1 - 1e-9))
    return [
        f"HTTP → pipeline → stream at {RATE:,} events/s ({len(taken):,} events in {LATENCY_S} s): from the "
        f"request until the event can be read, p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {longest:.0f} ms."
    ]


def _send(url: str, stop: threading.Event) -> None:
    due = time.monotonic()
    with httpx.Client(base_url=url, trust_env=False) as client:
        while not stop.is_set():
            body = "\n".join(json.dumps({"sent": time.time()}) for _ in range(RATE // 100)).encode()
            headers = {"Content-Type": "application/x-ndjson"}
            client.post("/ingest/latency", content=body, headers=headers).raise_for_status()
            due += 0.01
            time.sleep(max(0.0, due - time.monotonic()))


def _arrivals(running: Product) -> list[float]:
    (directory,) = (running.home / "streams" / "arrived").iterdir()
    log = Log(LocalStorage(directory))
    began, at, taken = time.monotonic(), 0, []
    while (passed := time.monotonic() - began) < WARM_S + LATENCY_S:
        if not log.wait(at, 0.5):
            continue
        now = time.time()
        for chunk in log.read(at):
            at = chunk.next
            if passed > WARM_S and chunk.batch is not None:
                taken += [now - sent for sent in chunk.batch.column("sent").to_pylist()]
    log.close()
    return taken
