"""The paths of templates in a raw document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.specs.catalog import Role, catalog
from penstock.specs.templates import template_fields


def templates_in(raw: Mapping[str, Any]) -> Callable[[str], bool]:
    """A function that returns whether a path in a document is in a template."""
    return within(
        f"{path}.{field}"
        for role, path, component in _components(raw)
        if (cls := catalog(role).classes.get(str(component.get("type")))) is not None
        for field in template_fields(cls)
    )


def within(fields: Iterable[str]) -> Callable[[str], bool]:
    """A function that returns whether a path is one of these fields, or inside one."""
    known = tuple(fields)
    inside = tuple(f"{field}{joint}" for field in known for joint in ".[")
    return lambda place: place in known or place.startswith(inside)


def _components(raw: Mapping[str, Any]) -> Iterator[tuple[Role, str, Mapping[str, Any]]]:
    spec, kind = raw.get("spec"), raw.get("kind")
    if not isinstance(spec, Mapping):
        return
    found: list[tuple[Role, str, Any]] = []
    if kind == "Source":
        found = [("source", "spec", spec)]
    elif kind == "Sink":
        found = [("sink", "spec", spec)]
    else:
        steps, sinks = spec.get("processors"), spec.get("sinks")
        found = [("source", "spec.source", spec.get("source"))]
        found += [("processor", f"spec.processors[{i}]", each) for i, each in enumerate(_list(steps))]
        found += [("sink", f"spec.sinks[{i}]", each) for i, each in enumerate(_list(sinks))]
    yield from ((role, path, each) for role, path, each in found if isinstance(each, Mapping))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
