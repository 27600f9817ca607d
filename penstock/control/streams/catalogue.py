"""The existing streams, without creating any: streams of documents, and the flows' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.control.graph.flow_ends import input_stream
from penstock.control.registry.records import Record
from penstock.control.streams.logs import DEAD, HELD, LETTERED, input_id, input_of
from penstock.engine.plan.flow import Lookup
from penstock.streams.config import StreamConfig, read_config
from penstock.streams.home import StreamHome, StreamPlace, dead_id

Role = Literal["registered", "input", "letters", "misfits"]
"""Registered as a document, input of a pipeline, dead letters of a flow, or misfits of a stream."""


@dataclass(frozen=True)
class Present:
    """An existing stream, and the document it belongs to."""

    place: StreamPlace
    owner: Record
    role: Role
    of: str | None = None
    """For misfits: the id of the stream whose schema they don't match."""


def present_streams(home: StreamHome, records: Sequence[Record], lookup: Lookup) -> Iterator[Present]:
    """All existing streams."""
    taken: set[str] = set()
    for record in records:
        if record.kind == "Stream":
            yield from _with_misfits(home, record, record.id, "registered", taken)
        elif record.kind in HELD:
            stream = input_of(record)
            if input_stream(record.document, record.id, lookup) == stream:
                yield from _with_misfits(home, record, stream, "input", taken)
    lettered = [record for record in records if record.flow is not None]
    for record in sorted(lettered, key=lambda record: LETTERED.index(record.kind)):
        short = record.id + DEAD
        config = _config(home, short, record)
        stream = f"{record.kind.lower()}:{short}" if short in taken else short
        taken.add(short)  # the first document of that id owns the short id, even before its first letter
        if config is not None:
            place = StreamPlace(stream, config.spec, home.directory(short, record.uid))
            yield Present(place, record, "letters")


def _with_misfits(
    home: StreamHome, record: Record, stream: str, role: Role, taken: set[str]
) -> Iterator[Present]:
    kept = input_id(record.id) if role == "input" else stream
    config = _config(home, kept, record)
    taken.add(stream)
    if config is None:
        return
    yield Present(StreamPlace(stream, config.spec, home.directory(kept, record.uid)), record, role)
    if config.dead_letters is not None:
        dead = dead_id(stream)
        taken.add(dead)
        if (found := _config(home, dead_id(kept), record)) is not None:
            place = StreamPlace(dead, found.spec, home.directory(dead_id(kept), record.uid))
            yield Present(place, record, "misfits", of=stream)


def _config(home: StreamHome, stream: str, record: Record) -> StreamConfig | None:
    try:
        return read_config(home.directory(stream, record.uid))
    except (OSError, ValueError, KeyError):  # not created yet, or being removed
        return None
