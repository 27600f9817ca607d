"""The fate of one event at each sink, as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.control.events.sinks import SinkStanding
from penstock.engine.delivery.sink_states import Range
from penstock.engine.letters.reader import Letter
from penstock.engine.trials.result import TestResult

FateState = Literal["delivered", "waiting", "behind", "not_chosen", "failed", "unknown"]


@dataclass(frozen=True)
class Fate:
    """The fate of an event at a sink, and the reason."""

    id: str
    type: str
    state: FateState
    why: str


@dataclass(frozen=True)
class Told:
    """Known facts about an event, except the state of its sinks."""

    offset: int
    status: str
    """The status of the flow."""
    error: dict[str, Any] | None
    tested: TestResult
    """The result of a test run with the event."""
    letters: Sequence[Letter]
    remembering: Sequence[str]
    """Steps whose output depends on other events too."""


def fate_of(sink: SinkStanding, told: Told) -> Fate:
    """The fate of an event at a sink.

    Dead letters are facts and come first; then the output of the steps, then the progress of the sink.
    """
    state, why = _by_letters(sink.id, told) or _by_steps(sink, told) or _by_standing(sink, told)
    return Fate(sink.id, sink.type, state, why)


def _by_letters(sink: str, told: Told) -> tuple[FateState, str] | None:
    own = [letter for letter in told.letters if letter.of_sink and letter.step == sink]
    if not own and not told.tested.output.get(sink):  # otherwise part of the output has reached the sinks
        own = [letter for letter in told.letters if not letter.of_sink]
    if not own:
        return None
    last = own[-1]
    if last.mark.state == "replayed" and last.mark.replays[-1].outcome == "delivered":
        return "delivered", f"dead letter {last.offset} of the event was replayed"
    what = "the sink rejected the event" if last.of_sink else f"the event failed in step '{last.step}'"
    return "failed", f"{what}: {last.headers.get('reason')} (dead letter {last.offset})"


def _by_steps(sink: SinkStanding, told: Told) -> tuple[FateState, str] | None:
    """Why the steps keep the event from the sink; None if they don't, or if the reason is unknown."""
    tested = told.tested
    if not tested.ok or tested.output.get(sink.id):
        return None
    for step in tested.steps:
        if step.id in told.remembering and not step.output:
            return "unknown", f"the output of step '{step.id}' also depends on other events"
        if step.errors and not step.output:
            done = (sink.standing.cursor or 0) > told.offset
            why = f"the event fails in step '{step.id}': {step.errors[0].message}"
            return "failed" if done else "waiting", why
        if step.late and not step.output:
            return "not_chosen", f"the event arrived too late for step '{step.id}'"
        if not step.output:
            return "not_chosen", f"step '{step.id}' drops the event"
    return "not_chosen", "the conditions of the steps and the sink don't select the event"


def _by_standing(sink: SinkStanding, told: Told) -> tuple[FateState, str]:
    standing = sink.standing
    gap = next((each for each in standing.gaps if _holds(each, told.offset)), None)
    if gap is not None and gap.kept == "lost":
        return "failed", f"the sink missed the batch of this event, and the batch is lost: {gap.why}"
    if gap is not None:
        why = f": {standing.last_error}" if standing.last_error else ""
        return "behind", f"the sink missed the batch of this event and still has to catch up{why}"
    if standing.cursor is None or told.offset >= standing.cursor:
        return "waiting", _waiting(told)
    if not told.tested.ok:
        return "unknown", "the batch was processed, but it is unknown whether it still contained this event"
    if told.remembering:
        return "unknown", (
            f"the batch was processed; the result of step '{told.remembering[0]}' also depends on other "
            "events"
        )
    return "delivered", f"the sink has acknowledged everything before offset {standing.cursor}"


def _waiting(told: Told) -> str:
    if told.status != "active":
        why = f": {told.error['message']}" if told.status == "failed" and told.error else ""
        return f"the batch of this event has not been delivered yet, and the flow is {told.status}{why}"
    return "the batch of this event has not been delivered yet"


def _holds(gap: Range, offset: int) -> bool:
    return gap.first is not None and gap.next is not None and gap.first <= offset < gap.next
