"""The trace of one event through a flow."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.letter_views import LetterView, letter_view
from penstock.api.params import Name
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.events.fates import FateState
from penstock.control.events.story import Stories
from penstock.engine.trials.result import StepResult
from penstock.errors import Problem
from penstock.specs.positions import LAST_OFFSET

_DESCRIPTION = """\
Reads the event again from the stream and runs it through the steps of the saved document, as a test run
does: nothing is written, and no step calls an external system. The response also has the dead letters of
the event and its delivery status at each sink. A step that keeps state sees only this event; a warning
says so."""


class SinkFate(View):
    """The delivery status of an event at a sink."""

    id: str
    type: str
    state: FateState
    why: str


class Story(View):
    """The trace of an event."""

    stream: str = Field(description="Source stream of the flow.")
    offset: int
    time: datetime | None = Field(description="When it was appended.")
    event: dict[str, Any] = Field(
        description="Input of the first step; `$meta` has key, headers, offset and time."
    )
    revision: int = Field(description="Revision of the document whose steps are shown.")
    steps: list[StepResult]
    letters: list[LetterView] = Field(description="Dead letters of the event.")
    sinks: list[SinkFate]
    warnings: list[Problem]
    errors: list[Problem] = Field(description="Why the trace stopped early.")


def story_routes(service: Service, kind: Kind) -> APIRouter:
    """The route for tracing events, of a kind that has steps."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/story", tags=[kind.place])
    stories = Stories(service)

    @router.get(
        "",
        summary=f"Trace an event through {kind.one}",
        description=_DESCRIPTION,
        operation_id=f"tell{kind.name}Story",
        responses=failures(404, 408, 409, 422),
    )
    def story(
        name: Name,
        offset: Annotated[
            int, Query(ge=0, le=LAST_OFFSET, description="Offset of the event in the source stream.")
        ],
    ) -> Story:
        found = stories.tell(kind.name, name, offset)
        return Story(
            **{
                **vars(found),
                "letters": [letter_view(letter) for letter in found.letters],
                "sinks": [SinkFate(**asdict(sink)) for sink in found.sinks],
            }
        )

    return router
