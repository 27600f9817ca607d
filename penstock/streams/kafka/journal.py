"""The journal of a stream in Kafka, as followed by one process."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.specs.stream import Wal
from penstock.streams.kafka.clients import Clients, admin
from penstock.streams.kafka.cluster import ANSWER_S, unreachable
from penstock.streams.kafka.state import Outcome, State, Void
from penstock.streams.kafka.topics import JOURNAL, delete_records, ensure_topic
from penstock.streams.storage import WriteFailed

SNAPSHOT = b"S"
"""The first byte of a snapshot, followed by the number of its last entry. An entry begins with a brace."""

SNAPSHOT_ENTRIES = 1000
"""Entries after which a snapshot is taken; a quarter of the number of frames, if that is more."""

FETCHED = 500
TRIES = 5
TRY_S = 2.0
"""Timeout of one request to the brokers in seconds: the client doesn't retry if the leader is unknown."""


class _Cut(Exception):
    """The journal was truncated beyond the position of this process."""


class Journal:
    """Follows the journal of a topic, and appends to it. Thread-safe."""

    def __init__(self, clients: Clients, topic: str, wal: Wal) -> None:
        from confluent_kafka import TopicPartition

        self.clients, self.topic = clients, topic
        self.lock = threading.RLock()
        self.state = State()
        self._position = self._snapshot_at = 0
        self._astray = False
        self._waiting: dict[str, list[Outcome] | Void | None] = {}
        ensure_topic(clients, topic, wal)
        self._consumer = clients.consumer(**{"queued.max.messages.kbytes": 65536})
        self._partition = TopicPartition(topic, JOURNAL)
        with self.lock:
            self._load()

    # Following

    def sync(self) -> State:
        """The state after all current entries of the journal."""
        with self.lock:
            self._reach(self._end())
            return self.state

    @property
    def position(self) -> int:
        """The offset in the topic up to which the journal was read."""
        return self._position

    def _reach(self, end: int) -> None:
        try:
            self._follow(end)
        except _Cut:  # this process was suspended in the meantime
            self._load()

    def _end(self) -> int:
        """The offset after the last record."""
        return self._offset(latest=True)

    def _offset(self, *, latest: bool) -> int:
        """The start or end of the journal, requested on another connection: the consumer is long-polling."""
        from confluent_kafka import KafkaError, KafkaException

        until, error = time.monotonic() + ANSWER_S, None
        forbidden = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION)
        stale = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
        # The client may not learn the leaders of a new topic, although brokers report them to other clients.
        unknown = (KafkaError._NOENT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError._TIMED_OUT)
        moved = (*stale, *unknown, KafkaError.NOT_LEADER_FOR_PARTITION)
        ends = admin().OffsetSpec
        wanted = {self._partition: ends.latest() if latest else ends.earliest()}
        while error is None or time.monotonic() < until:
            try:
                (future,) = self.clients.admin.list_offsets(wanted, request_timeout=TRY_S).values()
                return int(future.result(ANSWER_S).offset)
            except KafkaException as failure:
                error = failure.args[0].str()
                if failure.args[0].code() in forbidden:
                    break
                if failure.args[0].code() in moved:
                    self.clients.forget_leaders()
            except TimeoutError:
                error = "no response"
            time.sleep(0.02)  # a new topic has no leader for a moment
        raise unreachable(self.clients.cluster, error)

    def _load(self) -> None:
        """Load the state from the last snapshot and the entries after it."""
        for _ in range(TRIES):
            with contextlib.suppress(_Cut):  # it was truncated again in the meantime
                return self._load_once()
        raise unreachable(self.clients.cluster, "the journal is truncated faster than it is read")

    def _load_once(self) -> None:
        low, high = self._offset(latest=False), self._end()
        self._assign(low)
        entries: list[tuple[int, bytes]] = []
        best: tuple[int, bytes] | None = None
        for at, value in self._records(high):
            if value.startswith(SNAPSHOT):
                upto, _, data = value[1:].partition(b" ")
                # Not the last one by position: a slow writer's snapshot may follow a newer one.
                if int(upto) >= low - 1 and (best is None or int(upto) > best[0]):
                    best = int(upto), data
                    entries = [entry for entry in entries if entry[0] > int(upto)]
            elif best is None or at > best[0]:
                entries.append((at, value))
        if best is None and low > 0:
            raise WriteFailed(f"topic '{self.topic}' has lost the beginning of its journal")
        self.state = State() if best is None else State.restored(best[1])
        self._snapshot_at = 0 if best is None else best[0] + 1
        for _, value in entries:
            self._apply(value)

    def _assign(self, position: int) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(self.topic, JOURNAL, position)])
        self._position = position

    def _follow(self, end: int) -> None:
        for _, value in self._records(end):
            if not value.startswith(SNAPSHOT):
                self._apply(value)
            else:
                self._snapshot_at = max(self._snapshot_at, int(value[1:].partition(b" ")[0]) + 1)

    def _records(self, end: int) -> Iterator[tuple[int, bytes]]:
        """The records up to an offset; each yielded record counts as read."""
        from confluent_kafka import KafkaError

        if self._astray:
            self._assign(self._position)
        self._astray = True  # if this ends early: the client may have returned later records
        until, reason = time.monotonic() + ANSWER_S, "no response"
        while self._position < end:
            # Not more than available: it would wait for more.
            for message in self._consumer.consume(min(FETCHED, end - self._position), 1.0):
                if (error := message.error()) is not None:
                    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                        raise _Cut
                    reason = error.str()  # such as a restarting broker: the client retries on its own
                    continue
                at = int(message.offset() or 0)
                if at > self._position:
                    raise _Cut
                if at == self._position:
                    self._position, until = at + 1, time.monotonic() + ANSWER_S
                    yield at, bytes(message.value() or b"{}")
            if time.monotonic() > until:
                raise unreachable(self.clients.cluster, reason)
        self._astray = False

    def _apply(self, value: bytes) -> None:
        entry = json.loads(value)
        outcome = self.state.apply(entry["ops"])
        if entry["id"] in self._waiting:
            self._waiting[entry["id"]] = outcome

    # Adding

    def add(self, operations: Sequence[Sequence[Any]]) -> list[Outcome] | Void:
        """Append an entry, and return the outcome of each operation."""
        name = uuid.uuid4().hex
        with self.lock:
            self._waiting[name] = None
        try:
            value = json.dumps({"id": name, "ops": operations}, separators=(",", ":")).encode()
            at = self.clients.confirmed(self.clients.send(self.topic, JOURNAL, value))
            with self.lock:
                self._reach(at + 1)
                outcome = self._waiting[name]
        finally:
            with self.lock:
                del self._waiting[name]
        if outcome is None:  # after a long suspension, the entry may be part of a snapshot
            raise WriteFailed("it is unknown whether the events were stored: the journal has moved on")
        return outcome

    def take_snapshot(self, *, least: int = 1) -> bool:
        """Write a snapshot if the previous one is old enough, and truncate the journal before that one.

        The entries between the two snapshots stay, for processes that are slightly behind.
        """
        with self.lock:
            due = max(SNAPSHOT_ENTRIES, len(self.state.bases) // 4) * least
            upto, before = self._position, self._snapshot_at
            if upto - before < due:
                return False
            data = SNAPSHOT + b"%d " % (upto - 1) + self.state.snapshot()
        self.clients.confirmed(self.clients.send(self.topic, JOURNAL, data))
        self._snapshot_at = upto
        if before:
            delete_records(self.clients, self.topic, {JOURNAL: before})
        return True

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
