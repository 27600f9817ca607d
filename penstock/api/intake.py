"""Receives events over HTTP: reads bodies within limits, decodes them once, and appends them in groups.

Runs in the event loop of the server, which is never blocked: large bodies are decoded in a thread, and a
request that has to wait for space in a stream waits in a thread too, or is rejected if too many are waiting.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from anyio import CapacityLimiter, to_thread
from fastapi import Request

from penstock.api.awaited import Awaited, Results
from penstock.control.streams.doors import Door
from penstock.errors import Backpressure, PenstockError, Problem, TooLarge, Unavailable
from penstock.streams.committer import Closed, Dropped, Marks
from penstock.streams.decode import Decoded, Misfit, decode, decode_alone
from penstock.streams.decode.compression import decompress
from penstock.streams.events import HEADERS, META, RAW, Event
from penstock.streams.log import Log
from penstock.streams.storage import Appended, Producer, Refusal, WriteFailed

INLINE_BYTES = 512 * 1024
"""Bodies up to this size are decoded inline: switching threads would cost more."""

MOST_HELD = 256 * 1024 * 1024
"""Maximum bytes of bodies in memory at once; beyond that, requests are rejected and can be retried."""

MOST_WAITING = 64
"""Maximum requests that wait for space at once, each in a thread."""

LEAST_PATIENCE_S = 1.0
"""Minimum seconds before an append is withdrawn, even if `timeout_ms` is shorter: a disk may be slow."""

LOOK_S, AGAIN_S = 0.5, 0.01
"""Seconds between checks of a waiting append: is its client connected and, when late, can it be withdrawn."""


class Refused(PenstockError):
    """Events were rejected; `retry_after` is the number of seconds after which to retry."""

    def __init__(self, status: int, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.status, self.retry_after = status, retry_after


class Intake:
    """Reads and decodes bodies, and appends their events."""

    def __init__(self) -> None:
        self._waiting = CapacityLimiter(MOST_WAITING)
        self.held = 0
        """Bytes of bodies in memory."""
        self._results: Results | None = None

    def body(self, request: Request, limit: int) -> Body:
        """The decompressed body of a request; `limit` applies before and after decompression."""
        return Body(self, request, limit)

    async def decode(
        self, body: bytes, content_type: str | None, door: Door, key: bytes | None
    ) -> Event | Decoded:
        """The events of a body in the form that the stream stores; most bodies have a single event."""
        if key is None and len(body) <= INLINE_BYTES:
            alone = decode_alone(content_type, body, door.form, door.spec.timestamps)
            if alone is not None:
                return alone

        def read() -> Decoded:
            return decode(body, content_type, door.schema, key=key, timestamps=door.spec.timestamps)

        if len(body) <= INLINE_BYTES:
            return read()
        return await to_thread.run_sync(read)

    async def digest(self, body: bytes) -> str:
        """The digest of a body, to distinguish a retried batch from a different one."""
        if len(body) <= INLINE_BYTES:
            return _digest(body)
        return await to_thread.run_sync(_digest, body)

    async def append(
        self,
        request: Request,
        log: Log,
        events: Event | pa.RecordBatch,
        producer: Producer | None = None,
        tx: Marks = (),
    ) -> Appended:
        """Append events and wait until the stream's guarantee holds for them; `Refused` if rejected."""
        entry = self._entry(events, producer, tx)
        try:
            try:
                log.put(entry, wait_s=0)
            except Backpressure:
                await self._wait_for_room(log, entry)
            return await self._settled(request, log, entry)
        except Backpressure as full:
            raise _full(log, full.retry_after) from None
        except Dropped as dropped:
            message = f"the stream is full: {dropped} and counted, as configured"
            raise Refused(429, Problem(code=dropped.reason, message=message), dropped.retry_after) from None
        except Refusal as refusal:
            path = "epoch" if refusal.code == "fenced" else "batch"
            problem = Problem(code=refusal.code, message=str(refusal), path=path, hint=refusal.hint)
            raise Refused(409, problem) from None
        except WriteFailed as failed:
            message = f"{failed}; nothing was stored"
            raise Refused(503, Problem(code="write_failed", message=message), log.retry_after) from None
        except Closed:
            message = "the stream is being closed; nothing was stored"
            raise Refused(503, Problem(code="closing", message=message), log.retry_after) from None

    def _entry(self, events: Event | pa.RecordBatch, producer: Producer | None, marks: Marks) -> Awaited:
        loop, tx = asyncio.get_running_loop(), tuple(marks)
        if self._results is None or self._results.loop is not loop:
            self._results = Results(loop)
        if isinstance(events, Event):
            return Awaited(1, events.bytes, producer=producer, tx=tx, event=events, results=self._results)
        return Awaited(
            events.num_rows, events.nbytes, events, producer=producer, tx=tx, results=self._results
        )

    async def _wait_for_room(self, log: Log, entry: Awaited) -> None:
        if not self._waiting.available_tokens:
            raise Backpressure("too many requests are waiting for free space", log.retry_after)
        buffer = log.storage.spec.buffer
        # With `timeout` the log itself times out, and counts the dropped events.
        patience = None if buffer.mode == "timeout" else buffer.timeout_ms / 1000
        await to_thread.run_sync(log.put, entry, patience, limiter=self._waiting)

    async def _settled(self, request: Request, log: Log, entry: Awaited) -> Appended:
        """Wait for an append; withdraw it when the client has disconnected or the wait has timed out."""
        buffer = log.storage.spec.buffer
        patience = max(buffer.timeout_ms / 1000, LEAST_PATIENCE_S) + (buffer.mode == "timeout")
        deadline = time.monotonic() + patience
        left = patience
        # An append that is being written can't be withdrawn, but may return to the queue if space is lacking.
        while not await entry.settled(min(max(left, AGAIN_S), LOOK_S)):
            if (left <= 0 or await request.is_disconnected()) and log.withdraw(entry):
                raise Backpressure("the stream is full", log.retry_after)
            left = deadline - time.monotonic()
        return entry.result()


class Body:
    """The body of a request; its bytes count as held while it is open."""

    def __init__(self, intake: Intake, request: Request, limit: int) -> None:
        self._intake, self._request, self._limit = intake, request, limit
        self._held = 0

    async def __aenter__(self) -> bytes:
        """Receive the body, and decompress it if necessary."""
        try:
            return await self._receive()
        except BaseException:
            self._hold(-self._held)
            raise

    async def __aexit__(self, *error: object) -> None:
        """Release the bytes of the body."""
        self._hold(-self._held)

    async def _receive(self) -> bytes:
        if int(header(self._request, b"content-length") or 0) > self._limit:
            raise _too_large(self._limit)
        chunks: list[bytes] = []
        more = True
        while more:
            message = await self._request.receive()
            if message["type"] == "http.disconnect":
                raise PenstockError(Problem(code="incomplete_body", message="the request body is incomplete"))
            chunk = message.get("body", b"")
            self._hold(len(chunk))
            if self._held > self._limit:
                raise _too_large(self._limit)
            if self._intake.held > MOST_HELD:
                raise _busy()
            chunks.append(chunk)
            more = message.get("more_body", False)
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if encoding := header(self._request, b"content-encoding"):
            body = await to_thread.run_sync(decompress, body, encoding, self._limit)
            self._hold(len(body))
        return body

    def _hold(self, size: int) -> None:
        self._held += size
        self._intake.held += size


def header(request: Request, name: bytes) -> str | None:
    """The value of a header; `name` is in lower case."""
    # Not `request.headers`, which is several times slower for reading a few headers once.
    for found, value in request.scope["headers"]:
        if found == name:
            return str(value, "latin-1")
    return None


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def letters(misfits: Sequence[Misfit], stream: str) -> pa.RecordBatch:
    """Misfits as events for the dead-letter stream: the original event, and the reason."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    headers = [
        [
            ("code", misfit.code),
            ("reason", misfit.reason),
            ("line", str(misfit.line)),
            ("stream", stream),
            ("at", at),
        ]
        for misfit in misfits
    ]
    schema = pa.schema([*RAW, META.field(HEADERS)])
    values = pa.array([misfit.value for misfit in misfits], pa.binary())
    return pa.record_batch([values, pa.array(headers, schema.field(HEADERS).type)], schema=schema)


def _full(log: Log, retry_after: float) -> Refused:
    reason = log.fill["full"]
    code = str(reason or "buffer_full")
    message = f"the stream is full ({code.replace('_', ' ')}); nothing was stored"
    hint = "retry later"
    return Refused(503, Problem(code=code, message=message, hint=hint), retry_after)


def _too_large(limit: int) -> TooLarge:
    message = f"the body has more than {limit} bytes"
    return TooLarge(
        Problem(code="body_too_large", message=message, hint="send the events in several requests")
    )


def _busy() -> Unavailable:
    message = "too many bytes are being received at once; nothing was stored"
    return Unavailable(Problem(code="busy", message=message, hint="retry in a moment"))
