"""Jobs of a warm worker that read one stream, and the same events in Parquet files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.data import OUTPUT, SCHEMA, batch
from bench.product import Product

SOURCE = "source"
FRAME = 10_000
"""Events per request body, and therefore per frame of the stream."""
FILE = 500_000
"""Events per Parquet file."""
MANY = {"max_segments": 1000}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}

Pipeline = dict[str, Any]


def fill(running: Product, count: int, files: Path | None = None, storage: str = "local") -> list[int]:
    """Append events to a new stream and to Parquet files. Returns the passing events per frame."""
    running.create("Stream", SOURCE, {"schema": SCHEMA, "wal": MANY, "storage": storage})
    if files:
        files.mkdir(parents=True)
    passing: list[int] = []
    unwritten: list[pa.RecordBatch] = []
    print(f"making {count:,} events…", file=sys.stderr)
    for first in range(0, count, FRAME):
        events = batch(min(FRAME, count - first), first)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, events.schema) as stream:
            stream.write_batch(events)
        body = sink.getvalue().to_pybytes()
        answer = running.client.post(f"/streams/{SOURCE}/events", content=body, headers=ARROW)
        answer.raise_for_status()
        passing.append(_passing(events))
        unwritten.append(events)
        if files and ((first + FRAME) % FILE == 0 or first + FRAME >= count):
            pq.write_table(pa.Table.from_batches(unwritten), files / f"part-{first:010d}.parquet")
            unwritten = []
    return passing


def _passing(events: pa.RecordBatch) -> int:
    good = pc.and_(events.column("ok"), pc.greater(events.column("amount"), 50))
    return int(pc.sum(good).as_py() or 0)


def first_files(files: Path, count: int, target: Path) -> Path:
    """A directory with the files of the first `count` events, which must fill whole files."""
    target.mkdir()
    for file in sorted(files.iterdir())[: count // FILE]:
        os.link(file, target / file.name)
    return target


def stream_job(
    running: Product,
    name: str,
    step: dict[str, Any],
    passing: int,
    batch: dict[str, Any] | None = None,
    until: int | None = None,
    storage: str = "local",
) -> float:
    """Seconds that stream → step → stream takes; the target stream must have `passing` events then."""
    target = f"{name}-out"
    running.create("Stream", target, {"schema": OUTPUT, "wal": MANY, "storage": storage})
    end = {"until": f"offset:{until}"} if until else {}
    spec = {
        "source": {"type": "stream", "stream": SOURCE, **end},
        "batch": batch or {},
        "processors": [step],
        # A cold start on a busy machine is slow, which is not a failure.
        "sinks": [{"type": "stream", "stream": target, "deadline_ms": 300_000}],
    }
    seconds = timed(running, name, spec, lambda _: running.next_offset(target) >= passing)
    if (found := running.next_offset(target)) != passing:
        raise SystemExit(f"{name}: {found} events came out, not {passing}")
    running.client.delete(f"/streams/{target}").raise_for_status()
    return seconds


def file_job(running: Product, name: str, step: dict[str, Any], files: Path, target: Path) -> float:
    """Seconds that Parquet files → step → Parquet files takes."""
    source = {"type": "file", "path": str(files), "format": "parquet", "schema": SCHEMA, "finite": True}
    sink = {"type": "file", "path": str(target), "format": "parquet"}
    spec = {"source": source, "processors": [step], "sinks": [sink]}
    return timed(running, name, spec, lambda pipeline: pipeline["status"] == "completed")


def timed(running: Product, name: str, spec: dict[str, Any], done: Callable[[Pipeline], bool]) -> float:
    """Seconds from the request that starts a pipeline until it is done; deletes the pipeline."""
    began = time.monotonic()
    running.create("Pipeline", name, spec)
    while not done(pipeline := running.client.get(f"/pipelines/{name}").json()):
        if pipeline["status"] == "failed":
            raise SystemExit(f"{name}: {pipeline['error']}")
        time.sleep(0.05)
    seconds = time.monotonic() - began
    running.client.delete(f"/pipelines/{name}").raise_for_status()
    return seconds
