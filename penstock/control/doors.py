"""Streams as those who send events know them, without asking the registry for every request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.control.service import Service
from penstock.control.streams import Streams
from penstock.specs.documents import derive_id
from penstock.specs.stream import StreamSpec
from penstock.streams.config import config_version, read_config
from penstock.streams.events import payload_schema
from penstock.streams.guarantee import guarantee
from penstock.streams.home import StreamPlace, dead_id
from penstock.streams.log import Log

FRESH_S = 1.0
"""After so long the registry is asked again whether there still is such a stream."""


@dataclass(frozen=True)
class Door:
    """A stream under the settings of one moment."""

    id: str
    spec: StreamSpec
    directory: Path
    log: Log
    payload: pa.Schema
    """The columns of its events."""
    guarantee: str
    dead_id: str | None
    """The stream for what does not fit. A raw stream has none: nothing but broken JSON is refused there."""
    dead: Log | None

    @property
    def schema(self) -> pa.Schema | None:
        """What decoding has to make of a body; None for raw events."""
        return None if self.spec.schema_ is None else self.payload


@dataclass(frozen=True)
class _Known:
    door: Door
    version: tuple[int, int]
    until: float


class Doors:
    """Finds doors, and keeps them while nothing has changed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[str, _Known] = {}

    def known(self, name: str) -> Door | None:
        """The door of a stream if it can be told at once: costs one system call."""
        found = self._known.get(derive_id(name))
        if found is None or time.monotonic() > found.until:
            return None
        try:
            return found.door if config_version(found.door.directory) == found.version else None
        except OSError:  # the stream is gone
            return None

    def find(self, name: str) -> Door:
        """The door of a stream; NotFound if there is no such stream. Asks the registry."""
        place = self._service.streams.place(name)
        version = config_version(place.directory)
        door = door_at(self._service.streams, place)
        if len(self._known) > 10_000:  # streams come and go: what is still used is soon known again
            self._known = {}
        self._known[place.id] = _Known(door, version, time.monotonic() + FRESH_S)
        return door


def door_at(streams: Streams, place: StreamPlace) -> Door:
    """The door of a stream in its place."""
    dead = read_config(place.directory).dead_letters
    return Door(
        place.id,
        place.spec,
        place.directory,
        streams.log_at(place.directory),
        payload_schema(place.spec.schema_),
        guarantee(place.spec),
        dead_id(place.id) if dead else None,
        streams.log_at(dead) if dead else None,
    )
