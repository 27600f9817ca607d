"""Which documents a document refers to. Reads raw mappings, so that broken documents can be asked too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.specs.documents import derive_id


@dataclass(frozen=True)
class Reference:
    """A place in a document that names another one."""

    kind: str
    id: str
    path: str


def references_of(document: dict[str, Any]) -> list[Reference]:
    """Every reference of a document, in the order of its fields."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return []
    found = {
        "Pipeline": _pipeline,
        "Task": _task,
        "Source": _bound,
        "Sink": _bound,
    }.get(str(document.get("kind")))
    return [
        Reference(kind, derive_id(value), path)
        for kind, value, path in (found(spec) if found else ())
        if isinstance(value, str) and value
    ]


Found = Iterator[tuple[str, Any, str]]


def _pipeline(spec: dict[str, Any]) -> Found:
    yield from _end(spec.get("source"), "Source", "spec.source")
    for i, task in enumerate(_list(spec.get("tasks"))):
        yield "Task", task, f"spec.tasks[{i}]"
    for i, sink in enumerate(_list(spec.get("sinks"))):
        yield from _end(sink, "Sink", f"spec.sinks[{i}]")
    yield "Stream", spec.get("dead_letters"), "spec.dead_letters"


def _end(end: Any, kind: str, path: str) -> Found:
    if isinstance(end, dict):
        yield kind, end.get("ref"), f"{path}.ref"
        yield "Stream", end.get("stream"), f"{path}.stream"


def _task(spec: dict[str, Any]) -> Found:
    yield "Stream", spec.get("input"), "spec.input"
    for i, output in enumerate(_list(spec.get("outputs"))):
        if isinstance(output, dict):
            yield "Stream", output.get("stream"), f"spec.outputs[{i}].stream"


def _bound(spec: dict[str, Any]) -> Found:
    yield "Stream", spec.get("stream"), "spec.stream"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
