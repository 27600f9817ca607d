"""Streams for tests: made, changed, filled and read in one line each."""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.specs.stream import StreamSpec
from penstock.streams.config import StreamConfig, read_config, write_config
from penstock.streams.events import RAW
from penstock.streams.files import Files
from penstock.streams.kafka.cluster import Cluster
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.remote.host import StreamHost
from penstock.streams.remote.storage import SERVERS

NIGHTLY = bool(os.environ.get("PENSTOCK_TEST_NIGHTLY"))
"""Whether there is time for every kill and every bit: set by `make nightly`."""


def make_stream(
    directory: Path,
    *,
    memory: Path | None = None,
    free_bytes: int = 0,
    id: str = "s",
    kafka: Cluster | None = None,
    **spec: Any,
) -> Path:
    """Make the directory of a stream, or change all its settings: `wal={"sync": True}, buffer={…}`."""
    config = StreamConfig(id, StreamSpec.model_validate(spec), memory, free_bytes, kafka=kafka)
    write_config(directory, config)
    return directory


def far_side(directory: Path) -> Path:
    """The directory of the same stream on another machine, whose server has this disk."""
    host, far = StreamHost(), directory.parent / "far" / directory.name

    def ask(_: str, life: str, method: str, message: bytes) -> bytes:
        near = directory.parent / life
        return (
            asyncio.run(host.wait(near, message)) if method == "wait" else host.answer(near, method, message)
        )

    SERVERS[str(directory)] = ask
    write_config(far, replace(read_config(directory), server=str(directory)))
    return far


def cluster_of(address: str) -> Cluster:
    """A broker as a cluster for streams, with topics that no other test has."""
    return Cluster(address, prefix=f"t{uuid.uuid4().hex[:12]}.", replication=1)


def change(directory: Path, **settings: Any) -> None:
    """Change some settings of a stream: `wal={"segment_bytes": 100}`; the others stay."""
    config = read_config(directory)
    spec = config.spec.model_dump(by_alias=True)
    for name, value in settings.items():
        spec[name] = {**spec[name], **value} if isinstance(value, dict) else value
    write_config(directory, replace(config, spec=StreamSpec.model_validate(spec)))


@contextmanager
def opened(directory: Path, files: Files | None = None) -> Iterator[Log]:
    """The log in a directory, closed afterwards."""
    log = Log(open_storage(directory) if files is None else LocalStorage(directory, files))
    try:
        yield log
    finally:
        log.close()


def raw(values: list[bytes]) -> pa.RecordBatch:
    """Events of a raw stream."""
    return pa.record_batch([pa.array(values, pa.binary())], schema=RAW)


def events(count: int, first: int = 0, size: int = 0) -> pa.RecordBatch:
    """Raw events `e0`, `e1` … from a number on, each filled up to a size."""
    return raw([b"e%d" % number + b"." * max(0, size - 8) for number in range(first, first + count)])


def values(log: Log, start: int = 0, stop: int | None = None) -> list[bytes]:
    """The values from an offset on; fails if one of them cannot be read, or offsets are not dense."""
    found: list[bytes] = []
    at = None
    for chunk in log.read(max(start, log.bounds().first), stop):
        assert chunk.lost is None, chunk
        assert chunk.batch is not None
        assert at is None or chunk.base == at
        assert chunk.next - chunk.base == chunk.batch.num_rows
        found += chunk.batch.column(0).to_pylist()
        at = chunk.next
    return found


@contextmanager
def fast_directory() -> Iterator[Path]:
    """A directory in memory, if the machine has such: for tests that open thousands of streams."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        yield Path(directory)
