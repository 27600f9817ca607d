"""Conversion of pydantic's errors to problems that users can act on."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from penstock.errors import Problem, did_you_mean
from penstock.specs.catalog import TAG, Role, catalog
from penstock.specs.names import NAME_FAULTS

Location = tuple[int | str, ...]

_CODES = {
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "union_tag_invalid": "unknown_type",
    "union_tag_not_found": "missing_field",
    "literal_error": "invalid_choice",
}


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """All errors of a document, each with its path and, for a misspelling, the most similar valid word."""
    return [_problem(details, model) for details in error.errors(include_url=False)]


def path_of(location: Iterable[int | str]) -> str:
    """A location as a path: `spec.sinks[1].path`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith(TAG):
            path += f".{part}" if path else part
    return path


def _problem(details: ErrorDetails, model: type[BaseModel]) -> Problem:
    location, kind = details["loc"], details["type"]
    path = path_of(location)
    code = _CODES.get(kind) or ("wrong_type" if kind.endswith(("_type", "_parsing")) else "invalid_value")
    message, hint = details["msg"], None
    if kind == "extra_forbidden":
        name, known = str(location[-1]), _fields_at(model, location[:-1])
        message, hint = f"there is no field '{name}' here", did_you_mean(name, known)
    elif kind == "missing":
        message, hint = "this field is required", f"add '{location[-1]}'"
    elif kind.startswith("union_tag"):
        return _tag_problem(details, path)
    elif kind == "literal_error":
        expected = [w.strip("'") for w in details["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        message, hint = f"{details['input']!r} is not valid here", did_you_mean(details["input"], expected)
    elif kind in NAME_FAULTS:
        code, hint = kind, details["ctx"]["hint"]
    elif kind == "too_short" and details["ctx"]["min_length"] == 1:
        message, hint = "at least one is required", f"add one to '{location[-1]}'"
    elif code == "wrong_type":
        # A union reports each of its branches under the branch's own name, which isn't part of the path.
        path = path_of(p for p in location if p not in ("int", "str", "literal['auto']"))
        wanted = message.replace("Input should be", "must be", 1)
        message = f"{wanted}, not {type(details['input']).__name__}"
    else:
        message = message.removeprefix("Value error, ")
    return Problem(code=code, message=message, path=path, hint=hint)


def _tag_problem(details: ErrorDetails, path: str) -> Problem:
    expected = details.get("ctx", {}).get("expected_tags", "")
    known = [w.strip(" '").removeprefix(TAG) for w in expected.split(",")] if expected else []
    types = [w for w in known if w != "ref"]
    role = _role(path)
    if details["type"] == "union_tag_not_found":
        if not isinstance(details["input"], dict):
            return Problem(
                code="wrong_type",
                message=f"a {role} must be a mapping with a 'type'",
                path=path,
                hint=f"one of: {', '.join(catalog(role).classes)}",
            )
        return Problem(
            code="missing_field",
            message="this field is required",
            path=f"{path}.type",
            hint=f"one of: {', '.join(catalog(role).classes)}",
        )
    given = str(details["ctx"]["tag"]).removeprefix(TAG)
    if given in catalog(role).broken:
        return Problem(
            code="broken_component",
            message=f"{role} '{given}' is installed but failed to load: {catalog(role).broken[given]}",
            path=f"{path}.type",
            hint="fix or remove the package that provides it",
        )
    return Problem(
        code="unknown_type",
        message=f"there is no {role} of type '{given}'",
        path=f"{path}.type",
        hint=did_you_mean(given, types),
    )


def _role(path: str) -> Role:
    if "processors" in path:
        return "processor"
    return "sink" if "sink" in path else "source"


def _fields_at(model: type[BaseModel], location: Location) -> list[str]:
    """The fields that a mapping at `location` may have."""
    models: list[Any] = [model]
    for part in location:
        if isinstance(part, int):
            continue
        if part.startswith(TAG):
            models = [m for m in models if _tagged(m, part)]
            continue
        models = [m for parent in models for m in _models_in(_annotation(parent, part))]
    fields = [info.alias or name for m in models for name, info in _class(m).model_fields.items()]
    return list(dict.fromkeys(fields))


def _annotation(model: Any, name: str) -> Any:
    for field, info in _class(model).model_fields.items():
        if name in (field, info.alias):
            return typing.Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    return None


def _models_in(annotation: Any) -> Iterator[Any]:
    """The models that an annotation allows, each with its tag."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        inner, *extras = typing.get_args(annotation)
        if any(isinstance(extra, Tag) for extra in extras):
            yield annotation
        else:
            yield from _models_in(inner)
    elif origin is not None:
        for argument in typing.get_args(annotation):
            yield from _models_in(argument)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


def _tagged(model: Any, tag: str) -> bool:
    return any(isinstance(m, Tag) and m.tag == tag for m in getattr(model, "__metadata__", ()))


def _class(model: Any) -> type[BaseModel]:
    annotated = typing.get_origin(model) is typing.Annotated
    found: type[BaseModel] = typing.get_args(model)[0] if annotated else model
    return found
