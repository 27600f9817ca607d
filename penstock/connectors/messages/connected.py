"""Sinks that send messages over a connection which they keep from batch to batch."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from penstock.connectors.base import DeliveryId
from penstock.connectors.messages.sink import Message, MessageWriter
from penstock.errors import Retryable

Refused = tuple[int, str, str]
"""A message that the system refuses for good: its number, a code and a reason."""


class Connection(ABC):
    """A connection to a server."""

    waiting = False
    """Whether `send` waits for a server that is up and has no room."""

    @abstractmethod
    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> Iterable[Refused]:
        """Send all messages, and return once the server has acknowledged them."""

    @abstractmethod
    def cancel(self) -> None:
        """Make a `send` that waits raise. Called by another thread."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection. It may be lost already."""


C = TypeVar("C", bound=Connection)


KEY_HEADER = "Penstock-Key"
"""The header with the key of an event, in systems that have headers and no keys."""


def key_text(message: Message) -> str | None:
    """The key of a message for systems that have text for it only; ValueError if the key is no text."""
    try:
        return None if message.key is None else message.key.decode()
    except UnicodeDecodeError:
        raise ValueError("the key is not UTF-8 text") from None


class ConnectedWriter(MessageWriter, Generic[C]):
    """Connects for the first batch, and again after a failure, with which the connection is given up."""

    def __init__(self) -> None:
        self._connection: C | None = None
        self._cancelled = False

    @abstractmethod
    def connect(self) -> C:
        """A new connection. Raises `Invalid` or `Unavailable` if there is none."""

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
        """Whether `write` waits for a server that is up and has no room, which is no failure."""
        return self._connection is not None and self._connection.waiting

    def cancel(self) -> None:
        self._cancelled = True
        if (connection := self._connection) is not None:
            connection.cancel()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # the failure that matters is the one before
                connection.close()
