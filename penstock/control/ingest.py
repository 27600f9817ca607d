"""Sources that events are pushed to: by which names they are known, and to which streams events go."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.control.registry.records import Record
from penstock.control.service import Service
from penstock.control.streams import input_id
from penstock.errors import Conflict, Invalid, NotFound, Problem, did_you_mean
from penstock.specs.documents import PipelineDocument, SourceDocument, derive_id
from penstock.specs.references import publishes_to
from penstock.specs.validation import parse

TYPE = "http"
"""The type of source that takes events over HTTP."""

FRESH_S = 1.0
"""How long a change of a source may go unnoticed."""

MOST_BYTES = 16 * 1024 * 1024
"""What a body may hold where no source says otherwise, counted after decompression."""


@dataclass(frozen=True)
class Entrance:
    """A source that events are pushed to."""

    title: str
    streams: tuple[str, ...]
    """Where events go: its own stream, or the input of every pipeline that takes them from it."""
    atomic: bool
    max_body_bytes: int


@dataclass
class _Index:
    """Every entrance, by each of its names. The id of a Source wins over a path, and that over a pipeline."""

    sources: dict[str, Entrance] = field(default_factory=dict)
    paths: dict[str, list[Entrance]] = field(default_factory=dict)
    pipelines: dict[str, Entrance] = field(default_factory=dict)

    def find(self, name: str) -> list[Entrance]:
        id, path = derive_id(name), name.strip("/")
        if id in self.sources:
            return [self.sources[id]]
        if path in self.paths:
            return self.paths[path]
        return [self.pipelines[id]] if id in self.pipelines else []

    @property
    def names(self) -> set[str]:
        return self.sources.keys() | self.paths.keys() | self.pipelines.keys()


class Entrances:
    """Finds entrances, and keeps them while no document changes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._index = _Index()
        self._event = -1  # the last one before the index was made
        self._until = 0.0

    def known(self, name: str) -> Entrance | None:
        """The entrance of a name if it can be told at once."""
        found = self._index.find(name) if time.monotonic() <= self._until else []
        return found[0] if len(found) == 1 and found[0].streams else None

    def find(self, name: str) -> Entrance:
        """The entrance of a name. NotFound if it has none, Conflict if nobody would get the events."""
        self._refresh()
        found = self._index.find(name)
        if not found:
            raise NotFound(
                Problem(
                    code="not_found",
                    message=f"there is no source '{name}' that events can be sent to",
                    hint=did_you_mean(name, self._index.names)
                    if self._index.names
                    else "create a Source of type http, or a Pipeline that has one",
                )
            )
        if len(found) > 1:
            titles = " and ".join(each.title for each in found)
            hint = "use the id of the one you mean, or change a path"
            raise Conflict(
                Problem(code="ambiguous_path", message=f"{titles} have the path '{name}'", hint=hint)
            )
        if not found[0].streams:
            raise Conflict(
                Problem(
                    code="nobody_reads",
                    message=f"{found[0].title} has no stream, and no pipeline takes events from it",
                    hint="set its spec.stream, or name it as the source of a pipeline",
                )
            )
        return found[0]

    def _refresh(self) -> None:
        until, event = time.monotonic() + FRESH_S, self._service.registry.last_event_id()
        if event != self._event:
            self._index = self._read()
            self._event = event
        self._until = until

    def _read(self) -> _Index:
        index = _Index()
        takers: dict[str, list[str]] = {}
        for record in self._service.registry.list("Pipeline", limit=None).items:
            source = _source(record)
            if isinstance(ref := source.get("ref"), str):
                takers.setdefault(derive_id(ref), []).append(input_id(record.id))
            elif (found := self._component(record, source)) is not None:
                entrance = _entrance(f"pipeline '{record.name}'", found, [input_id(record.id)])
                index.pipelines[record.id] = entrance
                _add_path(index, found, entrance)
        for record in self._service.registry.list("Source", limit=None).items:
            if (found := self._component(record, record.document.get("spec"))) is None:
                continue
            stream = publishes_to(record.document)
            streams = [derive_id(stream)] if stream else takers.get(record.id, [])
            entrance = _entrance(f"source '{record.name}'", found, streams)
            index.sources[record.id] = entrance
            _add_path(index, found, entrance)
        return index

    def _component(self, record: Record, spec: Any) -> Any:
        """The http source in a document, with all its defaults; None if there is none that is valid."""
        if not isinstance(spec, Mapping) or spec.get("type") != TYPE:
            return None
        try:
            document = parse(record.document, self._service.settings.defaults.model_dump())
        except Invalid:  # one that rests may be
            return None
        if isinstance(document, PipelineDocument):
            return document.spec.source
        return document.spec if isinstance(document, SourceDocument) else None


def _source(record: Record) -> Mapping[str, Any]:
    spec = record.document.get("spec")
    source = spec.get("source") if isinstance(spec, Mapping) else None
    return source if isinstance(source, Mapping) else {}


def _entrance(title: str, component: Any, streams: list[str]) -> Entrance:
    return Entrance(title, tuple(streams), component.atomic, component.max_body_bytes)


def _add_path(index: _Index, component: Any, entrance: Entrance) -> None:
    if path := (component.path or "").strip("/"):
        index.paths.setdefault(path, []).append(entrance)
