"""Templates: text that contains `{column}`. `{{` and `}}` stand for braces."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic_core
from pydantic import BaseModel

from penstock.errors import Invalid, Problem

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Filled:
    """The mark of a field whose texts are templates."""


FILLED = Filled()

Template = Annotated[str, FILLED]


def template_fields(spec: type[BaseModel]) -> list[str]:
    """The fields of a spec whose texts are templates, with their names in documents."""
    return [info.alias or name for name, info in spec.model_fields.items() if FILLED in info.metadata]


def as_literal(text: str) -> str:
    """A template for exactly this text, with its braces escaped."""
    return text.replace("{", "{{").replace("}", "}}")


def parts_of(template: str) -> Iterator[tuple[str, str | None]]:
    """The parts of a template: a text, and the column that follows it, if there is one.

    Between two columns there is one text, even if it contains braces.
    """
    text = ""
    for more, name, _, _ in string.Formatter().parse(template):
        text += more
        if name is not None:
            yield text, name
            text = ""
    if text:
        yield text, None


def columns_of(template: Any) -> Iterator[str]:
    """The columns in a template, or in the texts inside a JSON value; ValueError if one is malformed."""
    if isinstance(template, str):
        for text, name, spec, conversion in string.Formatter().parse(template):
            if text.endswith("$") and spec:
                continue  # `${secret:name}` or `${NAME:-default}`, which are replaced when the document runs
            if name is not None and (not name or spec or conversion):
                raise ValueError("only a column name may be between braces")
            if name is not None:
                yield name
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from columns_of(value)
    elif isinstance(template, list):
        for value in template:
            yield from columns_of(value)


def checked(template: Any, path: str) -> list[str]:
    """The columns of a template; raises `Invalid` at `path` if it is malformed."""
    try:
        return list(columns_of(template))
    except ValueError as error:
        hint = "use {column}, and {{ or }} for a literal brace"
        raise Invalid(Problem(code="invalid_template", message=str(error), path=path, hint=hint)) from None


def filled(template: str, event: Event, escape: Callable[[str], str] = str) -> str:
    """The text of a template for an event, with each value escaped."""
    made = ""
    for text, name in parts_of(template):
        made += text
        if name is not None:
            made += escape(as_text(event[name]))
    return made


def filled_json(template: Any, event: Event) -> Any:
    """The JSON value of a template for an event. A text that is just one column becomes its value."""
    if isinstance(template, Mapping):
        return {name: filled_json(value, event) for name, value in template.items()}
    if isinstance(template, list):
        return [filled_json(value, event) for value in template]
    if not isinstance(template, str):
        return template
    if [template] == [f"{{{name}}}" for name in columns_of(template)]:
        return event[template[1:-1]]
    return filled(template, event)


def as_text(value: Any) -> str:
    """A column value as text: JSON, unless it is a string."""
    if value is None:
        return ""
    return value if isinstance(value, str) else pydantic_core.to_json(value).decode()
