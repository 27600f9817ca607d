"""The log alone: its cost compared with writing the same Arrow data to a file, and its start time."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa

from bench.data import SCHEMA, batch
from penstock.specs.stream import StreamSpec
from penstock.streams.config import StreamConfig, write_config
from penstock.streams.files import Files
from penstock.streams.local.segments import Index, index_path, segment_path
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log

BATCHES, SIZE, ROUNDS = 100, 10_000, 3
STREAMS, SEGMENTS, LOGICAL = 100, 8, 64 * 2**20


def measure(work: Path) -> list[str]:
    """The lines of a report."""
    return [*_append(work), "", *_start(work)]


def _append(work: Path) -> list[str]:
    events = batch(SIZE)
    lines = [
        f"{BATCHES} batches of {SIZE:,} typed events ({events.nbytes / SIZE:.0f} bytes each in memory), "
        f"on disk at the end, median of {ROUNDS}:",
        "",
        "| compression | Arrow IPC file, events/s | log, events/s | log to file |",
        "|---|---|---|---|",
    ]
    for compression in ("none", "lz4", "zstd"):
        rates: dict[str, list[float]] = {"file": [], "log": []}
        for _ in range(ROUNDS + 1):
            rates["file"].append(_write_file(work, events, compression))
            rates["log"].append(_write_log(work, events, compression))
        file, log = (statistics.median(found[1:]) for found in rates.values())
        lines.append(f"| {compression} | {file:,.0f} | {log:,.0f} | {log / file:.2f} |")
    return lines


def _write_file(work: Path, events: pa.RecordBatch, compression: str) -> float:
    codec = None if compression == "none" else compression
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    path = work / "plain.arrow"
    path.unlink(missing_ok=True)
    began = time.perf_counter()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, events.schema, options=options) as writer:
        for _ in range(BATCHES):
            writer.write_batch(events)
    with path.open("rb+") as file:
        os.fsync(file)
    return BATCHES * SIZE / (time.perf_counter() - began)


def _write_log(work: Path, events: pa.RecordBatch, compression: str) -> float:
    log = Log(LocalStorage(_stream(work / "log", compression)))
    began = time.perf_counter()
    for _ in range(BATCHES):
        log.append(events)
    written = log.bounds().next
    log.close()
    rate = BATCHES * SIZE / (time.perf_counter() - began)
    if written != BATCHES * SIZE:
        raise SystemExit("events are missing")
    return rate


def _stream(directory: Path, compression: str = "zstd") -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    spec = StreamSpec.model_validate({"schema": SCHEMA, "wal": {"compression": compression}})
    write_config(directory, StreamConfig(directory.name, spec))
    return directory


def _start(work: Path) -> list[str]:
    """Open many streams with long histories in a new process."""
    home = work / "many"
    for i in range(STREAMS):
        _history(home / f"s{i}")
    logical = sum(file.stat().st_size for file in home.rglob("*.log"))
    script = """
import resource, sys, time
began = time.perf_counter()
from pathlib import Path
from penstock.streams.pool import Pool
pool = Pool()
for directory in sorted(Path(sys.argv[1]).iterdir()):
    log = pool.log(directory)
    log.storage.maintain()
    log.storage.usage()
took = time.perf_counter() - began
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    told = subprocess.run(
        [sys.executable, "-c", script, str(home)], check=True, capture_output=True, text=True
    ).stdout
    seconds, memory = map(float, told.splitlines()[-1].split())
    shutil.rmtree(home)
    return [
        f"Start with {STREAMS} streams of {SEGMENTS} segments, {logical / 2**30:.0f} GiB logical (sparse "
        f"files): {seconds:.1f} s and {memory:.0f} MiB, imports included."
    ]


def _history(directory: Path) -> None:
    """Create a stream whose closed segments are sparse: only their sizes and their indexes are real."""
    _stream(directory)
    (directory / "floor").write_text(str(SEGMENTS * 1000))  # the start of the real segment
    log = Log(LocalStorage(directory))
    log.append(batch(SIZE))
    log.close()
    (directory / "tail").unlink()  # rebuilt from the segments, as after a power loss
    now = time.time_ns() // 1000
    for base in range(0, SEGMENTS * 1000, 1000):
        path = segment_path(directory, base)
        path.touch()
        os.truncate(path, LOGICAL)
        offsets = list(range(base, base + 1000))
        positions = [n * (LOGICAL // 1000) for n in range(1000)]
        index = Index(base, base + 1000, LOGICAL, now, now, 0, offsets, positions, [now] * 1000)
        index_path(path).write_bytes(index.encode())


class _SlowDisk(Files):
    """A disk with a slow sync."""

    def __init__(self, sync_ms: float) -> None:
        self._sync_s = sync_ms / 1000

    def sync(self, fd: int) -> None:
        time.sleep(self._sync_s)
        super().sync(fd)


def grouped_rate(work: Path, grouped: bool, threads: int, sync_ms: float, seconds: float = 3.0) -> float:
    """The rate at which threads append single events to a stream with `sync: true`, per second."""
    directory = work / "grouped"
    shutil.rmtree(directory, ignore_errors=True)
    group = {} if grouped else {"max_events": 1, "max_ms": 0}
    spec = StreamSpec.model_validate({"schema": SCHEMA, "wal": {"sync": True, "batch": group}})
    write_config(directory, StreamConfig("grouped", spec))
    log, event, until = Log(LocalStorage(directory, _SlowDisk(sync_ms))), batch(1), time.monotonic() + seconds

    def append() -> None:
        while time.monotonic() < until:
            log.append(event, flush=False)

    started = [threading.Thread(target=append) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    log.close()
    return LocalStorage(directory).bounds().next / seconds
