"""The base of sinks that send messages over a connection that stays open from batch to batch."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from penstock.connectors.base import DeliveryId
from penstock.connectors.messages.sink import Message, MessageWriter
from penstock.errors import Retryable

Refused = tuple[int, str, str]
"""A message that the system permanently rejects: its number, a code and a reason."""


class Connection(ABC):
    """A connection to a server."""

    waiting = False
    """Whether `send` is waiting for a server that is up but full."""

    @abstractmethod
    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> Iterable[Refused]:
        """Send all messages, and return once the server has acknowledged them."""

    @abstractmethod
    def cancel(self) -> None:
        """Make a `send` that is waiting raise. Called by another thread."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, which may already be lost."""


C = TypeVar("C", bound=Connection)


KEY_HEADER = "Penstock-Key"
"""The header with the key of an event, in systems with headers but without keys."""


def key_text(message: Message) -> str | None:
    """The key of a message as text, for systems with text keys only; ValueError if the key isn't UTF-8."""
    try:
        return None if message.key is None else message.key.decode()
    except UnicodeDecodeError:
        raise ValueError("the key is not UTF-8 text") from None


class ConnectedWriter(MessageWriter, Generic[C]):
    """Connects for the first batch; a failure closes the connection, and the next attempt reconnects."""

    def __init__(self) -> None:
        self._connection: C | None = None
        self._cancelled = False

    @abstractmethod
    def connect(self) -> C:
        """A new connection. Raises `Invalid` or `Unavailable` if it can't be made."""

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> Iterable[Refused]:
        if self._connection is None:
            self._connection = self.connect()
        if self._cancelled:
            raise Retryable("the run ended before the batch was sent")
        try:
            return self._connection.send(messages, delivery)
        except BaseException:
            self.close()
            raise

    @property
    def waiting(self) -> bool:  # type: ignore[override]
        """Whether `write` is waiting for a server that is up but full, which is not a failure."""
        return self._connection is not None and self._connection.waiting

    def cancel(self) -> None:
        self._cancelled = True
        if (connection := self._connection) is not None:
            connection.cancel()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # the earlier failure is the one to report
                connection.close()
