"""The frames of a stream in Kafka: the records of the second partition of its topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.streams.frames import HEADER_SIZE, Body, Frame, Placed, decode_body, is_sound, parse_header
from penstock.streams.kafka.clients import LARGEST, Clients
from penstock.streams.kafka.cluster import ANSWER_S, unreachable
from penstock.streams.kafka.topics import FRAMES
from penstock.streams.storage import Damaged, Span, WriteFailed

if TYPE_CHECKING:
    from confluent_kafka import Consumer

AHEAD_KIB = 16 * 1024
"""KiB that a reader prefetches."""

WAIT_MS = 20
"""Milliseconds that a fetch waits at the end of the partition: the next fetch has to wait for it."""

SKIPPED = 16
"""Frames that a reader skips instead of seeking: frames of tasks that wrote at the same time."""

RESTED_S = 10.0
"""Seconds after which the consumer of an idle reader is closed: it would fetch all new records."""


class Bodies:
    """Writes and reads frames. For any thread."""

    def __init__(self, clients: Clients, topic: str) -> None:
        self._clients, self._topic = clients, topic
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._position, self._used_at = -1, 0.0

    def write(self, bodies: Sequence[Body]) -> list[tuple[int, int]]:
        """Write frames; returns the place and the size of each. They are invisible until in the journal."""
        encoded = [b"".join(map(bytes, Frame(0, 0, body).encode())) for body in bodies]
        if (most := max(map(len, encoded), default=0)) > LARGEST - 1024:
            raise WriteFailed(
                f"a frame of {most:,} bytes exceeds the limit of a stream in Kafka ({LARGEST:,})"
            )
        sent = [self._clients.send(self._topic, FRAMES, data) for data in encoded]
        return [
            (self._clients.confirmed(future), len(data)) for future, data in zip(sent, encoded, strict=True)
        ]

    def read(self, span: Span, place: int) -> pa.RecordBatch:
        """The events of a frame; raises `Damaged` if the frame is missing or invalid."""
        with self._lock:
            data = self._record(span, place)
        header = parse_header(data)
        rest = memoryview(data)[HEADER_SIZE:]
        if header is None or not is_sound(header, bytes(rest)):
            raise Damaged(span.base, span.next, "wrong checksum")
        if header.lost:
            raise Damaged(span.base, span.next, "damaged before the stream was moved")
        return decode_body(rest[header.meta_size :])

    def body(self, placed: Placed) -> Body:
        """The events of a frame that no journal entry names; raises `Damaged` if the frame is missing."""
        with self._lock:
            data = self._record(Span(0, placed.count, 0, 0), placed.place)
        header = parse_header(data)
        if header is None or not is_sound(header, data[HEADER_SIZE:]):
            raise Damaged(0, placed.count, "wrong checksum")
        return Body(data[HEADER_SIZE + header.meta_size :], placed.count, placed.raw_bytes)

    def _record(self, span: Span, place: int) -> bytes:
        from confluent_kafka import KafkaError, TopicPartition

        self._used_at = time.monotonic()
        if self._consumer is None:
            settings = {"queued.max.messages.kbytes": AHEAD_KIB, "fetch.wait.max.ms": WAIT_MS}
            self._consumer = self._clients.consumer(**settings)
        if not self._position <= place <= self._position + SKIPPED or self._position < 0:
            self._consumer.assign([TopicPartition(self._topic, FRAMES, place)])
        self._position = -1
        until, reason = time.monotonic() + ANSWER_S, "no response"
        while time.monotonic() < until:
            message = self._consumer.poll(1.0)
            if message is None:
                continue
            if (error := message.error()) is not None:
                if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                    raise Damaged(span.base, span.next, "missing")
                reason = error.str()  # such as a restarting broker: the client retries on its own
                continue
            at = int(message.offset() or 0)
            if at > place:
                raise Damaged(span.base, span.next, "missing")
            if at == place:
                self._position = place + 1
                return bytes(message.value() or b"")
        raise unreachable(self._clients.cluster, reason)

    def rest(self) -> None:
        """Close the consumer of a reader that has not read for a while."""
        idle = self._consumer is not None and time.monotonic() - self._used_at > RESTED_S
        if idle and self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Close the consumer."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._position = None, -1
