"""Moving a local stream into Kafka, while it is written and read.

Frames are copied unchanged, so that offsets, times and append boundaries are preserved. Then, while appends
wait for the lock of the stream, the rest is copied, and the whole state of the stream (offsets, producers,
cursors, counters) is written as the first snapshot of the journal. Renaming `stream.json` commits the move:
before it the stream is local, and the contents of the topic are ignored; after it the stream is in Kafka.
"""

from __future__ import annotations

import contextlib
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import structlog

from penstock.errors import Conflict, Invalid, Problem, Unavailable
from penstock.streams.config import StreamConfig, change_config, read_config
from penstock.streams.frames import Body, Frame
from penstock.streams.kafka.clients import LARGEST, Clients, clients
from penstock.streams.kafka.cluster import ANSWER_S, Cluster, topic_of, unreachable
from penstock.streams.kafka.journal import SNAPSHOT, Journal
from penstock.streams.kafka.state import COLUMNS, State
from penstock.streams.kafka.topics import FRAMES, JOURNAL, delete_records, delete_topic
from penstock.streams.local.storage import LocalStorage
from penstock.streams.moves import MoveNote, leave_files, moving, read_note, remove_note, write_note
from penstock.streams.storage import Span

log = structlog.get_logger()

UNDER_WAY = 16 * 1024 * 1024
"""The number of bytes to send before waiting for their acknowledgement."""

KEPT_S = 5.0
"""Seconds between two snapshots: a resumed move copies at most this much again."""

REST = 1024 * 1024
"""Bytes that may remain to be copied while appends wait: a fraction of a second."""

ROUNDS = 20
"""Rounds of copying after which appends wait for the rest, whatever its size: writers may be faster."""

Tell = Callable[[int, int], None]
"""Called with the number of bytes copied, and the total."""


class Cancelled(Exception):
    """The move was cancelled. The stream stays in its storage."""


@dataclass
class _Sent:
    """A frame that was sent, and may not be acknowledged yet."""

    place: Future[int]
    span: Span
    size: int
    shape: str
    marks: list[tuple[int, int, str, bool]]


def begin(directory: Path, cluster: Cluster) -> MoveNote:
    """Record that the stream is to be moved; raises an error if it cannot be moved."""
    config = read_config(directory)
    if (found := read_note(directory)) is not None:
        return found
    if config.spec.storage == "kafka":
        message = f"stream '{config.id}' is already in Kafka"
        raise Conflict(Problem(code="already_moved", message=message, path="spec.storage"))
    if config.spec.storage != "local" or config.transient:
        kind = "a transient stream" if config.transient else f"a stream in '{config.spec.storage}'"
        hint = "only streams with storage: local and wal.enabled: true can be moved"
        raise Invalid(
            Problem(code="cannot_move", message=f"{kind} cannot be moved", path="spec.storage", hint=hint)
        )
    topic = topic_of(cluster, config.id, directory.name)
    if topic in _topics(clients(cluster)):
        message, hint = f"topic '{topic}' exists", "delete the topic, or set another kafka.prefix"
        raise Conflict(Problem(code="topic_exists", message=message, path="kafka.prefix", hint=hint))
    note = MoveNote(cluster, topic)
    write_note(directory, note)
    return note


def undo(directory: Path) -> bool:
    """Undo an unfinished move; false if there is none. The stream stays in its storage."""
    with moving(directory):
        note = read_note(directory)
        if note is None:
            return False
        if read_config(directory).spec.storage == "kafka":
            message = "the stream is already in Kafka: the move cannot be undone"
            raise Conflict(Problem(code="already_moved", message=message))
        delete_topic(clients(note.to), note.topic)
        remove_note(directory)
        return True


def _topics(found: Clients) -> set[str]:
    from confluent_kafka import KafkaException

    try:
        return set(found.admin.list_topics(timeout=ANSWER_S).topics)
    except KafkaException as error:
        raise unreachable(found.cluster, error.args[0].str()) from None


class Move:
    """Moves one stream. If a run ends early for any reason, another `run` resumes it."""

    def __init__(self, directory: Path, note: MoveNote, tell: Tell, cancelled: Callable[[], bool]) -> None:
        self._directory, self._note, self._tell, self._cancelled = directory, note, tell, cancelled
        self._clients = clients(note.to)
        self._state = State()
        self._journal_end = 0
        self._sent: list[_Sent] = []
        self._kept_at = time.monotonic()
        self._copied = self._total = 0

    def run(self) -> None:
        """Move the stream; raises `Conflict` if another process is moving it."""
        with moving(self._directory):
            if read_config(self._directory).spec.storage == "kafka":
                return  # the move was finished, but the process ended before recording it
            with contextlib.closing(LocalStorage(self._directory)) as local:
                self._continue(local)
                for _ in range(ROUNDS):
                    if self._copy(local) <= REST:
                        break
                self._switch(local)

    def _continue(self, local: LocalStorage) -> None:
        """Resume from the copy of an earlier attempt."""
        journal = Journal(self._clients, self._note.topic, local.spec.wal)
        try:
            journal.sync()
            self._state, self._journal_end = journal.state, journal.position
        finally:
            journal.close()
        self._copied = self._state.bytes
        if not self._state.bases:
            self._state.first = self._state.next = local.bounds().first

    # Copying

    def _copy(self, local: LocalStorage) -> int:
        """Copy the frames up to the current end; returns the number of bytes."""
        self._total = max(local.usage().bytes, self._copied)
        before = self._copied
        waiting, reached = 0, self._state.next
        for span in local.spans(self._state.next) if self._state.next < local.bounds().next else ():
            if self._cancelled():
                raise Cancelled
            if span.lost == "evicted":  # along with everything before it
                self._confirm()
                self._drop_before(span.next)
                self._state.next = self._state.first = reached = span.next
                continue
            if span.token is None:  # damage may begin before the requested offset
                span = replace(span, base=reached)
            if span.base != reached:
                raise _differs(f"events up to offset {reached}", f"a frame that begins at {span.base}")
            reached = span.next
            for sent in self._send(local, span):
                waiting += sent.size
                if waiting >= UNDER_WAY:
                    self._confirm()
                    waiting = 0
        self._confirm()
        if time.monotonic() - self._kept_at > KEPT_S:
            self._keep()
        return self._copied - before

    def _send(self, local: LocalStorage, span: Span) -> Iterator[_Sent]:
        """Send the frame of a span. Unreadable events are replaced by a frame that marks them as lost."""
        if span.token is None:
            for first in range(span.base, span.next, 2**31):
                part = replace(span, base=first, next=min(first + 2**31, span.next))
                frame = Frame(first, span.time_us, Body(b"", part.next - first, 0), lost=True)
                yield self._produce(part, b"".join(map(bytes, frame.encode())), b"", [])
            return
        place = local.place(span)
        marks = [(int(m[0]), int(m[1]), str(m[2]), bool(m[3])) for m in local.reader.marks(span)]
        yield self._produce(span, local.reader.frame(span), place.shape if place else b"", marks)

    def _produce(
        self, span: Span, data: bytes, schema: bytes, marks: list[tuple[int, int, str, bool]]
    ) -> _Sent:
        if len(data) > LARGEST - 1024:
            message = f"the frame at offset {span.base} has {len(data):,} bytes"
            hint = f"a stream in Kafka accepts frames of up to {LARGEST:,} bytes"
            raise Invalid(Problem(code="frame_too_large", message=message, hint=hint))
        shape = sha256(schema).hexdigest()[:16]
        self._state.known_shapes.setdefault(shape, b64encode(schema).decode())
        sent = _Sent(self._clients.send(self._note.topic, FRAMES, data), span, len(data), shape, marks)
        self._sent.append(sent)
        return sent

    def _confirm(self) -> None:
        """Wait until the sent frames are acknowledged, and add them to the state."""
        state, shapes = self._state, list(self._state.known_shapes)
        for sent in self._sent:
            place = self._clients.confirmed(sent.place)
            values = (sent.span.base, sent.span.time_us, sent.span.raw_bytes, sent.size, place)
            for name, value in zip(COLUMNS, (*values, shapes.index(sent.shape)), strict=True):
                getattr(state, name).append(value)
            state.marks += sent.marks
            state.next, state.top = sent.span.next, max(state.top, place + 1)
            state.last_us, state.bytes = max(state.last_us, sent.span.time_us), state.bytes + sent.size
            self._copied += sent.size
        self._sent.clear()
        self._tell(self._copied, max(self._total, self._copied))
        if time.monotonic() - self._kept_at > KEPT_S:
            self._keep()

    def _keep(self) -> None:
        """Store the progress of the copy in a snapshot, for a later attempt to resume from."""
        data = SNAPSHOT + b"%d " % (self._journal_end - 1) + self._state.snapshot()
        at = self._clients.confirmed(self._clients.send(self._note.topic, JOURNAL, data))
        self._journal_end, self._kept_at = at + 1, time.monotonic()

    def _drop_before(self, first: int) -> None:
        """Remove frames whose events have been evicted since. The stream itself has counted them."""
        if first > self._state.first:
            counts = self._state.counts.copy()
            self._state.apply([["trim", min(first, self._state.next), "evicted_retention_ms"]])
            self._state.counts = counts

    # The switch

    def _switch(self, local: LocalStorage) -> None:
        """Switch to Kafka, while changes of the log, cursors and counters wait."""
        self._keep()
        began, before = time.monotonic(), self._journal_end - 1
        with local.writer.locked(), local.cursor_files.locked(), local.counters.locked():
            local.require_here()
            self._copy(local)
            state, bounds = self._state, local.bounds()
            self._drop_before(bounds.first)
            if not state.bases:
                state.first = state.next = bounds.next
            if (state.first, state.next) != (bounds.first, bounds.next):
                raise _differs(f"offsets {state.first} to {state.next}", f"{bounds.first} to {bounds.next}")
            state.producers = local.writer.producers()
            state.cursors = {cursor.reader: cursor for cursor in local.cursors()}
            state.counts = Counter({name: count for name, count in local.counts().items() if count})
            self._keep()
            leave_files(self._directory, bounds.next)
            change_config(self._directory, self._moved)
        log.info(
            "a stream was moved to Kafka",
            stream=local.config.id,
            next=bounds.next,
            waited_ms=round((time.monotonic() - began) * 1000),
        )
        with contextlib.suppress(Unavailable):  # snapshots of the move are small
            delete_records(self._clients, self._note.topic, {JOURNAL: before})

    def _moved(self, present: StreamConfig | None) -> StreamConfig:
        assert present is not None, "the stream was deleted"
        return replace(
            present, spec=present.spec.model_copy(update={"storage": "kafka"}), kafka=self._note.to
        )


def _differs(there: str, here: str) -> Conflict:
    message = f"the copy has {there}, the stream {here}"
    hint = "undo the move and start it again"
    return Conflict(Problem(code="copy_differs", message=message, hint=hint))
