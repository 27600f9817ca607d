"""An append-only file of Arrow batches, each preceded by its length: the simplest log that Spark can read."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

LENGTH = struct.Struct("<I")


def append(file: Path, batch: pa.RecordBatch) -> None:
    """Append a batch to the file with a single write."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    body = sink.getvalue().to_pybytes()
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, LENGTH.pack(len(body)) + body)
    finally:
        os.close(descriptor)


def end_of(file: Path, start: int) -> int:
    """The end of the last complete batch, searched from the end of an earlier batch."""
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        while start + LENGTH.size <= size:
            opened.seek(start)
            following = start + LENGTH.size + LENGTH.unpack(opened.read(LENGTH.size))[0]
            if following > size:
                break
            start = following
    return start


def read(file: Path, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The batches between two positions of the file."""
    with file.open("rb") as opened:
        opened.seek(start)
        while opened.tell() < end:
            (length,) = LENGTH.unpack(opened.read(LENGTH.size))
            yield from pa.ipc.open_stream(opened.read(length))
