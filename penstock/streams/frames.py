"""Frames: the records of a log file.

A frame is a header, JSON about producers and transactions (usually empty) and one Arrow record batch as a
complete IPC stream, so that a frame can be read on its own:

    header   magic, checksum of the header, base offset, append time, count, lengths, checksum of the rest
    meta     {"producers": [[first, next, producer, epoch, batch, optional digest and position], …],
              "tx": [[first, next, id, closed], …]}
    body     Arrow IPC, its buffers compressed by none, lz4 or zstd

The header has its own checksum: if a body is damaged, the header still identifies the lost offsets and the
start of the next frame.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import google_crc32c
import pyarrow as pa

MAGIC = b"PSF1"
_HEADER = struct.Struct("<4sIQqIIIIQHxx")
HEADER_SIZE = _HEADER.size
_CHECKED = 8
"""The position after the header's checksum: the checksum covers the header from here on."""

MORE, CONTROL, LOST = 1, 2, 4
LARGEST = 1 << 30
"""The maximum size of a frame: a larger length means a damaged header that passed its checksum by chance."""


@dataclass(frozen=True)
class Header:
    """The header of a frame."""

    base: int
    time_us: int
    count: int
    meta_size: int
    body_size: int
    checksum: int
    raw_bytes: int
    flags: int

    @property
    def next(self) -> int:
        """The offset after the last event of the frame."""
        return self.base + self.count

    @property
    def size(self) -> int:
        """The length of the frame in the file, in bytes."""
        return HEADER_SIZE + self.meta_size + self.body_size

    @property
    def more(self) -> bool:
        """Whether the append continues in the next frame."""
        return bool(self.flags & MORE)

    @property
    def control(self) -> bool:
        """Whether the frame holds the state of producers instead of events."""
        return bool(self.flags & CONTROL)

    @property
    def lost(self) -> bool:
        """Whether the frame was written by a repair, in place of unreadable events."""
        return bool(self.flags & LOST)


@dataclass(frozen=True)
class Body:
    """Encoded events, ready to be stored. Encoding needs no offset, so any process can do it in advance."""

    data: bytes | pa.Buffer
    count: int
    raw_bytes: int


@dataclass(frozen=True)
class Placed(Body):
    """Events that a task has already written to the topic of a stream in Kafka; `data` is their schema."""

    place: int
    size: int


@dataclass(frozen=True)
class Frame:
    """A frame to be written."""

    base: int
    time_us: int
    body: Body
    meta: Mapping[str, Any] = field(default_factory=dict)
    more: bool = False
    control: bool = False
    lost: bool = False

    def encode(self) -> list[bytes | pa.Buffer]:
        """The bytes of the frame: header, meta and body."""
        meta = json.dumps(self.meta, separators=(",", ":")).encode() if self.meta else b""
        data = self.body.data
        checksum = google_crc32c.extend(google_crc32c.value(meta), data)
        if len(meta) + len(data) > LARGEST:
            raise ValueError(f"{len(data)} bytes are more than fit a frame")
        flags = (MORE if self.more else 0) | (CONTROL if self.control else 0) | (LOST if self.lost else 0)
        fields = (self.base, self.time_us, self.body.count, len(meta), len(data), checksum)
        header = _HEADER.pack(MAGIC, 0, *fields, self.body.raw_bytes, flags)
        header = MAGIC + struct.pack("<I", google_crc32c.value(header[_CHECKED:])) + header[_CHECKED:]
        return [header, meta, data]


def parse_header(data: bytes, at: int = 0) -> Header | None:
    """The header at a position, or None if it is incomplete or invalid."""
    if len(data) - at < HEADER_SIZE or data[at : at + 4] != MAGIC:
        return None
    _, told, base, time_us, count, meta, body, checksum, raw, flags = _HEADER.unpack_from(data, at)
    if google_crc32c.value(data[at + _CHECKED : at + HEADER_SIZE]) != told or meta + body > LARGEST:
        return None
    return Header(base, time_us, count, meta, body, checksum, raw, flags)


def is_sound(header: Header, rest: bytes) -> bool:
    """Whether the meta and body of a frame are complete and match the checksum."""
    whole = len(rest) == header.meta_size + header.body_size
    return whole and google_crc32c.value(rest) == header.checksum


def parse_meta(data: bytes) -> dict[str, Any]:
    """The meta of a frame with a valid checksum."""
    return json.loads(data) if data else {}


def encode_body(batch: pa.RecordBatch, compression: str) -> Body:
    """A record batch as the body of a frame."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_write_options(compression)) as writer:
        writer.write_batch(batch)
    return Body(sink.getvalue(), batch.num_rows, batch.nbytes)


def decode_body(data: bytes | memoryview) -> pa.RecordBatch:
    """The record batch in the body of a frame."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def slices(batch: pa.RecordBatch, max_events: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """A batch in parts of at most `max_events` events and about `max_bytes` bytes."""
    parts = max(1, -(-batch.nbytes // max_bytes))
    step = max(1, min(max_events, -(-batch.num_rows // parts)))
    if batch.num_rows <= step:
        yield batch
        return
    for first in range(0, batch.num_rows, step):
        yield batch.slice(first, step)


@cache
def _write_options(compression: str) -> pa.ipc.IpcWriteOptions:
    # Threads per buffer only help large batches, and take CPU time from concurrent tasks.
    codec = None if compression == "none" else compression
    return pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
