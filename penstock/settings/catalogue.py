"""A list of all settings, for the reference, for variables and for `penstock config`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic import BaseModel

from penstock.settings.model import Settings

PREFIX = "PENSTOCK_"

Keys = tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """One setting, as shown by the reference and `penstock config`."""

    path: str
    variable: str
    default: object
    choices: tuple[str, ...]
    description: str


def catalogue() -> list[Setting]:
    """Every setting, in the order of the model."""
    return list(_catalogue(Settings, ()))


def _catalogue(model: type[BaseModel], above: Keys) -> Iterator[Setting]:
    for name, info in model.model_fields.items():
        keys = (*above, name)
        if below := section(info.annotation):
            yield from _catalogue(below, keys)
        else:
            variable = variable_of(keys) + ("_*" if keys == ("spark",) else "")
            default = info.get_default(call_default_factory=True)
            choices = get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
            yield Setting(".".join(keys), variable, default, choices, info.description or "")


def section(annotation: object) -> type[BaseModel] | None:
    """The model of a section of settings, if a field holds one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def variable_of(keys: Keys) -> str:
    """The environment variable of a setting."""
    return PREFIX + ".".join(keys).upper().replace(".", "_")
