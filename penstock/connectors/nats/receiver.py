"""The receiver of the `nats` source: a pull consumer of JetStream."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import uuid
from collections import deque
from concurrent.futures import CancelledError
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.connectors.messages.connected import KEY_HEADER
from penstock.connectors.messages.source import raw_events
from penstock.connectors.nats.client import (
    ANSWER_S,
    API,
    NO_STREAM,
    OWN_HEADERS,
    NatsConnection,
    Refusal,
    unknown_stream,
)
from penstock.connectors.received import Received, Receiver
from penstock.errors import Invalid, Problem, Retryable, Unavailable
from penstock.specs.positions import parse_position

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from penstock.connectors.nats.source import NatsSource

EXPIRES_S = 30
"""Seconds after which a request for messages expires; the server reports its end."""

SILENCE_S = 2 * EXPIRES_S
"""Seconds without a response to such a request after which the connection counts as lost."""

ACK_WAIT_S = 300
"""Seconds after which the server redelivers a message that was not acknowledged."""

IDLE_S = 7 * 24 * 3600
"""Seconds after which the server may remove an unused consumer: a restart creates a new one."""

MOST_BYTES = 64 * 1024 * 1024
"""Maximum bytes to fetch ahead."""

BAD_FILTER = 10093
"""The error number for a subject that the stream does not have."""


class NatsReceiver(Receiver):
    """Reads a JetStream stream by its sequence numbers.

    Each `open` creates a new consumer right after the position. An older consumer would redeliver
    unacknowledged messages after newer ones, and they would be mistaken for messages already received.
    """

    def __init__(self, source: NatsSource, flow: str) -> None:
        self.source = source
        self._prefix = _consumer_name(flow)
        self._nats: NatsConnection | None = None
        self._consumer = self._inbox = ""
        self._queue: deque[Msg] = deque()
        self._changed = asyncio.Event()
        self._repeats: list[str] = []
        """The reply subjects for acknowledging messages that were already received."""
        self._last = 0
        """The stream sequence number of the last received message."""
        self._delivered = 0
        """The consumer sequence number of the last delivered message."""
        self._wanted = 0
        """Number of messages that the current request may still return."""
        self._heard_at = 0.0
        self._single = False
        """Whether each message must be acknowledged individually."""

    def open(self, position: str | None) -> None:
        self._nats = NatsConnection(self.source)
        self._last = int(position or 0)
        try:
            self._nats.call(self._begin(position), 4 * ANSWER_S)
        except TimeoutError:
            raise Retryable("NATS is not responding") from None
        except Refusal as refusal:
            hint = "check the permissions of the user and the limits of the account"
            raise Unavailable(
                Problem(code="nats_refused", message=str(refusal), path="jetstream", hint=hint)
            ) from None

    def receive(self, wait_s: float) -> Received | None:
        assert self._nats is not None
        from nats.errors import Error

        try:
            messages = self._nats.call(self._take(wait_s), wait_s + ANSWER_S)
        except CancelledError:
            return None
        except (Error, OSError) as error:
            raise Retryable(f"the connection to NATS was lost: {error}") from None
        if not messages:
            return None
        events = [_event_of(message, self.source.subject_header) for message in messages]
        values, keys, headers = zip(*events, strict=True)
        acks = [message.reply for message in (messages if self._single else messages[-1:])]
        return Received(raw_events(values, keys, headers), str(self._last), handle=acks)

    def acknowledge(self, received: Received) -> None:
        assert self._nats is not None
        self._nats.call(self._acknowledge(received.handle), ANSWER_S)

    def lag(self) -> int | None:
        assert self._nats is not None
        try:
            info = self._nats.call(
                self._nats.ask(f"CONSUMER.INFO.{self.source.jetstream}.{self._consumer}"), 2
            )
        except (Refusal, Retryable, Unavailable, TimeoutError, CancelledError):
            return None
        return int(info["num_pending"]) + len(self._queue)

    def stop(self) -> None:
        if self._nats is not None:
            self._nats.cancel()

    def close(self) -> None:
        if self._nats is not None:
            self._nats.close()

    # In the connection's thread

    async def _begin(self, position: str | None) -> None:
        nats, source = self._nats, self.source
        assert nats is not None
        try:
            info = await nats.ask(f"STREAM.INFO.{source.jetstream}")
        except Refusal as refusal:
            if refusal.number != NO_STREAM:
                raise
            names = [each["config"]["name"] for each in await nats.streams()]
            raise Unavailable(
                unknown_stream(f"there is no stream '{source.jetstream}'", "jetstream", names)
            ) from None
        if position is not None:
            self._require_continuity(int(position), info["state"])
        self._single = info["config"]["retention"] == "workqueue"
        old = await self._consumers()
        if self._single:  # two consumers can't share such a stream, which retains unacknowledged messages
            await self._remove(old)
        self._consumer = f"{self._prefix}-{uuid.uuid4().hex[:8]}"
        await self._create(self._start(position), removable=info["config"]["retention"] != "interest")
        if not self._single:  # only now: some streams drop messages that no consumer is interested in
            await self._remove(old)
        self._inbox = nats.client.new_inbox()
        await nats.client.subscribe(self._inbox, cb=self._arrived)

    def _require_continuity(self, position: int, state: dict[str, Any]) -> None:
        """Raise `Invalid` if the stream was recreated, or has removed messages that were not read."""
        if position > int(state["last_seq"]):
            message = f"the stream ends before message {position}, which was already read: it was recreated"
            hint = "start the pipeline over"
            raise Invalid(Problem(code="other_stream", message=message, path="jetstream", hint=hint))
        first = int(state["first_seq"])
        # With a subject, the messages in between may have other subjects.
        if first > position + 1 and self.source.subject is None and self.source.gap == "fail":
            message = f"messages {position + 1} to {first - 1} were removed before they were read"
            hint = "set gap: skip to continue with the oldest available message, or start over"
            raise Invalid(Problem(code="gap", message=message, path="gap", hint=hint))

    def _start(self, position: str | None) -> dict[str, Any]:
        """The start settings of a new consumer."""
        if self._single:
            if self.source.position != "earliest":
                message = "messages of a stream with the retention policy 'workqueue' can't be skipped"
                hint = "set position: earliest"
                raise Invalid(Problem(code="workqueue_position", message=message, path="position", hint=hint))
            return {"deliver_policy": "all"}
        if position is not None:
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": int(position) + 1}
        start = parse_position(self.source.position)
        if start.time is not None:
            return {"deliver_policy": "by_start_time", "opt_start_time": _rfc3339(start.time)}
        if start.offset is not None:
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": max(1, start.offset)}
        return {"deliver_policy": "all" if start.kind == "earliest" else "new"}

    async def _consumers(self) -> list[str]:
        """The names of this flow's consumers."""
        assert self._nats is not None
        found: list[str] = []
        while True:
            page = await self._nats.ask(f"CONSUMER.NAMES.{self.source.jetstream}", offset=len(found))
            found += page["consumers"] or []
            if len(found) >= page["total"] or not page["consumers"]:
                return [name for name in found if name.startswith(f"{self._prefix}-")]

    async def _create(self, start: dict[str, Any], *, removable: bool) -> None:
        assert self._nats is not None
        stream = self.source.jetstream
        config: dict[str, Any] = {
            "durable_name": self._consumer,
            "description": "created by Penstock",
            "ack_policy": "explicit" if self._single else "all",
            "ack_wait": ACK_WAIT_S * 10**9,
            "max_ack_pending": 20_000,
            "replay_policy": "instant",
            **start,
        }
        if self.source.subject is not None:
            config["filter_subject"] = self.source.subject
        if removable:
            config["inactive_threshold"] = IDLE_S * 10**9
        try:
            subject = f"CONSUMER.DURABLE.CREATE.{stream}.{self._consumer}"
            await self._nats.ask(subject, stream_name=stream, config=config)
        except Refusal as refusal:
            if refusal.number != BAD_FILTER:
                raise
            message, hint = f"the stream has no subject '{self.source.subject}'", "correct the subject"
            raise Invalid(
                Problem(code="unknown_subject", message=message, path="subject", hint=hint)
            ) from None

    async def _remove(self, consumers: list[str]) -> None:
        assert self._nats is not None
        for name in consumers:
            try:
                await self._nats.ask(f"CONSUMER.DELETE.{self.source.jetstream}.{name}")
            except Refusal:  # it no longer exists
                continue

    async def _take(self, wait_s: float) -> list[Msg]:
        """The next messages; empty if none arrive within `wait_s` seconds."""
        nats, loop = self._nats, asyncio.get_running_loop()
        assert nats is not None
        if self._wanted <= 0:
            request = {"batch": self.source.prefetch, "expires": EXPIRES_S * 10**9, "max_bytes": MOST_BYTES}
            subject = f"{API}.CONSUMER.MSG.NEXT.{self.source.jetstream}.{self._consumer}"
            await nats.client.publish(subject, json.dumps(request).encode(), self._inbox)
            self._wanted, self._heard_at = self.source.prefetch, loop.time()
        until = loop.time() + wait_s
        while not (taken := self._arrivals()) and self._wanted > 0:
            if loop.time() - self._heard_at > SILENCE_S:
                raise Retryable(f"NATS did not respond for {SILENCE_S} seconds")
            if not await nats.wait_for(self._changed, until - loop.time()):
                break
        await self._acknowledge(self._repeats)  # they were stored, but their acknowledgment was lost
        self._repeats.clear()
        return taken

    async def _arrived(self, message: Msg) -> None:
        self._queue.append(message)
        self._heard_at = asyncio.get_running_loop().time()
        self._changed.set()

    def _arrivals(self) -> list[Msg]:
        """The new messages that have arrived."""
        taken: list[Msg] = []
        while self._queue and len(taken) < self.source.prefetch:
            message = self._queue.popleft()
            if self._is_new(message):
                taken.append(message)
        return taken

    def _is_new(self, message: Msg) -> bool:
        """Whether a message is an event that was not received before, and not a status of the request."""
        if not message.reply:
            status = (message.headers or {}).get("Status", "")
            if status in ("404", "408"):  # the request has ended
                self._wanted = 0
                return False
            about = (message.headers or {}).get("Description", "no reason given")
            if status == "409" and any(word in about.lower() for word in ("exceeds", "completed")):
                self._wanted = 0
                return False
            raise Retryable(f"NATS ended the request for messages: {about}")
        self._wanted -= 1
        sequence = message.metadata.sequence
        if sequence.consumer != self._delivered + 1:
            raise Retryable("a message was lost in transit; messages are fetched again")
        self._delivered = sequence.consumer
        if sequence.stream <= self._last:
            self._repeats.append(message.reply)
            return False
        self._last = sequence.stream
        return True

    async def _acknowledge(self, subjects: list[str]) -> None:
        assert self._nats is not None
        from nats.errors import Error

        try:
            for subject in subjects:
                await self._nats.client.publish(subject, b"+ACK")
        except (Error, OSError) as error:
            raise Retryable(f"the connection to NATS was lost: {error}") from None


def _consumer_name(flow: str) -> str:
    """A valid name for the consumers of a flow."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", flow.partition(":")[2])[:40]
    return f"penstock-{plain}-{hashlib.sha256(flow.encode()).hexdigest()[:8]}"


def _event_of(message: Msg, header: str | None) -> tuple[bytes, bytes | None, dict[str, str]]:
    """The value, the key and the headers of a message."""
    headers = {
        name: value
        for name, value in (message.headers or {}).items()
        if not name.lower().startswith(OWN_HEADERS)
    }
    key = headers.pop(KEY_HEADER, None)
    if header is not None:
        headers[header] = message.subject
    return message.data, None if key is None else key.encode(), headers


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
