"""Test runs of documents on sample events."""

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
Runs the steps of a document, saved or not, on sample events, with the same code as a flow. The response has
the output, dropped events and errors of each step, and the events for each sink. Nothing is read from the
source, and nothing is written; a step that calls an external system needs its answers in `given`.

An event is an object with the columns of the source; `$meta` in it may have `key`, `headers` and `time`. An
event of a raw source is `{value, key, headers}`, or the text of its value. Sample events are given as JSON,
read from a stream, or given as a request body (`text`). With `run` the tests of the document are run instead,
with their results in `cases`. If the document is not valid, `errors` has the problems and `ok` is false."""


class LastEvents(BaseModel):
    """The newest events of a stream."""

    model_config = ConfigDict(extra="forbid")

    stream: str = Field(min_length=1, description="Id of the Stream.")
    last: int = Field(ge=1, le=MOST_EVENTS, description="Number of events.")


class EventsFrom(BaseModel):
    """Events of a stream from a position on."""

    model_config = ConfigDict(extra="forbid")

    stream: str = Field(min_length=1, description="Id of the Stream.")
    begin: PositionText = Field(
        alias="from",
        description="`earliest`, `offset:N` or `time:` and ISO 8601; `latest` takes the last events.",
    )
    count: int = Field(ge=1, le=MOST_EVENTS, description="Number of events.")


class TestBody(BaseModel):
    """A document, and the input of its test run."""

    model_config = ConfigDict(extra="forbid")

    document: dict[str, Any] | None = Field(default=None, description="The document; it need not be saved.")
    kind: Literal["Pipeline", "Task", "Source", "Sink"] = Field(
        default="Pipeline", description="Kind of the saved document."
    )
    name: str | None = Field(default=None, min_length=1, description="Name or id of a saved document.")
    events: list[Any] | LastEvents | EventsFrom | None = Field(default=None, description="Sample events.")
    text: str | None = Field(default=None, description="Sample events as a request body.")
    content_type: str | None = Field(
        default=None, description="Of `text`: application/json, application/x-ndjson, text/csv, text/plain …"
    )
    given: dict[str, Any] = Field(
        default_factory=dict, description="Step → answers of the external system, for steps that call one."
    )
    run: Literal["all"] | list[str] | None = Field(
        default=None, description="Run the tests of the document: all, or those with these names."
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
        summary="Run a document on sample events",
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
