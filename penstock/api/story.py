"""The story of one event through a flow."""

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
Reads the event again from the stream and lets it go through the steps of the saved document, as a test run
does: nothing is written, and no step asks the outside. Beside that are the dead letters it has left, and how
far each sink has come with it. A step that remembers events sees this one alone; a warning says so."""


class SinkFate(View):
    """How an event fared at a sink."""

    id: str
    type: str
    state: FateState
    why: str


class Story(View):
    """What becomes of an event."""

    stream: str = Field(description="The stream that the flow reads.")
    offset: int
    time: datetime | None = Field(description="When it was appended.")
    event: dict[str, Any] = Field(description="As the first step sees it; `$meta` has what is beside it.")
    revision: int = Field(description="Of the document whose steps are shown.")
    steps: list[StepResult]
    letters: list[LetterView] = Field(description="The dead letters it has left.")
    sinks: list[SinkFate]
    warnings: list[Problem]
    errors: list[Problem] = Field(description="Why the steps could not be shown to the end.")


def story_routes(service: Service, kind: Kind) -> APIRouter:
    """The route of a kind that has steps."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/story", tags=[kind.place])
    stories = Stories(service)

    @router.get(
        "",
        summary=f"Tell what becomes of an event in {kind.one}",
        description=_DESCRIPTION,
        operation_id=f"tell{kind.name}Story",
        responses=failures(404, 408, 409, 422),
    )
    def story(
        name: Name,
        offset: Annotated[
            int, Query(ge=0, le=LAST_OFFSET, description="Of the event, in the stream that the flow reads.")
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
