"""The logs behind the streams of a registry."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import structlog

from penstock.control.registry.records import Record
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

_COPY = "make another stream, and copy with a pipeline what you need"

DEAD = ".dead"
"""After a flow's id: the stream for what it cannot process."""

LETTERED = tuple(reversed(RUNNABLE))
"""Kinds that can have dead letters; of namesakes the first one has the short id."""


def input_id(pipeline: str) -> str:
    """The id of the stream that holds what is pushed to a pipeline."""
    return pipeline + INPUT


def dead_letters_id(record: Record) -> str:
    """The id of the stream for what a flow cannot process: the one its document names, or its own.

    With the kind before it, its own is never taken for that of a namesake of another kind.
    """
    named = (record.document.get("spec") or {}).get("dead_letters")
    return derive_id(named) if named else f"{record.kind.lower()}:{record.id}{DEAD}"


class Streams:
    """Finds, makes and looks after the logs. Registered streams have one each; so have, unregistered, the
    input of a pipeline that is pushed to, what did not fit the schema of a typed stream, and what a flow
    could not process.
    """

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.home = StreamHome.of(settings)
        self._registry, self._defaults = registry, settings.defaults.model_dump()
        self._pool = Pool()
        self.lost: dict[str, int] = {}
        """By the id of a transient stream: events that were not read when Penstock was restarted."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def place(self, name: str) -> StreamPlace:
        """Where a stream lies; NotFound if there is no such stream."""
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
            if (input := self._input(record)) is not None:
                yield input
                if input.spec.schema_ is not None and (dead := self._place(dead_id(input.id))):
                    yield dead
        for kind in LETTERED:
            for record in self._registry.list(kind, limit=None).items:
                if self.home.directory(record.id + DEAD, record.uid).is_dir():  # made with the first letter
                    yield self._letters(record)

    def ensure(self, record: Record) -> None:
        """A stream was saved: make its log, or let it know its new settings."""
        self._registered(record)

    def ensure_all(self) -> None:
        """Let every log know its settings."""
        for _ in self.all():
            pass

    def require_readable(self, record: Record, changed: Mapping[str, Any]) -> None:
        """Refuse a change of a stream, or of a pipeline's buffer, that the events in it could not follow."""
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
        """A stream, or something that runs and has an input or dead letters of its own, was deleted."""
        ids = [record.id] if record.kind == "Stream" else [input_id(record.id), record.id + DEAD]
        for id in ids:
            self._pool.drop(self.home.directory(id, record.uid))
            self.home.remove(id, record.uid)

    def forget_reader(self, reader: str) -> None:
        """A flow is gone for good: no stream waits for it any more."""
        for place in self.all():
            storage = self.log_at(place.directory).storage
            for cursor in storage.cursors():
                if cursor.reader == reader or cursor.reader.startswith(f"{reader}/"):  # one of its steps
                    storage.forget_cursor(cursor.reader)

    # The life of a server

    def start(self) -> None:
        """Count what transient streams have lost, let every log know its settings, and look after all."""
        places = list(self.all())
        for place in places:
            if not place.spec.wal.enabled:
                unread = self.log_at(place.directory).unread()
                self.lost |= {place.id: unread} if unread else {}
            elif _in_memory(place.directory):  # it was transient when the last server ended
                self.log_at(place.directory).storage.maintain()
        self.home.forget_transient()
        for place in places:
            if not place.spec.wal.enabled:
                storage = self.log_at(place.directory).storage
                storage.maintain()  # or it would still say what it held
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
        while not self._stop.wait(MAINTAIN_S):
            try:
                places = list(self.all())
            except Exception as error:  # the registry may be out of reach for a while
                log.warning("streams are not looked after", error=str(error))
                continue
            for place in places:
                try:
                    self.log_at(place.directory).storage.maintain()
                except Exception as error:
                    log.warning("a stream is not looked after", stream=place.id, error=str(error))

    # From ids to directories

    def _place(self, id: str) -> StreamPlace | None:
        if (record := self._registry.find("Stream", id)) is not None:
            return self._registered(record)
        owner, _, suffix = id.rpartition(".")
        if suffix == "dead" and (of := self._place(owner)) is not None and of.spec.schema_ is not None:
            directory = read_config(of.directory).dead_letters
            return StreamPlace(id, StreamSpec(), directory) if directory else None
        if suffix == "dead" and (record := self._lettered(owner)) is not None:
            own = self._at(record.id + DEAD, record.uid, self._letters_spec)
            return replace(own, id=id)
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
        """What holds events that are pushed to a pipeline; None if none are, or it is not valid."""
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
        named, _, id = owner.rpartition(":")
        kinds = [kind for kind in LETTERED if named in ("", kind.lower())]
        found = (self._registry.find(kind, id) for kind in kinds)
        return next((record for record in found if record and record.flow), None)

    def _letters(self, record: Record) -> StreamPlace:
        """What a flow could not process, under its short id, unless that means another stream."""
        short, long = record.id + DEAD, f"{record.kind.lower()}:{record.id}{DEAD}"
        own = self._at(short, record.uid, self._letters_spec)
        meant = self._place(short)
        return own if meant is None or meant.directory == own.directory else replace(own, id=long)

    @cached_property
    def _letters_spec(self) -> StreamSpec:
        """How letters are kept: as long as streams are by default, and always on disk (invariant 7)."""
        raw = {"apiVersion": API_VERSION, "kind": "Stream", "metadata": {"name": "letters"}, "spec": {}}
        return StreamSpec(wal=self._spec(raw).wal.model_copy(update={"enabled": True}))

    def _at(self, id: str, uid: str, spec: StreamSpec) -> StreamPlace:
        return StreamPlace(id, spec, self.home.ensure(id, uid, spec))


def input_spec(document: PipelineDocument, schema: str | None) -> StreamSpec:
    """The stream that holds what is pushed to a pipeline, as its `buffer` says; `schema` is its source's.

    Nothing that the pipeline has not read makes room for other events: at the limit senders are refused.
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
