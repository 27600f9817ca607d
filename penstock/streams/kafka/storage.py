"""`storage: kafka`: a log in a topic, appended to by many processes on many machines.

stream.json    settings (see config.py), including the address of the cluster; nothing else is on disk
topic          partition 0 is the journal (see state.py), partition 1 the frames

An append first writes its frames, and then a journal entry that names them: a single record, so that the
append is atomic.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import structlog

from penstock.errors import Unavailable
from penstock.streams import clock
from penstock.streams.config import StreamConfig, config_version, read_config
from penstock.streams.counters import NAMES
from penstock.streams.frames import Body, Placed
from penstock.streams.kafka.bodies import Bodies
from penstock.streams.kafka.clients import clients
from penstock.streams.kafka.cluster import Cluster, topic_of
from penstock.streams.kafka.journal import Journal
from penstock.streams.kafka.retention import expired, require_read, room_for
from penstock.streams.kafka.state import Outcome, State, Void, column
from penstock.streams.kafka.topics import FRAMES, configure_topic, delete_records
from penstock.streams.moves import left_files, remove_left_files
from penstock.streams.storage import (
    Append,
    Appended,
    Bounds,
    Cursor,
    Damaged,
    Place,
    Progress,
    Record,
    Refusal,
    Span,
    Storage,
    Usage,
    WriteFailed,
)

log = structlog.get_logger()

PAGE = 512
"""The number of spans to look up at once; the lock is released between lookups."""

TRIES = 5

_forked: list[object] = []
"""Clients of a parent process: a child can't even close them safely."""


class KafkaStorage(Storage):
    """The log in a topic."""

    kind = "kafka"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config: StreamConfig = read_config(directory)
        self.spec = self.config.spec
        self._config_version = config_version(directory)
        if self.config.kafka is None:
            raise WriteFailed("the settings of the stream have no Kafka cluster")
        self.cluster: Cluster = self.config.kafka
        self.topic = topic_of(self.cluster, self.config.id, directory.name)
        self._cut = 0
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        found = clients(self.cluster)
        self._known_journal = Journal(found, self.topic, self.spec.wal)
        self._bodies = Bodies(found, self.topic)

    @property
    def _journal(self) -> Journal:
        if self._pid != os.getpid():
            _forked.extend((self._known_journal, self._bodies))
            self._open()
        return self._known_journal

    @contextlib.contextmanager
    def _synced(self) -> Iterator[State]:
        """The current state, locked against changes."""
        journal = self._journal
        with journal.lock:
            yield journal.sync()

    # Reading

    def bounds(self) -> Bounds:
        with self._synced() as state:
            return Bounds(state.first, state.next)

    def spans(self, start: int) -> Iterator[Span]:
        end, reached = self.bounds().next, start
        while reached < end:
            for span in self._page(reached, end):
                yield span
                reached = span.next

    def _page(self, start: int, end: int) -> list[Span]:
        with self._journal.lock:
            state, found = self._journal.state, []
            if start < state.first:
                found.append(Span(start, min(state.first, end), 0, 0, lost="evicted"))
                start = state.first
            number = max(0, bisect_right(state.bases, start) - 1)
            for each in range(number, min(number + PAGE, len(state.bases))):
                base = state.bases[each]
                if base >= end:
                    break
                times, raw, place = state.times[each], state.raw[each], state.places[each]
                found.append(Span(base, state.end_of(each), times, raw, token=place))
            return found

    def _own(self, span: Span) -> Span:
        """The span in this storage for a span that was found before the stream was moved to Kafka."""
        if isinstance(span.token, int) or span.lost is not None:
            return span
        own = next(iter(self._page(span.base, span.next)), span)
        return own if (own.base, own.next) == (span.base, span.next) else span

    def fetch(self, span: Span) -> pa.RecordBatch:
        span = self._own(span)
        if not isinstance(span.token, int):
            raise Damaged(span.base, span.next, span.lost or "unknown")
        _ = self._journal
        try:
            return self._bodies.read(span, span.token)
        except Damaged as damage:
            if span.base < self.bounds().first:
                raise Damaged(span.base, span.next, "evicted") from None
            raise damage

    def place(self, span: Span) -> Place | None:
        span = self._own(span)
        if not isinstance(span.token, int):
            return None
        with self._journal.lock:
            state = self._journal.state
            number = bisect_right(state.bases, span.base) - 1
            if number < 0 or state.bases[number] != span.base:
                return None  # removed in the meantime
            size, shape = state.sizes[number], list(state.known_shapes.values())[state.shapes[number]]
        record = Record(self.topic, FRAMES, span.token, self._java_client)
        return Place(self.topic, 0, size, b64decode(shape), record)

    @cached_property
    def _java_client(self) -> dict[str, str]:
        return self.cluster.java_client()

    def transactions(self, first: int, end: int) -> list[tuple[int, int, str, bool]]:
        with self._synced() as state:
            return [mark for mark in state.marks if mark[0] < end and (mark[1] > first or mark[0] >= first)]

    def offset_at(self, time_us: int) -> int:
        with self._synced() as state:
            later = np.flatnonzero(column(state.times) >= time_us)
            return state.bases[int(later[0])] if later.size else state.next

    def usage(self) -> Usage:
        with self._synced() as state:
            oldest, newest = (state.times[0], state.times[-1]) if state.times else (None, None)
            details: list[dict[str, object]] = [{"base": state.first, "bytes": state.bytes, "memory": False}]
            return Usage(state.bytes, 1, oldest, newest, 0, details)

    # Cursors and counters

    def cursors(self) -> list[Cursor]:
        with self._synced() as state:
            return sorted(state.cursors.values(), key=lambda cursor: cursor.reader)

    def move_cursor(self, cursor: Cursor) -> None:
        at = cursor.at or time.time()
        self._done(["cursor", cursor.reader, cursor.next, cursor.epoch, at, cursor.skipped])

    def forget_cursor(self, reader: str) -> None:
        self._done(["forget", reader])

    def count(self, **counts: int) -> None:
        self._done(["count", counts])

    def counts(self) -> Mapping[str, int]:
        with self._synced() as state:
            return {name: state.counts[name] for name in NAMES}

    def _done(self, operation: Sequence[Any]) -> None:
        outcome = self._journal.add([operation])
        assert not isinstance(outcome, Void)
        if isinstance(outcome[0], Refusal):
            raise outcome[0]

    def progress(self, producer: str) -> Progress:
        with self._synced() as state:
            return state.producers.progress(producer)

    # Writing

    def write(self, appends: Sequence[Append]) -> list[Appended | Refusal]:
        self._reconfigure()
        for _ in range(TRIES):
            if (done := self._written(appends)) is not None:
                return done
            appends = [replace(append, bodies=list(map(self._unplaced, append.bodies))) for append in appends]
        raise WriteFailed("the frames were removed before they were named")

    def _unplaced(self, body: Body) -> Body:
        """The body of a frame that a task has written before retention passed it, to be written again."""
        try:
            return self._bodies.body(body) if isinstance(body, Placed) else body
        except Damaged:
            raise WriteFailed("frames of tasks were removed before they were named") from None

    def _written(self, appends: Sequence[Append]) -> list[Appended | Refusal] | None:
        """The result of each append; None if retention has passed the frames, and nothing was appended."""
        with self._synced() as state:
            verdicts = {
                number: verdict
                for number, append in enumerate(appends)
                if append.producer is not None
                and (verdict := state.producers.judge(append.producer)) is not None
                and not state.producers.outranks(append.producer)
            }
            wanted = [append for number, append in enumerate(appends) if number not in verdicts]
            operations = self._room(state, wanted)
        if wanted:
            operations += self._operations(wanted)
            outcome = self._journal.add(operations)
            if isinstance(outcome, Void):
                return None
            done: Iterator[Outcome] = iter(outcome[len(outcome) - len(wanted) :])
            self._take_overdue_snapshot()
        results = [verdicts.get(number) or next(done) for number in range(len(appends))]
        return [result for result in results if result is not None]

    def _take_overdue_snapshot(self) -> None:
        """Take a snapshot if no server maintains the stream. A failure doesn't affect the finished append."""
        try:
            self._journal.take_snapshot(least=4)
        except (Unavailable, WriteFailed) as error:
            log.warning("no snapshot of a stream was taken", stream=self.config.id, error=str(error))

    def _room(self, state: State, appends: Sequence[Append]) -> list[list[Any]]:
        """The operations that remove old events to make room; raises `Full` if these are unread."""
        events, size = sum(a.events for a in appends), sum(map(_size, (b for a in appends for b in a.bodies)))
        if not events:
            return []
        require_read(state, events, self.spec.buffer.max_unread)
        return room_for(state, self.spec.wal, size)

    def _operations(self, appends: Sequence[Append]) -> list[list[Any]]:
        """Write the frames of appends; returns the operations that name them."""
        bodies = [body for append in appends for body in append.bodies if body.count]
        places = iter(self._bodies.write([body for body in bodies if not isinstance(body, Placed)]))
        now, known = clock.now_us(), self._journal.state.known_shapes
        shapes: dict[str, str] = {}
        made: list[list[Any]] = []
        for append in appends:
            frames = []
            for body in append.bodies:
                if body.count:
                    place, size = (body.place, body.size) if isinstance(body, Placed) else next(places)
                    shape, schema = _shape(_schema_of(body.data))
                    if shape not in known:
                        shapes[shape] = schema
                    frames.append([place, body.count, body.raw_bytes, size, shape])
            p = append.producer
            told = None if p is None else [p.id, p.batch, p.epoch, p.digest, p.position]
            made.append(["write", now, frames, told, append.tx])
        return [*(["shape", shape, schema] for shape, schema in shapes.items()), *made]

    def flush(self) -> None:
        return None  # an acknowledged event is on all in-sync replicas

    def maintain(self) -> None:
        changed = self._reconfigure()
        if changed:
            configure_topic(self._journal.clients, self.topic, self.spec.wal)
        with self._synced() as state:
            operations = expired(state, self.spec.wal)
        if operations:
            self._journal.add(operations)
        with self._synced() as state:
            floor = state.floor
        if floor > self._cut:
            delete_records(self._journal.clients, self.topic, {FRAMES: floor})
            self._cut = floor
        self._journal.take_snapshot()
        self._bodies.rest()
        self._remove_left_files()

    def _remove_left_files(self) -> None:
        """Remove the local files of a stream that was moved to Kafka, once no reader can use them."""
        if (upto := left_files(self.directory)) is None:
            return
        with self._synced() as state:
            running = [cursor.next for cursor in state.cursors.values() if cursor.has_run]
            read = max(state.first, min(running, default=state.next))
        if read >= upto:
            remove_left_files(self.directory)

    def close(self) -> None:
        if self._pid == os.getpid():
            self._known_journal.close()
            self._bodies.close()

    def refresh(self) -> None:
        if self._pid == os.getpid():
            self._bodies.rest()
        with contextlib.suppress(OSError, ValueError):  # a write would report it
            self._reconfigure()

    def _reconfigure(self) -> bool:
        version = config_version(self.directory)
        if version == self._config_version:
            return False
        self.config, self._config_version = read_config(self.directory), version
        self.spec = self.config.spec
        return True


def _size(body: Body) -> int:
    return body.size if isinstance(body, Placed) else len(body.data)


def _schema_of(data: bytes | pa.Buffer) -> bytes:
    """The schema message at the head of a body."""
    message = pa.ipc.MessageReader.open_stream(pa.py_buffer(data)).read_next_message()
    return bytes(message.serialize())


@lru_cache(maxsize=256)
def _shape(schema: bytes) -> tuple[str, str]:
    """The id of a schema, and its message as base64."""
    return hashlib.sha256(schema).hexdigest()[:16], b64encode(schema).decode()
