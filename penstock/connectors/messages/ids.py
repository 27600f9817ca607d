"""Ids of messages, by which a receiver recognizes messages that were sent again."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b

from penstock.connectors.base import DeliveryId
from penstock.connectors.messages.sink import Message

SHOWN = 30
"""Characters of a name in an id, for readability: some systems would reject an id with a long name."""


class MessageIds:
    """The ids of a batch's messages: the same in every attempt, regardless of the order of the events.

    A number in the batch would not work: after a shuffle, events may be in another order when a batch is
    computed again, and a receiver would drop the wrong event.
    """

    def __init__(self, delivery: DeliveryId) -> None:
        self._batch = repr(delivery).encode()
        self._prefix = f"{delivery.pipeline[:SHOWN]}.{delivery.sink[:SHOWN]}.{delivery.batch}"
        self._seen: Counter[str] = Counter()

    def of(self, message: Message) -> str:
        """The id of a message. Equal messages of a batch are numbered."""
        digest = blake2b(self._batch, digest_size=16)
        headers = json.dumps(sorted(message.headers.items())).encode()
        for part in (message.target.encode(), message.key or b"", headers, message.value or b""):
            digest.update(len(part).to_bytes(8) + part)
        name = digest.hexdigest()
        self._seen[name] += 1
        return f"{self._prefix}.{name}.{self._seen[name]}"
