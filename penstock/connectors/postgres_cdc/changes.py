"""Collects the changes of a replication stream into batches, and tracks the position after each batch."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from penstock.connectors.postgres_cdc.assembly import Batch, Run
from penstock.connectors.postgres_cdc.position import Position
from penstock.connectors.postgres_cdc.wire import (
    BEGIN,
    CHANGES,
    COMMIT,
    MESSAGE,
    RELATION,
    TRUNCATE,
    Begin,
    Relation,
    begin_of,
    commit_end,
    message_of,
    relation_of,
    truncated,
)

MOST_EVENTS, MOST_BYTES = 20_000, 8 * 1024 * 1024
"""The size at which a batch is complete, even within a transaction."""

PART_S = 0.5
"""Seconds to wait for more changes of a transaction before the part received so far is returned."""

EVERYTHING = 1 << 62
"""The number of changes to skip in a transaction that was appended completely."""


@dataclass(frozen=True)
class Connection:
    """The functions that read messages of a replication stream."""

    read: Callable[[], bytes | None]
    """Returns the next message; None if none is available now."""
    wait: Callable[[float], None]
    """Waits for a message for up to the given number of seconds."""


class ChangeReader:
    """Reads the transactions after a position.

    Changes at or before the position are skipped: the server sends a transaction again from its beginning if
    it was not confirmed.
    """

    def __init__(
        self,
        connection: Connection,
        position: Position,
        define: Callable[[Relation], None],
        *,
        messages: Collection[str] = (),
        followed: Callable[[int], bool] = lambda number: True,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`define` is called with each table before its changes; `followed` tells whether a table is read."""
        self._connection, self._define, self._messages = connection, define, messages
        self._followed, self._stopped = followed, stopped
        self._position = position
        self._relations: dict[int, Relation] = {}
        self._begin: Begin | None = None
        self._number = 0  # of the next change in its transaction
        self._skip = 0
        self._held: bytes | None = None
        self._runs: list[Run] = []  # ends of transactions that had no further change

    @property
    def position(self) -> Position:
        """The position after the last batch."""
        return self._position

    def batch(self, wait_s: float) -> Batch:
        """The changes received so far, up to the size of a batch; waits if there are none."""
        batch, size, first = Batch(runs=self._runs), 0, 0
        payloads, read = batch.payloads, self._connection.read
        self._runs = []
        until = time.monotonic() + wait_s
        while not self._stopped():
            payload, self._held = self._held, None
            if payload is None and (payload := read()) is None:
                left = until - time.monotonic()
                if payloads and self._begin is None:
                    break
                if left <= 0:
                    if not payloads or left < -PART_S:
                        break
                    left = PART_S
                self._connection.wait(left)
                continue
            kind = payload[0]
            if kind in CHANGES:
                if self._skip:
                    self._skip -= 1
                    self._number += 1
                    continue
                if len(payloads) >= MOST_EVENTS or size >= MOST_BYTES:
                    self._held = payload
                    break
                payloads.append(payload)
                size += len(payload)
                self._number += 1
            elif kind == BEGIN:
                self._start(begin_of(payload))
                first = len(payloads)
            elif kind == COMMIT:
                self._close(batch, first, ended=True)
                self._commit(commit_end(payload))
            elif kind == RELATION:
                relation = relation_of(payload)
                if self._relations.get(relation.id) == relation:
                    continue
                if payloads:  # they belong to the previous definition of the table
                    self._held = payload
                    break
                self._define(relation)
                self._relations[relation.id] = relation
            elif kind == TRUNCATE:
                for number in filter(self._followed, truncated(payload)):
                    self._add(batch, b"T" + number.to_bytes(4, "big"))
            elif kind == MESSAGE:
                self._add_message(batch, payload)
        self._close(batch, first, ended=False)
        if not payloads:
            self._runs = batch.runs
        return batch

    def _start(self, begin: Begin) -> None:
        self._begin, self._number = begin, 0
        if begin.commit < self._position.lsn:
            self._skip = EVERYTHING
        else:
            self._skip = self._position.changes if begin.commit == self._position.commit else 0

    def _commit(self, end: int) -> None:
        self._position = self._position.after(max(end, self._position.lsn))
        self._begin, self._skip = None, 0

    def _close(self, batch: Batch, first: int, *, ended: bool) -> None:
        """Record the changes of the current transaction that are in the batch."""
        if self._begin is None:
            return
        count = len(batch.payloads) - first
        partly = ended and self._begin.commit == self._position.commit
        if count or partly:
            batch.runs.append(Run(first, self._begin, self._number - count, ended))
        if not ended and count:
            self._position = self._position.within(self._begin.commit, self._number)

    def _add(self, batch: Batch, payload: bytes) -> None:
        if self._skip:
            self._skip -= 1
        else:
            batch.payloads.append(payload)
        self._number += 1

    def _add_message(self, batch: Batch, payload: bytes) -> None:
        message = message_of(payload)
        if not any(fnmatch.fnmatchcase(message.prefix, prefix) for prefix in self._messages):
            return
        if message.transactional:
            self._add(batch, payload)
        elif message.lsn >= self._position.lsn:
            batch.runs.append(Run(len(batch.payloads), Begin(message.lsn, time.time_ns() // 1000, 0), 0))
            batch.payloads.append(payload)
            self._position = self._position.after(message.lsn + 1)
