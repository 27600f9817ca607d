"""The base of sinks that send messages from the driver, such as sinks for queues."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.base import Delivered, DeliveryId, Events, Rejected, Sink, SinkWriter
from penstock.connectors.messages.rejected import rejected
from penstock.connectors.messages.shape import REFUSAL, ROW, TARGET, VALUE, Limits, message_of, misfits
from penstock.errors import Problem
from penstock.frames.hidden import EVENT
from penstock.frames.site import Site
from penstock.redaction import unveiled

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Message:
    """An event in the form in which it is sent."""

    target: str
    value: bytes | None
    key: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class MessageSink(Sink):
    """A sink that sends each event as a message.

    The value of a message is the column `value` if it is text or bytes; otherwise it is the whole event as a
    JSON object. The columns `_key` and `_headers`, or `key` and `headers` next to a `value`, become the key
    and the headers; without them the event keeps the key and headers it arrived with.
    """

    meta: ClassVar = True
    takes: ClassVar = "table"

    @property
    @abstractmethod
    def template(self) -> str:
        """The target of each message, with `{column}` for the value of a column."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """The limits of the system. `target` is the name of the sink's template field."""

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        return message_of(df, self.template, self.limits)

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        yield from misfits(schema, self.template, self.limits.target)


class MessageWriter(SinkWriter):
    """Sends the messages of a batch in order."""

    @abstractmethod
    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> Iterable[tuple[int, str, str]]:
        """Send all messages, and return once the system has acknowledged them.

        Returns the messages that the system permanently rejects: number of the message, code and reason.
        Raises `Retryable`, `Fatal` or `Backpressure` if the batch has to be sent again.
        """

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        table = events.table()
        messages, refused = _parted(table)
        self.permitted()
        bad = list(self.send(messages, delivery)) if messages else []
        refused += [_refused(messages[number], code, reason) for number, code, reason in bad]
        return Delivered(len(messages) - len(bad), refused)


def _parted(table: pa.Table) -> tuple[list[Message], list[Rejected]]:
    """The messages of a table made by `message_of`, and the events that can't be messages."""
    import pyarrow.compute as pc

    bad = pc.is_valid(table[REFUSAL])
    good = table.filter(pc.invert(bad)).select([TARGET, VALUE, "key", "headers"]).to_pydict()
    columns = (good[TARGET], good[VALUE], good["key"], good["headers"])
    messages = [
        Message(unveiled(to), value, key, dict(h or ())) for to, value, key, h in zip(*columns, strict=True)
    ]
    rows = table.filter(bad).select([REFUSAL, ROW, EVENT]).to_pylist()
    return messages, [rejected(row) for row in rows]


def _refused(message: Message, code: str, reason: str) -> Rejected:
    text = (message.value or b"null").decode(errors="replace")
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    key = message.key.decode(errors="replace") if message.key is not None else None
    about: dict[str, Any] = {"key": key, "headers": dict(message.headers)}
    return Rejected(text if is_object else json.dumps({"value": text}), code, reason, about)
