"""Discovery of connectors and processors through entry points.

A component is found by the name of its entry point, which is its `type`. A component that fails to import is
recorded with the reason, and never affects the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Literal, Union

from pydantic import Discriminator, Tag, create_model

from penstock.specs.base import Component, Spec

Role = Literal["source", "sink", "processor"]
ROLES: tuple[Role, ...] = ("source", "sink", "processor")

TAG = "type:"
"""Prefix of a part of a pydantic error location that names a union member instead of a field."""


@dataclass(frozen=True)
class Catalog:
    """Every component of one role, by type."""

    role: Role
    classes: Mapping[str, type[Component]]
    broken: Mapping[str, str] = field(default_factory=dict)


@cache
def catalog(role: Role) -> Catalog:
    """The installed components of a role."""
    return load(role, _installed().select(group=f"penstock.{role}s"))


@cache
def _installed() -> Any:
    """The entry points of all packages, cached since reading them scans every installed package."""
    return entry_points()


def load(role: Role, found: Any) -> Catalog:
    """A catalog from entry points; components that can't be imported are reported in `broken`."""
    classes: dict[str, type[Component]] = {}
    broken: dict[str, str] = {}
    for entry in sorted(found, key=lambda e: e.name):
        try:
            classes[entry.name] = _component(entry)
        except Exception as error:  # a third-party module may raise anything while it is imported
            broken[entry.name] = f"{type(error).__name__}: {error}"
    return Catalog(role, classes, broken)


def _component(entry: EntryPoint) -> type[Component]:
    cls = entry.load()
    if not (isinstance(cls, type) and issubclass(cls, Component)):
        raise TypeError(f"{entry.value} is not a Component")
    return cls


def union(role: Role, binding: type[Spec], ref: type[Spec] | None = None) -> Any:
    """The type of a field that holds any component of `role` with the extra fields of `binding`.

    With `ref`, a mapping with a `ref` instead of a `type` is an instance of that model.
    """
    members: list[Any] = [
        Annotated[_bound(cls, binding), Tag(TAG + name)] for name, cls in catalog(role).classes.items()
    ]
    if ref is not None:
        members.append(Annotated[ref, Tag(TAG + "ref")])
    return Annotated[Union[tuple(members)], Discriminator(_tag)]  # noqa: UP007 (members are computed)


def _bound(cls: type[Component], binding: type[Spec]) -> type[Component]:
    if issubclass(cls, binding):
        return cls
    # FileSink in a pipeline is FileSinkEntry, on its own FileSinkBinding: JSON Schema needs two names.
    use = re.sub("^(Source|Sink|Processor)", "", binding.__name__)
    # The component first: for a field that both have, the component's definition applies.
    return create_model(cls.__name__ + use, __base__=(cls, binding), __doc__=cls.__doc__)  # type: ignore[arg-type]


def _tag(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        name = getattr(value, "type", None) or ("ref" if hasattr(value, "ref") else None)
        return f"{TAG}{name}" if name else None
    if "type" in value:
        return f"{TAG}{value['type']}"
    return f"{TAG}ref" if "ref" in value else None
