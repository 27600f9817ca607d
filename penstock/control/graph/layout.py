"""The layout of flows and streams, from their documents, cached until a document changes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_name
from penstock.control.graph.flow_ends import SinkEnd, input_stream, lookup_in, sink_ends
from penstock.control.registry.records import Record
from penstock.control.streams.catalogue import present_streams
from penstock.control.streams.doors import Door, door_at
from penstock.engine.plan.flow import Lookup
from penstock.specs.documents import KINDS

STALE_S = 30.0
"""Maximum age of the layout in seconds: streams for dead letters appear without a document change."""

REST = 5
"""Minimum pause between two reads of all documents, as a multiple of the duration of a read."""

_CHANGES = frozenset({"created", "updated", "deleted"})


@dataclass(frozen=True)
class FlowLayout:
    """The input stream and the sinks of a flow, by which its metrics are found."""

    reads: str | None
    sinks: tuple[SinkEnd, ...]


@dataclass(frozen=True)
class Layout:
    """Flows by uid, the streams, and their readers."""

    flows: Mapping[str, FlowLayout] = field(default_factory=dict)
    readers: Mapping[str, str] = field(default_factory=dict)
    """The keys of flows, by their reader names in streams."""
    doors: Mapping[str, Door] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of registered streams by id."""


def key_of(kind: str, document_id: str) -> str:
    """The key of a document, such as `Pipeline/orders`."""
    return f"{kind}/{document_id}"


def all_records(service: Service) -> list[Record]:
    """All documents except secrets: one query per kind."""
    kinds = [kind for kind in KINDS if kind != "Secret"]
    return [record for kind in kinds for record in service.registry.list(kind, limit=None).items]


class Layouts:
    """Caches the layout of a registry. Used by one thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._layout = Layout()
        self._seen: int | None = None
        self._due = True
        self._built, self._took = 0.0, 0.0

    def current(self) -> Layout:
        """The layout, recomputed if a document has changed."""
        now = time.monotonic()
        self._due = self._changed() or self._due or now - self._built > STALE_S
        if self._due and now - self._built >= REST * self._took:
            self._layout = self._make()
            self._built = time.monotonic()
            self._took, self._due = self._built - now, False
        return self._layout

    def _changed(self) -> bool:
        registry, before = self._service.registry, self._seen
        newest = registry.last_event_id()
        if before is None or newest <= before:
            self._seen = newest
            return before is None
        events = registry.events_after(before)
        self._seen = events[-1].id if events else newest
        return any(event.type in _CHANGES for event in events)

    def _make(self) -> Layout:
        service = self._service
        records = all_records(service)
        lookup = lookup_in(records)
        running = [record for record in records if record.flow is not None]

        def laid_out(record: Record) -> FlowLayout:
            return FlowLayout(
                input_stream(record.document, record.id, lookup),
                tuple(sink_ends(record.document, lookup)),
            )

        return Layout(
            {record.uid: laid_out(record) for record in running},
            {flow_name(record): key_of(record.kind, record.id) for record in running},
            {door.id: door for door in self._doors(records, lookup)},
            {record.id: record.name for record in records if record.kind == "Stream"},
        )

    def _doors(self, records: Sequence[Record], lookup: Lookup) -> Iterator[Door]:
        streams = self._service.streams
        for place in (found.place for found in present_streams(streams.home, records, lookup)):
            door = self._layout.doors.get(place.id)
            if door is not None and (door.directory, door.spec) == (place.directory, place.spec):
                yield door
                continue
            with contextlib.suppress(OSError, ValueError):  # it has just been removed
                yield door_at(streams, place)
