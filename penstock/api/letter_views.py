"""The views of dead letters in the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from penstock.api.views import View
from penstock.control.events.letters_here import LetterPage, parsed
from penstock.engine.letters.reader import Letter
from penstock.engine.letters.states import State
from penstock.errors import Problem
from penstock.streams.rendering import text_or_base64


class LetterReplay(View):
    """A finished replay of a letter."""

    request: str
    at: datetime
    outcome: Literal["delivered", "failed_again", "sent"] = Field(
        description="`sent`: the original event was sent to the input again."
    )


class LetterView(View):
    """An event that a step or a sink could not process, with its state and replays."""

    offset: int
    time: datetime = Field(description="When the letter was written.")
    code: str
    reason: str | None
    step: str = Field(description="The processor or sink that failed, or `source`.")
    attempt: int = Field(description="Number of attempts.")
    revision: int | None = Field(description="Revision of the document that ran.")
    event: Any = Field(description="The input of the step, or the edited event; text if it is not JSON.")
    key: Any = Field(description="Text, or `{base64}` if it is not UTF-8; null if it has none.")
    headers: dict[str, Any] = Field(description="Headers of the event.")
    source_offset: int | None = Field(description="Offset of the event in its source stream.")
    state: State
    edited: bool
    original: Any = Field(description="The original event, if it was edited.")
    replay_of: int | None = Field(description="Letter whose replay produced this one.")
    replays: list[LetterReplay]
    obstacle: Problem | None = Field(
        description="Why the letter can't be replayed from its step, such as a later step that keeps state."
    )
    in_input: bool = Field(
        description="Whether the input stream of the flow still has the event, so that it can be sent again."
    )


class KindCount(View):
    """The number of letters of one step with one code."""

    step: str
    code: str
    letters: int


class LettersView(View):
    """A page of letters, and the total numbers."""

    letters: list[LetterView]
    next: int | None = Field(description="Offset of the next page; null if there are no more letters.")
    total: int = Field(description="Total number of letters of the flow, regardless of the filter.")
    counts: list[KindCount]
    states: dict[str, int]
    complete: bool = Field(description="False while a long stream is still being counted.")


def letters_view(page: LetterPage) -> LettersView:
    """The view of a page of letters."""
    kinds = sorted(page.counts.by_kind.items(), key=lambda item: (-item[1], item[0]))
    return LettersView(
        letters=[letter_view(letter) for letter in page.letters],
        next=page.next,
        total=page.counts.total,
        counts=[KindCount(step=step, code=code, letters=number) for (step, code), number in kinds],
        states=dict(page.states),
        complete=page.counts.complete,
    )


def letter_view(letter: Letter) -> LetterView:
    """The view of a letter."""
    mark, headers = letter.mark, letter.headers
    original = _event(letter.value)
    revision, before = headers.get("revision"), headers.get("replay_of")
    return LetterView(
        offset=letter.offset,
        time=letter.time,
        code=headers.get("code", ""),
        reason=headers.get("reason"),
        step=letter.step,
        attempt=letter.attempt,
        revision=None if revision is None else int(revision),
        event=original if mark.edit is None else parsed(mark.edit),
        key=text_or_base64(letter.key),
        headers=letter.event["headers"] or {},
        source_offset=letter.source_offset,
        state=mark.state,
        edited=mark.edit is not None,
        original=None if mark.edit is None else original,
        replay_of=None if before is None else int(before),
        replays=[
            LetterReplay(request=each.request, at=datetime.fromtimestamp(each.at, UTC), outcome=each.outcome)
            for each in mark.replays
        ],
        obstacle=letter.obstacle,
        in_input=letter.in_input,
    )


def _event(value: bytes) -> Any:
    found = parsed(value)
    return text_or_base64(value) if found is None else found
