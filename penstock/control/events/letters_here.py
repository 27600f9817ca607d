"""The dead letters of flows in the home of this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from penstock.control.fleet.progress import flow_directory, flow_name
from penstock.control.questions.letter_replay import life_of
from penstock.control.registry.documents import Documents
from penstock.control.registry.records import Record
from penstock.control.streams.logs import Streams, dead_letters_id
from penstock.engine.letters.counts import Census, Counts
from penstock.engine.letters.reader import Found, Letter, Letterbox, Wanted
from penstock.engine.letters.states import Marks, State, alone
from penstock.errors import Conflict, NotFound, Problem
from penstock.settings import Settings
from penstock.specs.positions import Position
from penstock.streams.home import StreamPlace

MOST_OF_ONE = 1000
"""The most letters that are returned for one event."""

MOST_COUNTED = 1000
"""The most flows whose letter counts are cached."""


@dataclass(frozen=True)
class LetterPage:
    """A page of letters, the offset of the next page, and the total numbers."""

    letters: Sequence[Letter]
    next: int | None
    counts: Counts
    states: Mapping[State, int]


class Letters(Protocol):
    """Dead letters of flows, wherever they are kept."""

    def page(self, kind: str, name: str, position: Position, limit: int, wanted: Wanted) -> LetterPage:
        """Letters from a position on."""

    def of_event(self, kind: str, name: str, offset: int, time: datetime) -> Found:
        """The letters of the event that the flow read at an offset, and that was appended at that time."""

    def get(self, kind: str, name: str, offset: int) -> Letter:
        """One letter."""

    def edit(self, kind: str, name: str, offset: int, event: Mapping[str, Any]) -> Letter:
        """Put another event in the place of a letter's; the original ends the edit."""

    def discard(self, kind: str, name: str, offset: int) -> Letter:
        """Mark a letter as discarded, so that it is not replayed."""

    def restore(self, kind: str, name: str, offset: int) -> Letter:
        """Restore a discarded letter."""


class LettersHere:
    """The letters of flows whose files are in the home of this process."""

    def __init__(self, settings: Settings, documents: Documents, streams: Streams) -> None:
        self._settings, self._documents, self._streams = settings, documents, streams
        self._censuses: dict[str, Census] = {}

    def page(self, kind: str, name: str, position: Position, limit: int, wanted: Wanted) -> LetterPage:
        """Letters from a position on."""
        with self._box(kind, name, write=False) as box:
            found = box.page(box.log.resolve(position), limit, wanted)
            counts = self._census(box).counts()
            states = box.marks.states()
        new = max(0, counts.total - sum(states.values()))
        return LetterPage(found.letters, found.next, counts, {"new": new, **states})

    def of_event(self, kind: str, name: str, offset: int, time: datetime) -> Found:
        """The letters of the event that the flow read at an offset, and that was appended at that time.

        Letters are never older than their event. `next` is the offset where a search ran out of time.
        """
        with self._box(kind, name, write=False) as box:
            start = box.log.resolve(Position("time", time=time))
            found = box.page(start, MOST_OF_ONE, Wanted(source_offset=offset))
        # The flow may have read another stream before, with offsets of its own.
        same = [each for each in found.letters if _moment(each.event["time"] or time) == _moment(time)]
        return Found(same, found.next)

    def get(self, kind: str, name: str, offset: int) -> Letter:
        """One letter."""
        with self._box(kind, name, write=False) as box:
            return _letter(box, offset)

    def edit(self, kind: str, name: str, offset: int, event: Mapping[str, Any]) -> Letter:
        """Put another event in the place of a letter's; the original ends the edit."""
        with self._box(kind, name) as box:
            letter = _letter(box, offset)
            same = event == parsed(letter.value)
            box.marks.edit(offset, None if same else json.dumps(event, ensure_ascii=False))
            return _letter(box, offset)

    def discard(self, kind: str, name: str, offset: int) -> Letter:
        """Mark a letter as discarded, so that it is not replayed. It stays in its stream."""
        with self._box(kind, name) as box:
            if _letter(box, offset).mark.state == "replaying":
                with alone(
                    self._directory(lettered(self._documents, kind, name))
                ):  # no replay of it is running
                    box.marks.discard(offset, cut_off=True)
            else:
                box.marks.discard(offset)
            return _letter(box, offset)

    def restore(self, kind: str, name: str, offset: int) -> Letter:
        """Restore a discarded letter."""
        with self._box(kind, name) as box:
            _letter(box, offset)
            box.marks.restore(offset)
            return _letter(box, offset)

    @contextmanager
    def _box(self, kind: str, name: str, *, write: bool = True) -> Iterator[Letterbox]:
        record = lettered(self._documents, kind, name)
        place = self._place(record)
        log = self._streams.log_at(place.directory)
        with Marks.open(self._directory(record), life_of(place), write=write) as marks:
            yield Letterbox(log, flow_name(record), marks)

    def _place(self, record: Record) -> StreamPlace:
        return self._streams.place(dead_letters_id(record))

    def _directory(self, record: Record) -> Path:
        return flow_directory(self._settings, record)

    def _census(self, box: Letterbox) -> Census:
        if len(self._censuses) > MOST_COUNTED:  # flows come and go
            self._censuses = {}
        known = self._censuses.get(box.flow)
        if known is None or known.log is not box.log:  # its document names another stream now
            known = self._censuses[box.flow] = Census(box.log, box.flow)
        return known


def lettered(documents: Documents, kind: str, name: str) -> Record:
    """A document with dead letters; Conflict if it does not run by itself."""
    record = documents.get(kind, name)
    if record.flow is None:
        message = f"{kind.lower()} '{record.name}' doesn't run on its own, so it has no dead letters"
        hint = "see the dead letters of the pipelines that use it"
        raise Conflict(Problem(code="not_runnable", message=message, hint=hint))
    return record


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def parsed(text: bytes | str) -> Any:
    """An event as JSON, or None if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _letter(box: Letterbox, offset: int) -> Letter:
    found = box.at([offset]).get(offset)
    if found is None:
        raise NotFound(Problem(code="not_found", message=f"there is no letter at offset {offset}"))
    return found
