"""The logs behind the streams of a registry."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import structlog

from penstock.control.registry.records import Mark, Record
from penstock.control.registry.store import Registry
from penstock.errors import Invalid, NotFound, Problem, did_you_mean
from penstock.settings import Settings
from penstock.specs.documents import (
    API_VERSION,
    RUNNABLE,
    PipelineBuffer,
    PipelineDocument,
    SourceDocument,
    SourceRef,
    StreamDocument,
    derive_id,
)
from penstock.specs.references import INPUT
from penstock.specs.stream import StreamBuffer, StreamSpec, Wal
from penstock.specs.validation import parse
from penstock.streams.config import read_config
from penstock.streams.home import StreamHome, StreamPlace, dead_id
from penstock.streams.log import Log
from penstock.streams.pool import Pool
from penstock.streams.schema import arrow_schema, same_or_wider

log = structlog.get_logger()

MAINTAIN_S = 2.0

STALE_S = 30.0
"""Streams for dead letters appear without a change of any document; they are looked after this much later."""

_COPY = "make another stream, and copy with a pipeline what you need"

DEAD = ".dead"
"""The suffix of a flow's id for the stream of its dead letters."""

LETTERED = tuple(reversed(RUNNABLE))
"""Kinds that can have dead letters; of documents with the same id the first kind has the short id."""


def input_id(pipeline: str) -> str:
    """The id of the stream that holds the events pushed to a pipeline."""
    return pipeline + INPUT


def dead_letters_id(record: Record) -> str:
    """The id of the stream for a flow's dead letters: the one that its document names, or its own.

    The flow's own id has its kind as prefix, so that documents of another kind with the same id differ.
    """
    named = (record.document.get("spec") or {}).get("dead_letters")
    return derive_id(named) if named else f"{record.kind.lower()}:{record.id}{DEAD}"


class Streams:
    """Finds, creates and maintains the logs of streams: registered ones, inputs, misfits, dead letters."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.home = StreamHome.of(settings)
        self._registry, self._defaults = registry, settings.defaults.model_dump()
        self._pool = Pool()
        self.lost: dict[str, int] = {}
        """By the id of a transient stream: events that were not read when Penstock was restarted."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def place(self, name: str) -> StreamPlace:
        """The place of a stream; NotFound if there is no such stream."""
        found = self._place(derive_id(name))
        if found is None:
            ids = self._registry.ids("Stream")
            hint = did_you_mean(name, ids) if ids else "create one first"
            raise NotFound(Problem(code="not_found", message=f"there is no stream '{name}'", hint=hint))
        return found

    def log(self, name: str) -> Log:
        """The log of a stream; NotFound if there is no such stream."""
        return self.log_at(self.place(name).directory)

    def log_at(self, directory: Path) -> Log:
        """The log in the directory of a stream."""
        return self._pool.log(directory)

    def all(self) -> Iterator[StreamPlace]:
        """Every stream, also those that are not registered themselves."""
        for record in self._registry.list("Stream", limit=None).items:
            yield (place := self._registered(record))
            if place.spec.schema_ is not None and (dead := self._place(dead_id(record.id))):
                yield dead
        for record in self._registry.list("Pipeline", limit=None).items:
            if (pushed := self._input(record)) is not None:
                yield pushed
                if pushed.spec.schema_ is not None and (dead := self._place(dead_id(pushed.id))):
                    yield dead
        for kind in LETTERED:
            for record in self._registry.list(kind, limit=None).items:
                if self.home.directory(
                    record.id + DEAD, record.uid
                ).is_dir():  # created with the first letter
                    yield self._letters(record)

    def ensure(self, record: Record) -> None:
        """Create the log of a saved stream, or give it its new settings."""
        self._registered(record)

    def ensure_all(self) -> None:
        """Give every log its current settings."""
        for _ in self.all():
            pass

    def require_readable(self, record: Record, changed: Mapping[str, Any]) -> None:
        """Refuse a change of a stream or a pipeline's buffer that its stored events do not allow."""
        if record.kind == "Pipeline":
            self._require_readable_input(record, changed)
        if record.kind != "Stream":
            return
        before, after = self._spec(record.document), self._spec(changed)
        bounds = self.log(record.id).bounds()
        if bounds.first == bounds.next:
            return
        problems = []
        if before.storage != after.storage:
            message = f"the events of '{record.name}' are kept in '{before.storage}'"
            problems.append(Problem(code="storage_in_use", message=message, path="storage", hint=_COPY))
        if (before.schema_ is None) != (after.schema_ is None):
            kind = "raw" if before.schema_ is None else "typed"
            message = f"'{record.name}' holds {kind} events"
            problems.append(Problem(code="incompatible_schema", message=message, path="schema", hint=_COPY))
        elif before.schema_ is not None and after.schema_ is not None:
            problems += same_or_wider(arrow_schema(before.schema_), arrow_schema(after.schema_))
        if problems:
            raise Invalid(*(p.model_copy(update={"path": f"spec.{p.path}"}) for p in problems))

    def _require_readable_input(self, record: Record, changed: Mapping[str, Any]) -> None:
        before, after = self._input_spec(record.document), self._input_spec(changed)
        if before is None or after is None or before.storage == after.storage:
            return
        place = self._at(input_id(record.id), record.uid, before)
        unread = self.log_at(place.directory).unread()
        if unread:
            message = f"the buffer holds {unread:,} events that pipeline '{record.name}' has not read"
            hint = "let the pipeline read them before you change the type of its buffer"
            raise Invalid(Problem(code="storage_in_use", message=message, path="spec.buffer.type", hint=hint))

    def remove(self, record: Record) -> None:
        """Remove the logs of a deleted document: a stream, or a flow's input and dead letters."""
        ids = [record.id] if record.kind == "Stream" else [input_id(record.id), record.id + DEAD]
        for stream in ids:
            self._pool.drop(self.home.directory(stream, record.uid))
            self.home.remove(stream, record.uid)

    def forget_reader(self, reader: str, still: Collection[tuple[str, Path]] = ()) -> None:
        """Remove the cursors of a flow and its steps, so that no stream keeps events for them.

        `still` are the cursors that stay: the reader, and the directory of the stream.
        """
        for place in self.all():
            storage = self.log_at(place.directory).storage
            for cursor in storage.cursors():
                own = cursor.reader == reader or cursor.reader.startswith(f"{reader}/")  # one of its steps
                if own and (cursor.reader, place.directory) not in still:
                    storage.forget_cursor(cursor.reader)

    # Start and stop of a server

    def start(self) -> None:
        """Count losses of transient streams, give every log its settings, and start maintenance."""
        places = list(self.all())
        for place in places:
            if not place.spec.wal.enabled:
                unread = self.log_at(place.directory).unread()
                self.lost |= {place.id: unread} if unread else {}
            elif _in_memory(place.directory):  # the stream was transient when the last server ended
                self.log_at(place.directory).storage.maintain()
        self.home.forget_transient()
        for place in places:
            if not place.spec.wal.enabled:
                storage = self.log_at(place.directory).storage
                storage.maintain()  # else it would still report its old contents
                if (lost := self.lost.get(place.id, 0)) > 0:  # invariant 5
                    storage.count(lost_restart=lost)
                    log.warning("a restart has lost events that were in memory", stream=place.id, events=lost)
        self._thread = threading.Thread(target=self._maintain_all, name="streams", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every log, and leave nothing in memory."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._pool.close()
        self.home.forget_transient()

    def _maintain_all(self) -> None:
        places: list[StreamPlace] = []
        seen: Mark | None = None
        listed_at = 0.0
        while not self._stop.wait(MAINTAIN_S):
            try:
                mark = self._registry.mark()
                if mark != seen or time.monotonic() - listed_at > STALE_S:  # to list streams is costly
                    places, seen, listed_at = list(self.all()), mark, time.monotonic()
            except Exception as error:  # the registry may be out of reach for a while
                log.warning("streams are not looked after", error=str(error))
                continue
            for place in places:
                try:
                    self.log_at(place.directory).storage.maintain()
                except Exception as error:
                    log.warning("a stream is not looked after", stream=place.id, error=str(error))

    # From ids to directories

    def _place(self, stream: str) -> StreamPlace | None:
        if (record := self._registry.find("Stream", stream)) is not None:
            return self._registered(record)
        owner, _, suffix = stream.rpartition(".")
        if suffix == "dead" and (of := self._place(owner)) is not None and of.spec.schema_ is not None:
            directory = read_config(of.directory).dead_letters
            return StreamPlace(stream, StreamSpec(), directory) if directory else None
        if suffix == "dead" and (record := self._lettered(owner)) is not None:
            own = self._at(record.id + DEAD, record.uid, self._letters_spec)
            return replace(own, id=stream)
        if suffix == "in" and (record := self._registry.find("Pipeline", owner)) is not None:
            return self._input(record)
        return None

    def _registered(self, record: Record) -> StreamPlace:
        return self._at(record.id, record.uid, self._spec(record.document))

    def _spec(self, raw: Mapping[str, Any]) -> StreamSpec:
        document = parse(raw, self._defaults)
        assert isinstance(document, StreamDocument)
        return document.spec

    def _input(self, record: Record) -> StreamPlace | None:
        """The input stream of a pipeline; None if no events are pushed to it, or it is not valid."""
        spec = self._input_spec(record.document)
        return None if spec is None else self._at(input_id(record.id), record.uid, spec)

    def _input_spec(self, raw: Mapping[str, Any]) -> StreamSpec | None:
        try:
            document = parse(raw, self._defaults)
            assert isinstance(document, PipelineDocument)
            source = document.spec.source
            if isinstance(source, SourceRef) and (found := self._registry.find("Source", source.ref)):
                referred = parse(found.document, self._defaults)
                assert isinstance(referred, SourceDocument)
                source = referred.spec
        except Invalid:  # one that rests may be
            return None
        if not getattr(source, "push", False):
            return None
        spec = input_spec(document, getattr(source, "schema_", None))
        return spec.model_copy(update={"timestamps": getattr(source, "timestamps", "iso")})

    def _lettered(self, owner: str) -> Record | None:
        """The flow of an id; where several kinds have one, `task:ID` says which."""
        named, _, flow = owner.rpartition(":")
        kinds = [kind for kind in LETTERED if named in ("", kind.lower())]
        found = (self._registry.find(kind, flow) for kind in kinds)
        return next((record for record in found if record and record.flow), None)

    def _letters(self, record: Record) -> StreamPlace:
        """The dead letters of a flow under its short id, unless another stream has that id."""
        short, long = record.id + DEAD, f"{record.kind.lower()}:{record.id}{DEAD}"
        own = self._at(short, record.uid, self._letters_spec)
        meant = self._place(short)
        return own if meant is None or meant.directory == own.directory else replace(own, id=long)

    @cached_property
    def _letters_spec(self) -> StreamSpec:
        """The settings of dead letters: default retention, and always on disk (invariant 7)."""
        raw = {"apiVersion": API_VERSION, "kind": "Stream", "metadata": {"name": "letters"}, "spec": {}}
        return StreamSpec(wal=self._spec(raw).wal.model_copy(update={"enabled": True}))

    def _at(self, stream: str, uid: str, spec: StreamSpec) -> StreamPlace:
        return StreamPlace(stream, spec, self.home.ensure(stream, uid, spec))


def input_spec(document: PipelineDocument, schema: str | None) -> StreamSpec:
    """The spec of a pipeline's input stream, from its `buffer`; `schema` is that of its source.

    Unread events are never evicted to make room: at the limit senders are refused.
    """
    wanted = document.spec.buffer or PipelineBuffer()
    buffer = StreamBuffer(mode=wanted.mode, timeout_ms=wanted.timeout_ms)
    if wanted.type == "memory":
        limits = {"max_events": wanted.limit, "max_bytes": wanted.limit_bytes}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        buffer = buffer.model_copy(update={"spill": wanted.spill, **given})
        return StreamSpec(schema_=schema, wal=Wal(enabled=False), buffer=buffer)
    return StreamSpec(
        schema_=schema,
        wal=Wal(on_full="block", retention_bytes=wanted.limit_bytes),
        buffer=buffer.model_copy(update={"max_unread": wanted.limit}),
        storage="sqlite" if wanted.type == "sqlite" else "local",
    )


def _in_memory(directory: Path) -> bool:
    """Whether segments of a stream are in memory."""
    memory = read_config(directory).memory
    return memory is not None and memory.is_dir()
