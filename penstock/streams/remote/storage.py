"""A stream on the disk of a server, as used by a worker on another machine.

Every method of the storage is a request. The local directory holds only `stream.json`, which names the
server; the server has the events, cursors and counters, and checks producers and epochs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.streams.config import config_version, read_config
from penstock.streams.frames import HEADER_SIZE, decode_body, is_sound, parse_header
from penstock.streams.remote.messages import pack, pack_appends, unpack, unpack_error, unpack_result
from penstock.streams.storage import (
    Append,
    Appended,
    Bounds,
    Cursor,
    Damaged,
    Progress,
    Refusal,
    Span,
    Storage,
    Usage,
    WriteFailed,
)

Ask = Callable[[str, str, str, bytes], bytes]
"""Sends a request: the id and the life of a stream, a method, its arguments. May raise `Unavailable`."""

SERVERS: dict[str, Ask] = {}
"""The servers that this process is connected to, by URL."""

WAIT_S = 2.0
"""Maximum seconds that one request waits for events: proxies in between may have timeouts."""


class RemoteStorage(Storage):
    """The log of a stream on a server."""

    kind = "remote"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._version = config_version(directory)
        config = read_config(directory)
        self._server = self._told = config.server
        if config.server is None or config.server not in SERVERS:
            raise WriteFailed(f"stream '{config.id}' is on a server that this process is not connected to")
        self.spec, self._id, self._ask = config.spec, config.id, SERVERS[config.server]
        self._unsynced = False

    # Reading

    def bounds(self) -> Bounds:
        return Bounds(*self._value("bounds"))

    def last_bounds(self) -> Bounds:
        return Bounds(*self._value("last_bounds"))

    def wait(self, offset: int, seconds: float) -> bool:
        while seconds > 0:
            if self._value("wait", offset, min(seconds, WAIT_S)):
                return True
            seconds -= WAIT_S
        return self.bounds().next > offset

    def spans(self, start: int) -> Iterator[Span]:
        while page := self._value("spans", start):
            for told in page:
                yield Span(*told)
            start = page[-1][1]

    def fetch(self, span: Span) -> pa.RecordBatch:
        _, (frame,) = self._call("fetch", span.base, span.next)
        data = bytes(frame)
        header = parse_header(data)
        if header is None or not is_sound(header, rest := data[HEADER_SIZE:]):
            raise Damaged(span.base, span.next, "checksum")
        return decode_body(memoryview(rest)[header.meta_size :])

    def transactions(self, first: int, end: int) -> list[tuple[int, int, str, bool]]:
        return [tuple(mark) for mark in self._value("transactions", first, end)]

    def offset_at(self, time_us: int) -> int:
        return int(self._value("offset_at", time_us))

    def usage(self) -> Usage:
        return Usage(**self._value("usage"))

    # Cursors and counters

    def cursors(self) -> list[Cursor]:
        return [Cursor(*told) for told in self._value("cursors")]

    def move_cursor(self, cursor: Cursor) -> None:
        self._value("move_cursor", cursor.reader, cursor.next, cursor.epoch, cursor.at, cursor.skipped)

    def forget_cursor(self, reader: str) -> None:
        self._value("forget_cursor", reader)

    def count(self, **counts: int) -> None:
        self._value("count", counts)

    def counts(self) -> Mapping[str, int]:
        return dict(self._value("counts"))

    def progress(self, producer: str) -> Progress:
        return Progress(*self._value("progress", producer))

    # Writing

    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        self._unsynced = not self.spec.wal.sync
        value, _ = self._answer("write", pack_appends(appends))
        return [unpack_result(told) for told in value]

    def flush(self) -> None:
        if self._unsynced:
            self._value("flush")
            self._unsynced = False

    def maintain(self) -> None:
        self._value("maintain")

    def close(self) -> None:
        return None

    @property
    def moved(self) -> bool:
        """Whether another server now has the stream. The kind of storage on the server does not matter."""
        self.refresh()
        return self._told != self._server

    def refresh(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the stream was deleted
            version = config_version(self.directory)
            if version != self._version:
                config = read_config(self.directory)
                self.spec, self._told, self._version = config.spec, config.server, version

    # Requests

    def _value(self, method: str, *given: Any) -> Any:
        return self._call(method, *given)[0]

    def _call(self, method: str, *given: Any) -> tuple[Any, list[memoryview]]:
        return self._answer(method, pack(given))

    def _answer(self, method: str, message: bytes) -> tuple[Any, list[memoryview]]:
        told, parts = unpack(self._ask(self._id, self.directory.name, method, message))
        if "error" in told:
            raise unpack_error(told["error"])
        return told["value"], parts
