"""`tests:` of a document: sample events and expected results. They have no effect on a running flow."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from penstock.specs.base import Spec

Event = dict[str, Any]


class EventsExpectation(Spec):
    """Expectations about events. All given expectations must be met."""

    equals: list[Event] | None = Field(
        default=None,
        description="Exactly these events, in this order; events made by a window may be in any order.",
    )
    contains: list[Event] | None = Field(
        default=None,
        description="Each of these events is in the output. Fields that are not listed are ignored.",
    )
    matches: list[dict[str, str]] | None = Field(
        default=None,
        description="For each entry, the output has an event whose fields match: field → regular expression.",
    )
    count: int | None = Field(default=None, ge=0, description="Number of events.")

    @field_validator("matches")
    @classmethod
    def _patterns(cls, matches: list[dict[str, str]] | None) -> list[dict[str, str]] | None:
        for fields in matches or ():
            for pattern in fields.values():
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from None
        return matches

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"nothing is expected: set one of {', '.join(type(self).model_fields)}")
        return self


class ExpectedError(Spec):
    """An event on which a step should fail, so that it becomes a dead letter."""

    code: str | None = Field(default=None, description="Error code.")
    step: str | None = Field(default=None, description="Id of the step.")
    message: str | None = Field(default=None, description="Text that the message contains.")


class StepExpectation(EventsExpectation):
    """Expectations about a step."""

    dropped: int | None = Field(default=None, ge=0, description="Number of events the step drops.")
    errors: list[ExpectedError] | None = Field(
        default=None, description="Exactly the events that fail in this step."
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
    """The expected results of a test."""

    output: Expected | None = Field(
        default=None, description="Expected output of the last step; a list is short for `equals`."
    )
    sinks: dict[str, Expected] = Field(default_factory=dict, description="Sink → expected events.")
    steps: dict[str, ExpectedStep] = Field(
        default_factory=dict, description="Step → expected output, dropped events and errors."
    )
    errors: list[ExpectedError] | None = Field(
        default=None,
        description="Exactly the events that fail in any step. An error that isn't listed fails the test.",
    )


class Case(Spec):
    """A test: sample events and expected results."""

    name: str = Field(min_length=1, description="Unique in the document.")
    input: list[Any] | str = Field(
        description="Sample events: objects with the columns of the source, or text for a raw source; or "
        "the path of a file next to the document (json, ndjson, csv, txt)."
    )
    given: dict[str, Any] = Field(
        default_factory=dict, description="Step → answers of the external system, for steps that call one."
    )
    expect: Expect = Field(description="Expected result.")

    @field_validator("input", mode="before")
    @classmethod
    def _events_or_file(cls, value: Any) -> Any:
        if not isinstance(value, list | str):
            raise ValueError("must be a list of events, or the path of a file with events")
        return value
