"""Trying documents on sample events."""

from __future__ import annotations

from typing import Any, Literal, Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.api.errors import failures
from penstock.control.documents.service import Service
from penstock.control.questions.trial_worker import Tested, TestRequest
from penstock.control.questions.trials import ask, events_of
from penstock.control.streams.doors import Doors
from penstock.engine.trials.samples import MOST_EVENTS
from penstock.specs.positions import LATEST, PositionText, parse_position

_DESCRIPTION = """\
Runs the steps of a document, saved or not, on sample events, with the code that a flow runs. The answer has
each step's output, what it dropped and what it failed on, and what each sink would get. Nothing is read from
the source, and nothing is written; a step that asks outside needs its answers in `given`.

An event is an object with the columns of the source; `$meta` in it may have `key`, `headers` and `time`. An
event of a raw source is `{value, key, headers}`, or the text of its value. The events are given, read from
a stream, or written as they would be sent (`text`). With `run` the document's own tests are run
instead, and `cases` has how they ended. What is wrong with the document is in `errors`, and `ok` is false."""


class LastEvents(BaseModel):
    """The newest events of a stream."""

    model_config = ConfigDict(extra="forbid")

    stream: str = Field(min_length=1, description="Id of the Stream.")
    last: int = Field(ge=1, le=MOST_EVENTS, description="How many.")


class EventsFrom(BaseModel):
    """Events of a stream from a position on."""

    model_config = ConfigDict(extra="forbid")

    stream: str = Field(min_length=1, description="Id of the Stream.")
    begin: PositionText = Field(
        alias="from",
        description="`earliest`, `offset:N` or `time:` and ISO 8601; `latest` takes the last events.",
    )
    count: int = Field(ge=1, le=MOST_EVENTS, description="How many.")


class TestBody(BaseModel):
    """A document, and what to try it on."""

    model_config = ConfigDict(extra="forbid")

    document: dict[str, Any] | None = Field(default=None, description="A document that need not be saved.")
    kind: Literal["Pipeline", "Task", "Source", "Sink"] = Field(
        default="Pipeline", description="Kind of the saved document."
    )
    name: str | None = Field(default=None, min_length=1, description="Name or id of a saved document.")
    events: list[Any] | LastEvents | EventsFrom | None = Field(default=None, description="Sample events.")
    text: str | None = Field(default=None, description="Sample events, as they would be sent.")
    content_type: str | None = Field(
        default=None, description="Of `text`: application/json, application/x-ndjson, text/csv, text/plain …"
    )
    given: dict[str, Any] = Field(
        default_factory=dict, description="Step → what the outside would answer, for steps that ask it."
    )
    run: Literal["all"] | list[str] | None = Field(
        default=None, description="Run the document's own tests: all, or those of these names."
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.document is None) == (self.name is None):
            raise ValueError("either 'document' or 'name' is needed")
        if sum(each is not None for each in (self.events, self.text, self.run)) != 1:
            raise ValueError("one of 'events', 'text' and 'run' is needed")
        return self


def test_routes(service: Service) -> APIRouter:
    """The route for test runs."""
    router = APIRouter(tags=["test"])
    doors = Doors(service)

    @router.post(
        "/test",
        summary="Try a document on sample events",
        description=_DESCRIPTION,
        operation_id="test",
        responses=failures(400, 403, 404, 408, 415, 422),
    )
    def test(body: TestBody) -> Tested:
        document = service.get(body.kind, body.name).document if body.name else body.document
        events = body.events
        if isinstance(events, LastEvents):
            events = events_of(doors.find(events.stream), LATEST, events.last)
        elif isinstance(events, EventsFrom):
            events = events_of(doors.find(events.stream), parse_position(events.begin), events.count)
        request = TestRequest(
            document=document,
            events=events,
            text=body.text,
            content_type=body.content_type,
            given=body.given,
            cases=[] if body.run == "all" else body.run,
        )
        return ask(service, request)

    return router
