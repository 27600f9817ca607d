"""The `nats` sink: events as messages of JetStream."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from penstock.connectors.base import DeliveryId, Guarantee, SinkWriter
from penstock.connectors.messages.connected import KEY_HEADER, ConnectedWriter, Connection, Refused, key_text
from penstock.connectors.messages.ids import MessageIds
from penstock.connectors.messages.shape import Limits
from penstock.connectors.messages.sink import Message, MessageSink
from penstock.connectors.messages.template import columns_of, fixed_text
from penstock.connectors.nats.check import probe_nats
from penstock.connectors.nats.client import (
    ANSWER_S,
    FULL,
    OWN_HEADERS,
    TOO_LARGE,
    NatsConnection,
    NatsEnd,
    Refusal,
    covers,
    unknown_stream,
)
from penstock.connectors.probe import Probe
from penstock.errors import Backpressure, Retryable, Unavailable
from penstock.frames.site import Site
from penstock.specs.templates import Template

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from pyspark.sql import SparkSession

WINDOW = 2000
"""Maximum number of unacknowledged messages at a time."""

PAUSE_S = 1.0
"""Seconds to wait for space in a full stream."""

VALID = r"^[^\s.*>]+(\.[^\s.*>]+)*\z"
"""Subjects that can be published to: no empty token, no wildcard, no space."""

HEADER = re.compile(r"[!-9;-~]+")
"""Names of headers that NATS supports."""

OVERHEAD = 512
"""Maximum bytes of the headers that this sink adds."""


class NatsSink(NatsEnd, MessageSink):
    """Publishes each event as a message of NATS JetStream, and waits until a stream has stored it.

    Delivery is at-least-once: a batch that is retried after a crash or a failed attempt is published again.
    Each message has a `Nats-Msg-Id` that is the same in every attempt, so the server drops duplicates within
    the `duplicate_window` of the stream (two minutes by default): within this window, delivery is
    exactly-once. Messages are published in the order of the events.

    The value of a message is the column `value` if it is text or bytes; otherwise it is the whole event as a
    JSON object. `_headers` become headers, and `_key` becomes the header `Penstock-Key`; without them the
    event keeps the headers and key it arrived with. Headers that begin with `Nats-` are omitted. An event
    that is too large, whose subject is not valid or not captured by any stream, or whose headers can't be
    sent unchanged goes to the dead letters.
    """

    type: Literal["nats"] = "nats"
    subject: Template = Field(
        min_length=1,
        description="Subject of each message; `{column}` is replaced by the value of that column.",
    )
    max_event_bytes: int = Field(
        default=1024 * 1024 - OVERHEAD,
        ge=1,
        le=64 * 1024 * 1024,
        description="Larger events go to the dead letters. The server and the stream also have limits.",
    )

    guarantee: ClassVar[Guarantee] = "at-least-once"
    tested: ClassVar = "NATS Server 2.9.10"
    example: ClassVar = """\
type: nats
servers: [nats-1.example:4222, nats-2.example:4222]
subject: orders.{country}
security:
  tls: {}
  login: {username: penstock, password: '${NATS_PASSWORD}'}
"""

    @field_validator("subject")
    @classmethod
    def _is_template(cls, value: str) -> str:
        columns_of(value)
        return value

    @property
    def template(self) -> str:
        return self.subject

    @property
    def limits(self) -> Limits:
        return Limits(self.max_event_bytes, "subject", VALID)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_nats(self, subject=fixed_text(self.subject))

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self)


class _Writer(ConnectedWriter["_Publisher"]):
    def __init__(self, sink: NatsSink) -> None:
        super().__init__()
        self.sink = sink

    def connect(self) -> _Publisher:
        return _Publisher(self.sink)


class _Publisher(Connection):
    """Publishes batches over one NATS connection."""

    def __init__(self, sink: NatsSink) -> None:
        self.fixed = fixed_text(sink.subject) is not None
        self.nats = NatsConnection(sink)

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> list[Refused]:
        from nats.errors import Error

        try:
            return self.nats.call(_Batch(self.nats, self.fixed).publish(messages, delivery))
        except (Error, OSError) as error:
            raise Retryable(f"the connection to NATS was lost: {error}") from None
        except CancelledError:
            raise Retryable("the run ended before the batch was acknowledged") from None

    def cancel(self) -> None:
        self.nats.cancel()

    def close(self) -> None:
        self.nats.close()


class _Batch:
    """Publishes the messages of a batch, and tracks unacknowledged messages."""

    def __init__(self, nats: NatsConnection, fixed: bool) -> None:
        self.nats, self.fixed = nats, fixed
        self.waiting: set[int] = set()
        self.answers: list[tuple[int, Msg]] = []
        """Responses that are not acknowledgments."""
        self.changed = asyncio.Event()

    async def publish(self, messages: Sequence[Message], delivery: DeliveryId) -> list[Refused]:
        client = self.nats.client
        inbox = client.new_inbox()
        ids = MessageIds(delivery)
        subscription = await client.subscribe(f"{inbox}.*", cb=self._answered)
        refused: list[Refused] = []
        for number, message in enumerate(messages):
            try:
                headers = _headers(message)
            except ValueError as error:
                refused.append((number, "invalid_header", str(error)))
                continue
            headers["Nats-Msg-Id"] = ids.of(message)
            if (size := _size(message, headers)) > self.nats.max_payload:
                reason = f"the message has {size} bytes; the limit of the server is {self.nats.max_payload}"
                refused.append((number, "too_large", reason))
                continue
            await self._room(WINDOW)
            self.waiting.add(number)
            await client.publish(message.target, message.value or b"", f"{inbox}.{number}", headers)
        await self._room(1)
        await subscription.unsubscribe()
        return refused + [await self._judged(number, msg, messages) for number, msg in self.answers]

    async def _answered(self, msg: Msg) -> None:
        number = int(msg.subject.rpartition(".")[2])
        if b'"error"' in msg.data or not msg.data:
            self.answers.append((number, msg))
        self.waiting.discard(number)
        self.changed.set()

    async def _room(self, most: int) -> None:
        """Wait until fewer than `most` messages are unacknowledged."""
        while len(self.waiting) >= most:
            if not await self.nats.wait_for(self.changed, ANSWER_S):
                raise Retryable(f"JetStream did not acknowledge a message within {ANSWER_S:.0f} seconds")

    async def _judged(self, number: int, msg: Msg, messages: Sequence[Message]) -> Refused:
        """A message that is permanently rejected; raises if it may be accepted later."""
        subject = messages[number].target
        if not msg.data:  # no response: there is no stream, or it currently has no leader
            streams = [each["config"] for each in await self.nats.streams()]
            if any(covers(each, subject) for stream in streams for each in stream.get("subjects") or ()):
                raise Retryable(f"the stream of '{subject}' is not responding")
            names = [stream["name"] for stream in streams]
            problem = unknown_stream(f"no stream captures the subject '{subject}'", "subject", names)
            if self.fixed:
                raise Unavailable(problem)
            return number, problem.code, problem.message
        refusal = Refusal(json.loads(msg.data)["error"])
        if refusal.number == TOO_LARGE:
            return number, "too_large", refusal.reason
        if refusal.number in FULL:
            raise Backpressure(f"the stream of '{subject}' is full: {refusal.reason}", PAUSE_S)
        raise Retryable(str(refusal))


def _headers(message: Message) -> dict[str, str]:
    """The headers of a message; ValueError if NATS would change one."""
    headers = {
        name: value or ""
        for name, value in message.headers.items()
        if not name.lower().startswith(OWN_HEADERS)
    }
    if (key := key_text(message)) is not None:
        headers[KEY_HEADER] = key
    for name, value in headers.items():
        if not HEADER.fullmatch(name):
            raise ValueError(f"NATS doesn't support a header named '{name}'")
        if value != value.strip() or any(sign in value for sign in "\r\n"):
            raise ValueError(f"the header '{name}' has a value with line breaks or surrounding spaces")
    return headers


def _size(message: Message, headers: Mapping[str, str]) -> int:
    """The size in bytes as the server counts it: `NATS/1.0`, a line per header, and an empty line."""
    lines = sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
    return len(message.value or b"") + 10 + lines + 2
