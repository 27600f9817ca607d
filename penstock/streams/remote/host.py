"""Serves the streams on this disk to workers on other machines: handles the requests of `RemoteStorage`.

It opens its own logs, like any other process that appends to them. So writes of a worker go through the same
locks and checks, and a call returns the results and the errors of the storage.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from penstock.streams.frames import Frame, encode_body
from penstock.streams.pool import Pool
from penstock.streams.remote.messages import Parts, pack, pack_error, pack_result, unpack, unpack_appends
from penstock.streams.remote.storage import WAIT_S
from penstock.streams.storage import (
    LONGEST_PAUSE_S,
    SHORTEST_PAUSE_S,
    Bounds,
    Cursor,
    Damaged,
    Moved,
    Progress,
    Span,
    Storage,
)

PAGE = 512
"""The maximum number of spans in one response."""

WRITING = {"write", "flush", "maintain"}

Answer = tuple[Any, Parts]


class StreamHost:
    """Calls the methods of storages on behalf of workers."""

    def __init__(self) -> None:
        self._pool = Pool()
        self._mutex = threading.Lock()
        self._writing: WeakKeyDictionary[Storage, threading.Lock] = WeakKeyDictionary()

    def close(self) -> None:
        """Close all logs."""
        self._pool.close()

    def drop(self, directory: Path) -> None:
        """Close a log whose directory is about to be deleted."""
        self._pool.drop(directory)

    def storage(self, directory: Path) -> Storage:
        """The storage in the directory of a stream."""
        return self._pool.log(directory).storage

    def answer(self, directory: Path, method: str, message: bytes) -> bytes:
        """Call a method and return the response; raises ValueError if the request is invalid."""
        while True:
            storage = self.storage(directory)
            try:
                with self._turn(storage, method):
                    value, parts = _call(storage, method, message)
            except Moved:
                continue  # to Kafka, just now
            except Exception as error:
                if (told := pack_error(error)) is None:
                    raise
                return pack({"error": told})
            return pack({"value": value}, parts)

    async def wait(self, directory: Path, message: bytes) -> bytes:
        """Respond whether there are events at an offset, once there are or after a timeout."""
        (offset, seconds), _ = unpack(message)
        until, pause = time.monotonic() + min(seconds, WAIT_S), SHORTEST_PAUSE_S
        while not (found := self.storage(directory).bounds().next > offset) and time.monotonic() < until:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
        return pack({"value": found})

    def _turn(self, storage: Storage, method: str) -> AbstractContextManager[Any]:
        """The lock for a method: a storage is written to by one thread at a time."""
        if method not in WRITING:
            return nullcontext()
        with self._mutex:
            return self._writing.setdefault(storage, threading.Lock())


def _call(storage: Storage, method: str, message: bytes) -> Answer:
    if method == "write":
        return [pack_result(each) for each in storage.write(unpack_appends(message))], ()
    given, _ = unpack(message)
    if method == "fetch":
        return None, _frame(storage, *given)
    if (known := METHODS.get(method)) is None:
        raise ValueError(f"storages have no method '{method}'")
    return known(storage, *given), ()


def _frame(storage: Storage, base: int, end: int) -> Parts:
    """The frame of a span; the stored bytes if it is in a file."""
    span = next(storage.spans(base), None)
    if span is None or span.base != base or span.lost is not None:
        raise Damaged(base, end, "evicted" if span is None else span.lost or "evicted")
    place = storage.place(span)
    if place is None or place.record is not None:
        frame = Frame(base, span.time_us, encode_body(storage.fetch(span), "lz4"))
        return [b"".join(map(memoryview, frame.encode()))]
    try:
        with open(place.path, "rb") as file:
            file.seek(place.at)
            return [file.read(place.end - place.at)]
    except FileNotFoundError:  # removed in the meantime
        raise Damaged(base, end, "evicted") from None


def _spans(storage: Storage, start: int) -> list[list[Any]]:
    def told(span: Span) -> list[Any]:
        return [span.base, span.next, span.time_us, span.raw_bytes, span.lost]

    return [told(span) for span in itertools.islice(storage.spans(start), PAGE)]


METHODS: dict[str, Callable[..., Any]] = {
    "bounds": lambda storage: _bounds(storage.bounds()),
    "last_bounds": lambda storage: _bounds(storage.last_bounds()),
    "spans": _spans,
    "transactions": lambda storage, first, end: storage.transactions(first, end),
    "offset_at": lambda storage, time_us: storage.offset_at(time_us),
    "usage": lambda storage: vars(storage.usage()),
    "cursors": lambda storage: [[c.reader, c.next, c.epoch, c.at, c.skipped] for c in storage.cursors()],
    "move_cursor": lambda storage, *told: storage.move_cursor(Cursor(*told)),
    "forget_cursor": lambda storage, reader: storage.forget_cursor(reader),
    "count": lambda storage, counts: storage.count(**counts),
    "counts": lambda storage: dict(storage.counts()),
    "progress": lambda storage, producer: _progress(storage.progress(producer)),
    "flush": lambda storage: storage.flush(),
    "maintain": lambda storage: storage.maintain(),
}


def _bounds(bounds: Bounds) -> list[int]:
    return [bounds.first, bounds.next]


def _progress(progress: Progress) -> list[Any]:
    return [progress.following, progress.position]
