"""The dead letters of flows in the home of this process."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from penstock.control.documents.edits import Planner
from penstock.control.fleet.progress import flow_directory, flow_name
from penstock.control.questions.letter_replay import life_of
from penstock.control.registry.documents import Documents
from penstock.control.registry.records import Record
from penstock.control.streams.logs import Streams, dead_letters_id
from penstock.engine.letters.counts import Census, Counts
from penstock.engine.letters.reader import Found, Letter, Letterbox, Wanted
from penstock.engine.letters.replay_entry import obstacle
from penstock.engine.letters.states import Marks, State, alone
from penstock.errors import Conflict, NotFound, Problem
from penstock.settings import Settings
from penstock.specs.positions import Position
from penstock.streams.home import StreamPlace
from penstock.streams.log import Log

MOST_OF_ONE = 1000
"""Maximum letters returned for one event."""

MOST_COUNTED = 1000
"""Maximum flows whose letter counts are cached."""


@dataclass(frozen=True)
class LetterPage:
    """A page of letters, the offset of the next page, and the total numbers."""

    letters: Sequence[Letter]
    next: int | None
    counts: Counts
    states: Mapping[State, int]


@dataclass(frozen=True)
class Inlet:
    """The stream that a flow reads, and the key of its positions there."""

    log: Log
    key: str

    def has(self, letter: Letter) -> bool:
        """Whether the stream still has the original event of a letter."""
        offset, bounds = letter.source_offset, self.log.bounds()
        same = letter.headers.get("origin") == self.key
        return same and offset is not None and bounds.first <= offset < bounds.next

    def event(self, letter: Letter) -> pa.RecordBatch | None:
        """The original event of a letter; None if the stream no longer has it."""
        offset = letter.source_offset
        if offset is None or not self.has(letter):
            return None
        return next(self.log.read(offset, offset + 1)).batch


class Letters(Protocol):
    """Dead letters of flows, regardless of where they are stored."""

    def page(
        self,
        kind: str,
        name: str,
        position: Position,
        limit: int,
        wanted: Wanted,
        newest_first: bool = False,
    ) -> LetterPage:
        """Letters from a position on or, with `newest_first`, before it."""

    def of_event(self, kind: str, name: str, offset: int, time: datetime) -> Found:
        """The letters of the event that the flow read at an offset, appended at the given time."""

    def get(self, kind: str, name: str, offset: int) -> Letter:
        """One letter."""

    def edit(self, kind: str, name: str, offset: int, event: Mapping[str, Any]) -> Letter:
        """Replace the event of a letter; passing the original event reverts the edit."""

    def discard(self, kind: str, name: str, offset: int) -> Letter:
        """Mark a letter as discarded, so that it is not replayed."""

    def restore(self, kind: str, name: str, offset: int) -> Letter:
        """Restore a discarded letter."""

    def send(self, kind: str, name: str, offset: int) -> Letter:
        """Append the original event of a letter to the input stream of its flow again."""


class LettersHere:
    """The letters of flows whose files are in the home of this process."""

    def __init__(self, settings: Settings, documents: Documents, streams: Streams) -> None:
        self._settings, self._documents, self._streams = settings, documents, streams
        self._censuses: dict[str, Census] = {}

    def page(
        self,
        kind: str,
        name: str,
        position: Position,
        limit: int,
        wanted: Wanted,
        newest_first: bool = False,
    ) -> LetterPage:
        """Letters from a position on or, with `newest_first`, before it."""
        if not self._streams.has_letters(lettered(self._documents, kind, name)):
            return LetterPage([], None, Counts({}, complete=True), {"new": 0})
        with self._box(kind, name, write=False) as box:
            read = box.page_before if newest_first else box.page
            found = read(box.log.resolve(position), limit, wanted)
            counts = self._census(box).counts()
            states = box.marks.states()
        new = max(0, counts.total - sum(states.values()))
        letters = self._judged(lettered(self._documents, kind, name), found.letters)
        return LetterPage(letters, found.next, counts, {"new": new, **states})

    def of_event(self, kind: str, name: str, offset: int, time: datetime) -> Found:
        """The letters of the event that the flow read at an offset, appended at the given time.

        Letters are never older than their event. `next` is the offset at which a search timed out.
        """
        if not self._streams.has_letters(lettered(self._documents, kind, name)):
            return Found([], None)
        with self._box(kind, name, write=False) as box:
            start = box.log.resolve(Position("time", time=time))
            found = box.page(start, MOST_OF_ONE, Wanted(source_offset=offset))
        # The flow may have read another stream before, with its own offsets.
        same = [each for each in found.letters if _moment(each.event["time"] or time) == _moment(time)]
        return Found(same, found.next)

    def get(self, kind: str, name: str, offset: int) -> Letter:
        """One letter."""
        with self._box(kind, name, write=False) as box:
            letter = _letter(box, offset)
        return self._judged(lettered(self._documents, kind, name), [letter])[0]

    def edit(self, kind: str, name: str, offset: int, event: Mapping[str, Any]) -> Letter:
        """Replace the event of a letter; passing the original event reverts the edit."""
        with self._box(kind, name) as box:
            letter = _letter(box, offset)
            same = event == parsed(letter.value)
            box.marks.edit(offset, None if same else json.dumps(event, ensure_ascii=False))
        return self.get(kind, name, offset)

    def discard(self, kind: str, name: str, offset: int) -> Letter:
        """Mark a letter as discarded, so that it is not replayed. The stream retains it."""
        with self._box(kind, name) as box:
            if _letter(box, offset).mark.state == "replaying":
                with alone(
                    self._directory(lettered(self._documents, kind, name))
                ):  # no replay of it is running
                    box.marks.discard(offset, cut_off=True)
            else:
                box.marks.discard(offset)
        return self.get(kind, name, offset)

    def restore(self, kind: str, name: str, offset: int) -> Letter:
        """Restore a discarded letter."""
        with self._box(kind, name) as box:
            _letter(box, offset)
            box.marks.restore(offset)
        return self.get(kind, name, offset)

    def send(self, kind: str, name: str, offset: int) -> Letter:
        """Append the original event of a letter to the input stream of its flow again."""
        record = lettered(self._documents, kind, name)
        with alone(self._directory(record)), self._box(kind, name) as box:
            letter = _letter(box, offset)
            inlet = self._inlet(record)
            event = None if inlet is None else inlet.event(letter)
            if inlet is None or event is None:
                why = "the flow reads no stream" if inlet is None else "its input no longer has the event"
                message = f"letter {offset} can't be sent to the input: {why}"
                hint = "send a similar event to the source"
                raise Conflict(Problem(code="not_in_input", message=message, hint=hint))
            if letter.mark.state == "new":  # otherwise the mark rejects it
                inlet.log.append(event)
            box.marks.sent(offset, f"send-{uuid.uuid4().hex[:12]}")
        return self.get(kind, name, offset)

    def _judged(self, record: Record, letters: Sequence[Letter]) -> Sequence[Letter]:
        """The letters, with any obstacle to their replay, and whether their event is in the input."""
        flow = Planner(self._settings, self._documents, self._streams).resolve(record) if letters else None
        if flow is None:
            return letters
        inlet = self._inlet(record)
        return [
            replace(
                letter,
                obstacle=obstacle(flow, letter),
                in_input=inlet is not None and inlet.has(letter),
            )
            for letter in letters
        ]

    def _inlet(self, record: Record) -> Inlet | None:
        """The stream that a flow reads; None if it reads no stream, or its document is not valid."""
        flow = Planner(self._settings, self._documents, self._streams).resolve(record)
        place = flow.source.component.reads(flow.site) if flow else None
        if flow is None or place is None:
            return None
        return Inlet(self._streams.log_at(place.directory), flow.position_key)

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
        if known is None or known.log is not box.log:  # the document now names another stream
            known = self._censuses[box.flow] = Census(box.log, box.flow)
        return known


def lettered(documents: Documents, kind: str, name: str) -> Record:
    """A document with dead letters; Conflict if it does not run on its own."""
    record = documents.get(kind, name)
    if record.flow is None:
        message = f"{kind.lower()} '{record.name}' doesn't run on its own, so it has no dead letters"
        hint = "see the dead letters of the pipelines that use it"
        raise Conflict(Problem(code="not_runnable", message=message, hint=hint))
    return record


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def parsed(text: bytes | str) -> Any:
    """An event parsed as JSON, or None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _letter(box: Letterbox, offset: int) -> Letter:
    found = box.at([offset]).get(offset)
    if found is None:
        raise NotFound(Problem(code="not_found", message=f"there is no letter at offset {offset}"))
    return found
