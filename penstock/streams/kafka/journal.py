"""The journal of a stream in Kafka, as one process follows it."""

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
"""What a snapshot begins with; an entry begins with a brace. The number of the last entry in it follows."""

SNAPSHOT_ENTRIES = 1000
"""Entries after which a snapshot is taken, or a quarter of the frames if these are more."""

FETCHED = 500
TRIES = 5
TRY_S = 2.0
"""Seconds of one question to the brokers: the client itself does not ask twice for an unknown leader."""


class _Cut(Exception):
    """The journal was cut beyond the position of this process."""


class Journal:
    """Follows the journal of a topic, and adds to it. For any thread."""

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
        """The state with every entry that is in the journal now."""
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
        except _Cut:  # this process was asleep meanwhile
            self._load()

    def _end(self) -> int:
        """The offset after the last record."""
        return self._offset(latest=True)

    def _offset(self, *, latest: bool) -> int:
        """An end of the journal, asked on another connection: that of a consumer waits for news."""
        from confluent_kafka import KafkaError, KafkaException

        until, error = time.monotonic() + ANSWER_S, None
        forbidden = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION)
        stale = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
        # The client may not learn of a new topic's leaders, though the brokers tell them to another client.
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
        """Take the state from the last snapshot and the entries after it."""
        for _ in range(TRIES):
            with contextlib.suppress(_Cut):  # it was cut again meanwhile
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
                # Not the last one by position: that of a slow writer may come after a later one.
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
        """The records up to an offset; each one that was yielded counts as read."""
        from confluent_kafka import KafkaError

        if self._astray:
            self._assign(self._position)
        self._astray = True  # should it end before its end: the client may have handed out later records
        until, reason = time.monotonic() + ANSWER_S, "no response"
        while self._position < end:
            # Not more than there are: it would wait for them.
            for message in self._consumer.consume(min(FETCHED, end - self._position), 1.0):
                if (error := message.error()) is not None:
                    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                        raise _Cut
                    reason = error.str()  # such as a broker that restarts: the client goes on by itself
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
        """Add an entry, and return the outcome of each operation."""
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
        if outcome is None:  # a process that slept for long finds its entry in a snapshot
            raise WriteFailed("it is unknown whether the events were stored: the journal has moved on")
        return outcome

    def take_snapshot(self, *, least: int = 1) -> bool:
        """Write a snapshot if the last one is old enough, and cut the journal before the last one.

        The entries between both stay for processes that are a little behind.
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
