"""Which streams there are, without making any: those of documents, and those that flows have of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.control.ends import input_stream
from penstock.control.registry.records import Record
from penstock.control.streams import DEAD, LETTERED, input_id
from penstock.engine.flow import Lookup
from penstock.streams.config import StreamConfig, read_config
from penstock.streams.home import StreamHome, StreamPlace, dead_id

Role = Literal["registered", "input", "letters", "misfits"]
"""A Stream document's; what is pushed to a pipeline; what a flow cannot process; what fits no schema."""


@dataclass(frozen=True)
class Present:
    """A stream that is there, and the document it belongs to."""

    place: StreamPlace
    owner: Record
    role: Role
    of: str | None = None
    """For misfits: the id of the stream that they do not fit."""


def present_streams(home: StreamHome, records: Sequence[Record], lookup: Lookup) -> Iterator[Present]:
    """All that are there."""
    taken: set[str] = set()
    for record in records:
        if record.kind == "Stream":
            yield from _with_misfits(home, record, record.id, "registered", taken)
        elif record.kind == "Pipeline":
            id = input_id(record.id)
            if input_stream(record.document, record.id, lookup) == id:
                yield from _with_misfits(home, record, id, "input", taken)
    lettered = [record for record in records if record.flow is not None]
    for record in sorted(lettered, key=lambda record: LETTERED.index(record.kind)):
        short = record.id + DEAD
        config = _config(home, short, record)
        id = f"{record.kind.lower()}:{short}" if short in taken else short
        taken.add(short)  # of namesakes the first one has the short id, also before its first letter
        if config is not None:
            place = StreamPlace(id, config.spec, home.directory(short, record.uid))
            yield Present(place, record, "letters")


def _with_misfits(
    home: StreamHome, record: Record, id: str, role: Role, taken: set[str]
) -> Iterator[Present]:
    config = _config(home, id, record)
    taken.add(id)
    if config is None:
        return
    yield Present(StreamPlace(id, config.spec, home.directory(id, record.uid)), record, role)
    if config.dead_letters is not None:
        dead = dead_id(id)
        taken.add(dead)
        if (found := _config(home, dead, record)) is not None:
            place = StreamPlace(dead, found.spec, home.directory(dead, record.uid))
            yield Present(place, record, "misfits", of=id)


def _config(home: StreamHome, id: str, record: Record) -> StreamConfig | None:
    try:
        return read_config(home.directory(id, record.uid))
    except (OSError, ValueError, KeyError):  # not made yet, or being removed
        return None
