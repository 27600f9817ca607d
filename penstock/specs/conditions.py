"""Fields that have an effect only with certain values of other fields.

A condition is declared once, at its field: `Field(json_schema_extra=only_with(mode=["timeout"]))`. Validation
warns about a field that is set without effect, forms hide the field, and the reference states the condition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from penstock.errors import Problem

KEY = "x-only-with"
"""The keyword of a condition in JSON Schema."""

Condition = Mapping[str, Sequence[Any]]
"""Field → the values with which another field has an effect. Each field must have one of its values."""


def only_with(**choices: Sequence[Any]) -> dict[str, Any]:
    """A condition, for `json_schema_extra`.

    A name is a field of the same model. A name that begins with `spec.` is a path in the document.
    """
    return {KEY: {name: list(values) for name, values in choices.items()}}


def condition_of(field: FieldInfo) -> Condition:
    """The condition of a field; empty if the field always has an effect."""
    extra = field.json_schema_extra
    found: Any = extra.get(KEY) if isinstance(extra, Mapping) else None
    return found or {}


def unmet(model: BaseModel, name: str, root: BaseModel | None = None) -> tuple[str, Any] | None:
    """The field, with its value, because of which another field of a model has no effect; None if it has one.

    `root` is the document; without it, conditions on other parts of the document count as met.
    """
    for other, values in condition_of(type(model).model_fields[name]).items():
        if other.startswith("spec."):
            value = _at(root, other) if root is not None else values[0]
        else:
            value = getattr(model, other)
        if value not in values:
            return other.removeprefix("spec."), value
    return None


def ineffective(raw: Any, model: BaseModel, root: BaseModel, path: str = "") -> Iterator[Problem]:
    """A warning for each field that is set without effect. `model` was parsed from the mapping `raw`."""
    for name, field in type(model).model_fields.items():
        given = field.alias or name
        if not isinstance(raw, Mapping) or given not in raw:
            continue
        value, place = getattr(model, name), f"{path}.{given}" if path else given
        found = unmet(model, name, root)
        if found is not None and value != field.get_default(call_default_factory=True):
            yield _warning(given, place, *found, condition_of(field))
        else:
            yield from _inside(raw[given], value, root, place)


def _inside(raw: Any, value: Any, root: BaseModel, path: str) -> Iterator[Problem]:
    if isinstance(value, BaseModel):
        yield from ineffective(raw, value, root, path)
    elif isinstance(value, list) and isinstance(raw, list):
        for place, (each, model) in enumerate(zip(raw, value, strict=False)):
            yield from _inside(each, model, root, f"{path}[{place}]")


def _warning(name: str, path: str, other: str, value: Any, condition: Condition) -> Problem:
    return Problem(
        code="no_effect",
        message=f"'{name}' has no effect with `{other}: {_text(value)}`",
        path=path,
        hint=f"remove '{name}', or set {condition_text(condition)}",
    )


def condition_text(condition: Condition) -> str:
    """A condition as text: "`mode: upsert` or `sync`"."""
    parts = []
    for name, values in condition.items():
        first, *others = [_text(value) for value in values if value is not None]
        choices = [f"`{name.removeprefix('spec.')}: {first}`", *(f"`{each}`" for each in others)]
        parts.append(" or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices))
    return " and ".join(parts)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else json.dumps(value)


def _at(root: BaseModel, path: str) -> Any:
    value: Any = root
    for part in path.split("."):
        value = getattr(value, part)
    return value
