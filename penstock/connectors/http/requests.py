"""The requests of a batch: the grouping and order of events, and the idempotency keys."""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import orjson

from penstock.connectors.base import DeliveryId
from penstock.connectors.messages.sink import Message

Body = Literal["event", "array", "lines"]

Refusal = tuple[int, str, str]
"""A rejected event: its number in the batch or the request, a code and a reason."""


class Event(NamedTuple):
    """An event of a batch."""

    number: int
    value: bytes
    nth: int
    """The number of equal events that come before this one in the batch."""


@dataclass(frozen=True)
class Request:
    """Events of a batch that are sent together."""

    target: str
    events: tuple[Event, ...]
    body: Body
    delivery: DeliveryId

    @cached_property
    def content(self) -> bytes:
        """The body of the request."""
        values = [event.value for event in self.events]
        if self.body == "event":
            return values[0]
        return b"[" + b",".join(values) + b"]" if self.body == "array" else b"\n".join(values) + b"\n"

    @cached_property
    def key(self) -> str:
        """The idempotency key, which is unique to these events of this batch."""
        # Sequence numbers within the batch would not work: after a shuffle, a recomputed batch may have a
        # different order, and a receiver would mistake new events for known ones.
        name = json.dumps([*astuple(self.delivery), self.target, [event.nth for event in self.events]])
        return hashlib.sha256(name.encode() + b"\n" + self.content).hexdigest()[:32]

    def halves(self) -> tuple[Request, Request]:
        """Two requests with the first and the second half of the events."""
        middle = len(self.events) // 2
        return (
            Request(self.target, self.events[:middle], self.body, self.delivery),
            Request(self.target, self.events[middle:], self.body, self.delivery),
        )


@dataclass(frozen=True)
class Plan:
    """Groups events into requests."""

    body: Body
    max_events: int
    max_bytes: int
    lanes: int

    def lanes_of(
        self, messages: Sequence[Message], delivery: DeliveryId, without: Collection[int] = ()
    ) -> list[Iterator[Request]]:
        """Lanes of requests: lanes may be sent concurrently, the requests of a lane one after the other.

        All events of a key are in one lane, in order. Events with the numbers in `without` are left out.
        """
        lanes: list[list[tuple[str, Event]]] = [[] for _ in range(self.lanes)]
        empty = b"" if self.body == "event" else b"null"
        seen: Counter[tuple[str, bytes]] = Counter()  # over all lanes: equal events may be in several
        for number, message in enumerate(messages):
            if number in without:
                continue
            value = empty if message.value is None else message.value
            event = Event(number, value, seen[message.target, value])
            seen[message.target, value] += 1
            # Events without a key have no order: they go to the lanes in turn, a whole request at a time.
            turn = number // self.max_events if message.key is None else zlib.crc32(message.key)
            lanes[turn % self.lanes].append((message.target, event))
        return [self._requests(lane, delivery) for lane in lanes if lane]

    def _requests(self, lane: Sequence[tuple[str, Event]], delivery: DeliveryId) -> Iterator[Request]:
        """The requests of a lane: events with the same target are grouped, in order."""
        groups: dict[str, list[Event]] = {}
        sizes: dict[str, int] = {}
        for target, event in lane:
            size = len(event.value) + 1
            if target in groups and sizes[target] + size > self.max_bytes:
                yield Request(target, tuple(groups.pop(target)), self.body, delivery)
            group = groups.setdefault(target, [])
            sizes[target] = size + (sizes[target] if group else 0)
            group.append(event)
            if len(group) == self.max_events:
                yield Request(target, tuple(groups.pop(target)), self.body, delivery)
        for target, group in groups.items():
            yield Request(target, tuple(group), self.body, delivery)


def unfit(message: Message, body: Body) -> tuple[str, str] | None:
    """Why an event can't share a request with other events: a code and a reason; None if it can."""
    if message.value is None or body == "event":
        return None
    if body == "lines":
        if b"\n" in message.value or b"\r" in message.value:
            return "multiple_lines", "the value contains a line break, but each line of the body is an event"
        return None
    try:
        orjson.loads(message.value)
    except orjson.JSONDecodeError as error:
        return "not_json", f"the value can't be part of a JSON array: {error}"
    return None


def signature(form: Literal["stripe", "github"], secret: str, content: bytes, now: int) -> str:
    """The value of the signature header for a body."""
    signed = content if form == "github" else b"%d." % now + content
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"sha256={digest}" if form == "github" else f"t={now},v1={digest}"


def merged(*several: Mapping[str, str]) -> dict[str, str]:
    """Merged headers; a later header replaces an earlier one of the same name, ignoring case."""
    found: dict[str, tuple[str, str]] = {}
    for headers in several:
        found |= {name.lower(): (name, value) for name, value in headers.items()}
    return dict(found.values())
