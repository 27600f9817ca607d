"""`tests:` of a document: sample events and what is expected of them. They are no part of what runs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from penstock.specs.base import Spec

Event = dict[str, Any]


class EventsExpectation(Spec):
    """What events should be. All that is said must hold."""

    equals: list[Event] | None = Field(
        default=None,
        description="Exactly these events, in this order; those that a window makes in any order.",
    )
    contains: list[Event] | None = Field(
        default=None, description="Each of these is there. Fields that are not named may be anything."
    )
    matches: list[dict[str, str]] | None = Field(
        default=None,
        description="For each of these there is an event whose fields match: field → regular expression.",
    )
    count: int | None = Field(default=None, ge=0, description="How many events there are.")

    @field_validator("matches")
    @classmethod
    def _patterns(cls, matches: list[dict[str, str]] | None) -> list[dict[str, str]] | None:
        for fields in matches or ():
            for pattern in fields.values():
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return matches

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"nothing is expected: say one of {', '.join(type(self).model_fields)}")
        return self


class ExpectedError(Spec):
    """An event that a step should fail on, so that it goes to the dead letters."""

    code: str | None = Field(default=None, description="The code of the error.")
    step: str | None = Field(default=None, description="Id of the step.")
    message: str | None = Field(default=None, description="Text that is in the message.")


class StepExpectation(EventsExpectation):
    """What a step should do."""

    dropped: int | None = Field(default=None, ge=0, description="How many events it drops.")
    errors: list[ExpectedError] | None = Field(
        default=None, description="The events it fails on, and no others."
    )


def _as_equals(value: Any) -> Any:
    return {"equals": value} if isinstance(value, list) else value


Expected = Annotated[
    EventsExpectation, BeforeValidator(_as_equals, json_schema_input_type=EventsExpectation | list[Event])
]
ExpectedStep = Annotated[
    StepExpectation, BeforeValidator(_as_equals, json_schema_input_type=StepExpectation | list[Event])
]
"""A list is short for `equals`."""


class Expect(Spec):
    """What should come of the events."""

    output: Expected | None = Field(
        default=None, description="What leaves the last step; a list is short for `equals`."
    )
    sinks: dict[str, Expected] = Field(default_factory=dict, description="Sink → what it should get.")
    steps: dict[str, ExpectedStep] = Field(
        default_factory=dict, description="Step → what should leave it, and what it drops or fails on."
    )
    errors: list[ExpectedError] | None = Field(
        default=None,
        description="The events that steps fail on, and no others. An error that nothing here expects fails "
        "the test.",
    )


class Case(Spec):
    """A test: sample events, and what is expected of them."""

    name: str = Field(min_length=1, description="Unique in the document.")
    input: list[Any] | str = Field(
        description="Sample events: objects with the columns of the source, or text for a raw one; or the "
        "path of a file beside the document (json, ndjson, csv, txt)."
    )
    given: dict[str, Any] = Field(
        default_factory=dict, description="Step → what the outside would answer, for steps that ask it."
    )
    expect: Expect = Field(description="What should come of them.")

    @field_validator("input", mode="before")
    @classmethod
    def _events_or_file(cls, value: Any) -> Any:
        if not isinstance(value, list | str):
            raise ValueError("this is a list of events, or the path of a file with them")
        return value
