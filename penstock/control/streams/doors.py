"""Streams as request handlers use them, cached to spare the registry a query per request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.control.documents.service import Service
from penstock.control.streams.logs import Streams
from penstock.specs.documents import derive_id
from penstock.specs.stream import StreamSpec
from penstock.streams.config import config_version, read_config
from penstock.streams.decode.values import form_of
from penstock.streams.events import Form, payload_schema
from penstock.streams.guarantee import guarantee
from penstock.streams.home import StreamPlace, dead_id
from penstock.streams.log import Log

FRESH_S = 1.0
"""Seconds for which a door is used without checking in the registry whether another process has deleted the
stream. Edits by this process take effect at once."""

AHEAD_S = 0.5
"""Seconds before its expiry at which a door in use is looked up again."""


KEPT = 1_000
"""Maximum cached doors."""


@dataclass(frozen=True)
class Door:
    """A stream with its settings at one time."""

    id: str
    spec: StreamSpec
    directory: Path
    log: Log
    payload: pa.Schema
    """The columns of the stream's events."""
    guarantee: str
    dead_id: str | None
    """The stream for misfits. A raw stream has none, since it rejects only malformed JSON."""
    dead: Log | None

    form: Form
    """Parses events from JSON."""

    @property
    def schema(self) -> pa.Schema | None:
        """The schema that a body is decoded to; None for raw events."""
        return None if self.spec.schema_ is None else self.payload


@dataclass(frozen=True)
class _Known:
    door: Door
    version: tuple[int, int]
    edits: int
    until: float


class Doors:
    """Finds doors, and caches them while nothing has changed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[str, _Known] = {}

    def known(self, name: str) -> Door | None:
        """The cached door of a stream, if still valid; costs one system call."""
        found = self._known.get(derive_id(name))
        if found is None or found.edits != self._service.registry.edits or time.monotonic() > found.until:
            return None
        try:
            return found.door if config_version(found.door.directory) == found.version else None
        except OSError:  # the stream is gone
            return None

    def expires_soon(self, name: str) -> bool:
        """Whether the cached door of a stream should be refreshed now, so that requests don't wait for it."""
        found = self._known.get(derive_id(name))
        return found is not None and time.monotonic() > found.until - AHEAD_S

    def find(self, name: str) -> Door:
        """The door of a stream; NotFound if there is no such stream. Queries the registry."""
        edits = self._service.registry.edits  # before the look-up: an edit meanwhile invalidates it
        place = self._service.streams.place(name)
        version = config_version(place.directory)
        door = door_at(self._service.streams, place)
        if len(self._known) >= KEPT:  # streams come and go: those still in use are soon cached again
            self._known = {}
        self._known[place.id] = _Known(door, version, edits, time.monotonic() + FRESH_S)
        return door


def door_at(streams: Streams, place: StreamPlace) -> Door:
    """The door of a stream at its place."""
    dead = read_config(place.directory).dead_letters
    payload = payload_schema(place.spec.schema_)
    return Door(
        place.id,
        place.spec,
        place.directory,
        streams.log_at(place.directory),
        payload,
        guarantee(place.spec),
        dead_id(place.id) if dead else None,
        streams.log_at(dead) if dead else None,
        form_of(None if place.spec.schema_ is None else payload),
    )
