"""The trace of one event: the output of each step for the event, and its fate at each sink.

The event is read again from the stream of the flow and processed by the saved document in a test run; dead
letters and the ledger of the sinks record the actual delivery.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.control.documents.flow_states import flow_of
from penstock.control.documents.service import Service
from penstock.control.events.fates import Fate, Told, fate_of
from penstock.control.events.letters import DeadLetters
from penstock.control.events.sinks import sinks_of
from penstock.control.graph.flow_ends import input_stream
from penstock.control.questions.trial_worker import TestRequest
from penstock.control.questions.trials import ask, sample_of
from penstock.control.registry.records import Record
from penstock.control.streams.doors import Door, Doors
from penstock.control.streams.pages import read_page
from penstock.engine.letters.reader import Letter
from penstock.engine.trials.result import Event, StepResult
from penstock.engine.trials.samples import META
from penstock.errors import Conflict, NotFound, Problem
from penstock.specs.catalog import catalog


@dataclass(frozen=True)
class EventStory:
    """The steps and the fates of an event."""

    stream: str
    offset: int
    time: datetime
    event: Event
    revision: int
    steps: list[StepResult]
    letters: Sequence[Letter]
    sinks: list[Fate]
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)


class Stories:
    """Traces events."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._doors, self._letters = Doors(service), DeadLetters(service)

    def tell(self, kind: str, name: str, offset: int) -> EventStory:
        """The trace of the event at an offset of the stream that a flow reads."""
        service = self._service
        record = service.get(kind, name)
        flow = flow_of(record)
        door = self._door(record)
        event = _event(door, offset)
        time = datetime.fromisoformat(event["time"])
        sample = sample_of(event)
        tested = ask(service, TestRequest(document=record.document, events=[sample]))
        found = self._letters.of_event(kind, name, offset, time)
        remembering = [step.id for step in tested.steps if _remembers(step.type)]
        told = Told(offset, flow.status, flow.error, tested, found.letters, remembering)
        sinks = [fate_of(sink, told) for sink in sinks_of(service, kind, name)]
        for each in _events(tested.steps):
            each[META]["offset"] = offset  # in a test run, the offset is the number of the sample
        warnings = [*tested.warnings, *_warnings(event, remembering, found.next)]
        sample[META]["offset"] = offset
        return EventStory(
            door.id,
            offset,
            time,
            sample,
            record.revision,
            tested.steps,
            found.letters,
            sinks,
            warnings,
            list(map(_hinted, tested.errors)),
        )

    def _door(self, record: Record) -> Door:
        def document(kind: str, document_id: str) -> dict[str, Any] | None:
            found = self._service.registry.find(kind, document_id)
            return found.document if found else None

        stream = input_stream(record.document, record.id, document)
        if stream is None:
            message = (
                f"{record.kind.lower()} '{record.name}' doesn't read a stream, so its events can't be read "
                "again"
            )
            hint = "run a similar event in a test run"
            raise Conflict(Problem(code="no_stream", message=message, hint=hint))
        return self._doors.find(stream)


def _event(door: Door, offset: int) -> dict[str, Any]:
    """An event of a stream; NotFound with the reason if it is not available."""
    bounds = door.log.bounds()
    if offset >= bounds.next:
        there = f"the last offset is {bounds.next - 1}" if bounds.next else "the stream has no events yet"
        message = f"the stream '{door.id}' has no event at offset {offset}: {there}"
        raise NotFound(Problem(code="beyond_end", message=message, path="offset"))
    page = read_page(door, max(offset, bounds.first), 1)
    if offset < bounds.first or page.gap is not None or not page.events:
        why = page.gap.reason if page.gap is not None else "evicted"
        message = f"the event at offset {offset} of the stream '{door.id}' is no longer available: {why}"
        hint = f"the oldest available offset is {bounds.first}" if offset < bounds.first else None
        raise NotFound(Problem(code="gap", message=message, path="offset", hint=hint))
    return page.events[0]


def _warnings(event: dict[str, Any], remembering: list[str], unread: int | None) -> Iterator[Problem]:
    if isinstance(event.get("value"), dict):
        yield Problem(code="not_text", message="the value is not text: unprintable bytes are replaced")
    for step in remembering:
        message = f"step '{step}' keeps state: in this trace it sees only this event"
        yield Problem(code="shown_alone", message=message, path=step)
    if unread is not None:
        message = f"too many dead letters: those from offset {unread} on were not searched"
        yield Problem(code="letters_unread", message=message)


def _hinted(problem: Problem) -> Problem:
    """The problem, with a hint on how to continue if its code has one."""
    if problem.code != "needs_answer":
        return problem
    return problem.model_copy(update={"hint": "use a test run, and provide the answer there"})


def _events(steps: Sequence[StepResult]) -> Iterator[Event]:
    for step in steps:
        yield from (*step.output, *step.dropped_events, *step.late)
        yield from (error.event for error in step.errors)


def _remembers(processor: str) -> bool:
    return bool(getattr(catalog("processor").classes.get(processor), "stateful", False))
