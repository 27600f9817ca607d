"""Sources that receive pushed events: their names, and the streams that store the events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.control.documents.service import Service
from penstock.control.registry.records import Mark, Record
from penstock.control.streams.logs import input_id
from penstock.errors import Conflict, Invalid, NotFound, Problem, did_you_mean
from penstock.specs.documents import PipelineDocument, SourceDocument, derive_id
from penstock.specs.references import publishes_to
from penstock.specs.validation import parse

TYPE = "http"
"""The type of source that receives events over HTTP."""

FRESH_S = 1.0
"""Seconds after which a change of a source by another process takes effect. Edits by this process take effect
at once."""

AHEAD_S = 0.5
"""Seconds before their expiry at which entrances in use are looked up again."""

MOST_BYTES = 16 * 1024 * 1024
"""The default limit of a body in bytes, after decompression."""


@dataclass(frozen=True)
class Entrance:
    """A source that receives pushed events."""

    title: str
    streams: tuple[str, ...]
    """The streams that store the events: the source's own, or the input of every pipeline that uses it."""
    atomic: bool
    max_body_bytes: int


@dataclass
class _Index:
    """Every entrance, by each of its names. Source ids take precedence over paths, paths over pipelines."""

    sources: dict[str, Entrance] = field(default_factory=dict)
    paths: dict[str, list[Entrance]] = field(default_factory=dict)
    pipelines: dict[str, Entrance] = field(default_factory=dict)

    def find(self, name: str) -> list[Entrance]:
        document_id, path = derive_id(name), name.strip("/")
        if document_id in self.sources:
            return [self.sources[document_id]]
        if path in self.paths:
            return self.paths[path]
        return [self.pipelines[document_id]] if document_id in self.pipelines else []

    @property
    def names(self) -> set[str]:
        return self.sources.keys() | self.paths.keys() | self.pipelines.keys()


class Entrances:
    """Finds entrances, and caches them while no document changes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._index = _Index()
        self._mark: Mark | None = None
        self._until = 0.0
        self._edits = -1

    def known(self, name: str) -> Entrance | None:
        """The cached entrance of a name, if still valid."""
        fresh = self._edits == self._service.registry.edits and time.monotonic() <= self._until
        found = self._index.find(name) if fresh else []
        return found[0] if len(found) == 1 and found[0].streams else None

    @property
    def expire_soon(self) -> bool:
        """Whether the cached entrances should be refreshed now, so that requests don't wait for it."""
        return time.monotonic() > self._until - AHEAD_S

    def find(self, name: str) -> Entrance:
        """The entrance of a name; NotFound if there is none, Conflict if no stream stores its events."""
        self._refresh()
        found = self._index.find(name)
        if not found:
            raise NotFound(
                Problem(
                    code="not_found",
                    message=f"there is no http source '{name}'",
                    hint=did_you_mean(name, self._index.names)
                    if self._index.names
                    else "create a Source of type http, or a Pipeline that has one",
                )
            )
        if len(found) > 1:
            titles = " and ".join(each.title for each in found)
            hint = "use an id instead, or change a path"
            raise Conflict(
                Problem(code="ambiguous_path", message=f"{titles} have the path '{name}'", hint=hint)
            )
        if not found[0].streams:
            raise Conflict(
                Problem(
                    code="nobody_reads",
                    message=f"{found[0].title} has no stream, and no pipeline reads it",
                    hint="set its spec.stream, or use it as the source of a pipeline",
                )
            )
        return found[0]

    def _refresh(self) -> None:
        edits = self._service.registry.edits  # before the look-up: an edit meanwhile invalidates it
        until, mark = time.monotonic() + FRESH_S, self._service.registry.mark()
        if mark != self._mark:
            self._index = self._read()
            self._mark = mark
        self._until, self._edits = until, edits

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
        """The http source in a document, with defaults filled in; None if there is no valid one."""
        if not isinstance(spec, Mapping) or spec.get("type") != TYPE:
            return None
        try:
            document = parse(record.document, self._service.settings.defaults.model_dump())
        except Invalid:  # possible for an inactive document
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
