"""The logs behind the streams of a registry."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import structlog

from penstock.control.registry.documents import Documents
from penstock.control.registry.records import Mark, Record
from penstock.errors import Conflict, Invalid, NotFound, Problem, Unavailable, did_you_mean
from penstock.plurals import plural
from penstock.settings import Settings
from penstock.specs.documents import (
    API_VERSION,
    RUNNABLE,
    Document,
    PipelineBuffer,
    PipelineDocument,
    SourceDocument,
    SourceRef,
    StreamDocument,
    derive_id,
    runs,
)
from penstock.specs.references import INPUT
from penstock.specs.stream import StreamBuffer, StreamSpec, Wal
from penstock.specs.validation import parse
from penstock.streams.config import config_version, read_config
from penstock.streams.home import StreamHome, StreamPlace, dead_id, misfits_spec
from penstock.streams.log import Log
from penstock.streams.moves import is_moving
from penstock.streams.pool import Pool
from penstock.streams.remote.host import StreamHost
from penstock.streams.schema import arrow_schema, same_or_wider

log = structlog.get_logger()

MAINTAIN_S = 2.0

ROUND = 200
"""Streams maintained every `MAINTAIN_S`: opening more would keep a core busy. With 10,000 streams, each is
maintained every 100 seconds; appends enforce size limits themselves."""

SPECS = 1_000

STALE_S = 30.0
"""Seconds between listings of all streams: streams for dead letters appear without a document change."""

_COPY = "create another stream and copy the events with a pipeline"

DEAD = ".dead"
"""The suffix of a flow's id for the stream of its dead letters."""

HELD = ("Pipeline", "Source")
"""Kinds whose flows can have an input stream."""

LETTERED = tuple(reversed(RUNNABLE))
"""Kinds that can have dead letters; among documents with the same id, the first kind gets the short id."""


def input_id(pipeline: str) -> str:
    """The id of the stream that stores the events of a pipeline before it reads them."""
    return pipeline + INPUT


def input_of(record: Record) -> str:
    """The id of the stream that stores the events of a flow before it reads them.

    For a Source, the id has the kind as prefix, to differ from a pipeline with the same id.
    """
    own = input_id(record.id)
    return own if record.kind == "Pipeline" else f"{record.kind.lower()}:{own}"


def dead_letters_id(record: Record) -> str:
    """The id of the stream for a flow's dead letters: named by its document, or the flow's own.

    The flow's own id has the kind as prefix, to differ from documents of another kind with the same id.
    """
    named = (record.document.get("spec") or {}).get("dead_letters")
    return derive_id(named) if named else f"{record.kind.lower()}:{record.id}{DEAD}"


class Streams:
    """Finds, creates and maintains the logs of streams: registered ones, inputs, misfits, dead letters."""

    def __init__(self, settings: Settings, registry: Documents) -> None:
        self.home = StreamHome.of(settings)
        self._registry, self._defaults = registry, settings.defaults.model_dump()
        self._pool = Pool()
        self.host = StreamHost()
        """Gives workers on other machines access to the streams of this home."""
        self.lost: dict[str, int] = {}
        """Unread events lost when Penstock was restarted, by the id of the transient stream."""
        self._specs: dict[str, StreamSpec] = {}
        """Specs by their text. Thousands of streams have few distinct specs, and parsing is slow."""
        self._places: dict[Path, tuple[StreamSpec, tuple[int, int], StreamPlace]] = {}
        """By directory: the spec of its log, the version of the stored settings, and its place."""
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
        """Every stream, including those without a document of their own."""
        for record in self._registry.list("Stream", limit=None).items:
            yield (place := self._registered(record))
            if place.spec.schema_ is not None and (dead := self._place(dead_id(record.id))):
                yield dead
        for kind in HELD:
            for record in self._registry.list(kind, limit=None).items:
                if (held := self._input(record)) is not None:
                    yield held
                    if held.spec.schema_ is not None and (dead := self._place(dead_id(held.id))):
                        yield dead
        for kind in LETTERED:
            for record in self._registry.list(kind, limit=None).items:
                if self._has_own_letters(record):
                    yield self._letters(record)

    def has_letters(self, record: Record) -> bool:
        """Whether the stream for a flow's dead letters exists. To look into it would create it."""
        named = (record.document.get("spec") or {}).get("dead_letters")
        return bool(named) or self._has_own_letters(record)

    def _has_own_letters(self, record: Record) -> bool:
        """Whether a flow has a stream of its own for dead letters: it is created with the first letter."""
        return self.home.directory(record.id + DEAD, record.uid).is_dir()

    def ensure(self, record: Record, before: Record | None = None) -> None:
        """Create the log of a saved stream or of a flow's input, or apply its new settings.

        An edit of the empty stream `before` may choose another storage. Otherwise the storage is unchanged,
        since a document that was read before a move still names the old storage.
        """
        if record.kind != "Stream":
            self._input(record)
            return
        spec = self._spec(record.document)
        if before is not None and self._spec(before.document).storage != spec.storage:
            self.home.ensure(record.id, record.uid, spec, storage=True)
        self._registered(record)

    def require_at_rest(self, record: Record) -> None:
        """Conflict while a move of a stream to another storage is running, or was interrupted."""
        if record.kind == "Stream" and is_moving(self.place(record.id).directory):
            message = f"'{record.name}' is being moved to another storage"
            hint = f"wait for the move, or undo it: `penstock stream move '{record.name}' --undo`"
            raise Conflict(Problem(code="move_running", message=message, path="spec.storage", hint=hint))

    def require_readable(self, record: Record, changed: Mapping[str, Any]) -> None:
        """Reject a change of a stream or a pipeline's buffer that is incompatible with its stored events."""
        if record.kind == "Pipeline":
            self._require_readable_input(record, changed)
        if record.kind != "Stream":
            return
        before, after = self.place(record.id).spec, self._spec(changed)
        if before.storage != after.storage:
            self.require_at_rest(record)
        bounds = self.log(record.id).bounds()
        if bounds.first == bounds.next:
            return
        problems = []
        if before.storage != after.storage:
            message = f"the events of '{record.name}' are kept in '{before.storage}'"
            moves = before.storage == "local" and after.storage == "kafka"
            hint = f"`penstock stream move '{record.name}' --to kafka`" if moves else _COPY
            problems.append(Problem(code="storage_in_use", message=message, path="storage", hint=hint))
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
        place = self._at(input_id(record.id), record.uid, before, storage=True)
        unread = self.log_at(place.directory).unread()
        if unread:
            message = f"the buffer holds {plural(unread, 'event')} that pipeline '{record.name}' has not read"
            hint = "wait until the pipeline has read them before changing the type of its buffer"
            raise Invalid(Problem(code="storage_in_use", message=message, path="spec.buffer.type", hint=hint))

    def remove(self, record: Record) -> None:
        """Remove the logs of a deleted document: a stream, or a flow's input and dead letters."""
        ids = [record.id] if record.kind == "Stream" else [input_id(record.id), record.id + DEAD]
        for stream in ids:
            for logs in (self._pool, self.host):
                logs.drop(self.home.directory(stream, record.uid))
            self._places.pop(self.home.directory(stream, record.uid), None)
            self.home.remove(stream, record.uid)

    def has_input(self, record: Record) -> bool:
        """Whether this home has an input stream for the events of a flow."""
        return self.home.directory(input_id(record.id), record.uid).is_dir()

    def forget_reader(self, reader: str, still: Collection[tuple[str, Path]] = ()) -> None:
        """Remove the cursors of a flow and its steps, so that no stream retains events for them.

        `still` are the cursors to retain: the reader, and the directory of the stream.
        """
        for place in self.all():
            try:
                found = self.log_at(place.directory)
                for cursor in found.storage.cursors():
                    own = cursor.reader == reader or cursor.reader.startswith(
                        f"{reader}/"
                    )  # one of its steps
                    if own and (cursor.reader, place.directory) not in still:
                        found.forget_cursor(cursor.reader)
            except Unavailable as error:  # must not prevent the removal of others
                log.warning("a cursor may be left in a stream", stream=place.id, error=str(error))

    # Start and stop of a server

    def start(self) -> None:
        """Count losses of transient streams, apply settings to every log, and start maintenance."""
        places = list(self.all())
        for place in places:
            if not place.spec.wal.enabled:
                unread = self.log_at(place.directory).unread()
                self.lost |= {place.id: unread} if unread else {}
            elif _in_memory(place.directory):  # the stream was transient when the last server stopped
                self.log_at(place.directory).maintain()
        self.home.forget_transient()
        for place in places:
            if not place.spec.wal.enabled:
                storage = self.log_at(place.directory).storage
                storage.maintain()  # otherwise it would still report its old contents
                if (lost := self.lost.get(place.id, 0)) > 0:  # invariant 5
                    storage.count(lost_restart=lost)
                    log.warning("events in memory were lost in a restart", stream=place.id, events=lost)
        self._thread = threading.Thread(target=self._maintain_all, name="streams", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every log, and remove transient streams from memory."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.host.close()
        self._pool.close()
        self.home.forget_transient()

    def _maintain_all(self) -> None:
        places: list[StreamPlace] = []
        seen: Mark | None = None
        listed_at, turn = 0.0, 0
        while not self._stop.wait(MAINTAIN_S):
            try:
                mark = self._registry.mark()
                if mark != seen or time.monotonic() - listed_at > STALE_S:  # listing streams is slow
                    places, seen, listed_at = list(self.all()), mark, time.monotonic()
            except Exception as error:  # the registry may be temporarily unreachable
                log.warning("stream maintenance failed", error=str(error))
                continue
            turn = turn if turn < len(places) else 0
            due, turn = places[turn : turn + ROUND], turn + ROUND
            for place in due:
                if self._stop.is_set():
                    return
                try:
                    self.log_at(place.directory).maintain()
                except Exception as error:
                    log.warning("maintenance of a stream failed", stream=place.id, error=str(error))

    # From ids to directories

    def _place(self, stream: str) -> StreamPlace | None:
        if (record := self._registry.find("Stream", stream)) is not None:
            return self._registered(record)
        owner, _, suffix = stream.rpartition(".")
        if suffix == "dead" and (of := self._place(owner)) is not None and of.spec.schema_ is not None:
            directory = read_config(of.directory).dead_letters
            return StreamPlace(stream, misfits_spec(of.spec), directory) if directory else None
        if suffix == "dead" and (record := self._lettered(owner)) is not None:
            own = self._at(record.id + DEAD, record.uid, self._letters_spec)
            return replace(own, id=stream)
        kind, _, flow = owner.rpartition(":")
        if suffix == "in" and (record := self._registry.find(kind.title() or "Pipeline", flow)) is not None:
            return self._input(record)
        return None

    def _registered(self, record: Record) -> StreamPlace:
        return self._at(record.id, record.uid, self._spec(record.document))

    def _spec(self, raw: Mapping[str, Any]) -> StreamSpec:
        text = json.dumps(raw.get("spec"), sort_keys=True)
        if (known := self._specs.get(text)) is None:
            document = parse(raw, self._defaults)
            assert isinstance(document, StreamDocument)
            if len(self._specs) >= SPECS:
                self._specs = {}
            known = self._specs[text] = document.spec
        return known

    def _input(self, record: Record) -> StreamPlace | None:
        """The input stream of a flow; None if the flow has none, or the document is not valid."""
        if record.kind not in HELD or (record.kind == "Source" and not runs(record.document)):
            return None
        spec = self._input_spec(record.document)
        if spec is None:
            return None
        return replace(self._at(input_id(record.id), record.uid, spec, storage=True), id=input_of(record))

    def _input_spec(self, raw: Mapping[str, Any]) -> StreamSpec | None:
        try:
            document = parse(raw, self._defaults)
            source, buffer = _source_and_buffer(document)
            if isinstance(source, SourceRef) and (found := self._registry.find("Source", source.ref)):
                referred = parse(found.document, self._defaults)
                assert isinstance(referred, SourceDocument)
                source = referred.spec
        except Invalid:  # possible for an inactive document
            return None
        if not getattr(source, "held", False):
            return None
        schema = source.input_schema(source.model_dump(by_alias=True))
        spec = input_spec(buffer, schema)
        return spec.model_copy(update={"timestamps": getattr(source, "timestamps", "iso")})

    def _lettered(self, owner: str) -> Record | None:
        """The flow with an id; `task:ID` selects the kind if several kinds have a flow with that id."""
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

    def _at(self, stream: str, uid: str, spec: StreamSpec, *, storage: bool = False) -> StreamPlace:
        directory = self.home.directory(stream, uid)
        with contextlib.suppress(OSError, KeyError):
            declared, version, place = self._places[directory]
            if declared == spec and config_version(directory) == version:
                return place
        self.home.ensure(stream, uid, spec, storage=storage)
        version = config_version(directory)  # before the read: a change in between is seen next time
        place = StreamPlace(stream, self.home.stored(directory, spec), directory)
        self._places[directory] = spec, version, place
        return place


def _source_and_buffer(document: Document) -> tuple[Any, PipelineBuffer | None]:
    """The source of a document, inline or by reference, and the settings of its buffer."""
    if isinstance(document, SourceDocument):
        return document.spec, None
    assert isinstance(document, PipelineDocument)
    return document.spec.source, document.spec.buffer


def input_spec(given: PipelineBuffer | None, schema: str | None) -> StreamSpec:
    """The spec of a flow's input stream, from the `buffer` of a pipeline and the `schema` of its source.

    Unread events are never evicted to free space: at the limit, producers are rejected, and receivers wait.
    """
    wanted = given or PipelineBuffer()
    buffer = StreamBuffer(mode=wanted.mode, timeout_ms=wanted.timeout_ms)
    if wanted.type == "memory":
        limits = {"max_events": wanted.limit, "max_bytes": wanted.limit_bytes}
        known = {name: limit for name, limit in limits.items() if limit is not None}
        buffer = buffer.model_copy(update={"spill": wanted.spill, **known})
        return StreamSpec(schema_=schema, wal=Wal(enabled=False), buffer=buffer)
    return StreamSpec(
        schema_=schema,
        wal=Wal(on_full="block", retention_bytes=wanted.limit_bytes),
        buffer=buffer.model_copy(update={"max_unread": wanted.limit}),
        storage="sqlite" if wanted.type == "sqlite" else "local",
    )


def _in_memory(directory: Path) -> bool:
    """Whether a stream has segments in memory."""
    memory = read_config(directory).memory
    return memory is not None and memory.is_dir()
