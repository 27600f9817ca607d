"""References between documents. Reads raw mappings, so that invalid documents can be checked too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.specs.catalog import Role
from penstock.specs.documents import API_VERSION, derive_id, has_own_stream, what_runs
from penstock.specs.names import name_fault
from penstock.specs.variables import secrets_in

INPUT = ".in"
"""Suffix of a pipeline's id: the stream with events pushed to it. Other streams can have such names, too."""


@dataclass(frozen=True)
class Reference:
    """A reference to another document, which is created with this one if it is `made` and does not exist."""

    kind: str
    id: str
    path: str
    made: bool = False


def references_of(document: dict[str, Any]) -> list[Reference]:
    """All references of a document, in the order of its fields."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return []
    readers: dict[str, Callable[[dict[str, Any]], Found]] = {
        "Pipeline": _pipeline,
        "Task": _task,
        "Source": partial(_bound, "source"),
        "Sink": partial(_bound, "sink"),
    }
    found = readers.get(str(document.get("kind")))
    if found is None:
        return []
    secrets = [
        Reference("Secret", derive_id(name), path)
        for name, path in secrets_in(what_runs(document).get("spec"), "spec")
    ]
    if (made := made_stream(document)) is not None:
        path = "spec.stream" if spec.get("stream") else "spec.auto_create_stream"
        return [Reference("Stream", derive_id(made["metadata"]["name"]), path, made=True), *secrets]
    references = [
        Reference(kind, derive_id(value), path)
        for kind, value, path in found(spec)
        if isinstance(value, str) and value
    ]
    return [*references, *secrets]


def publishes_to(source: Mapping[str, Any]) -> str | None:
    """The name or id of the stream that a Source document publishes to."""
    spec, metadata = source.get("spec"), source.get("metadata")
    if not isinstance(spec, Mapping):
        return None
    name = spec.get("stream")
    if not name and spec.get("auto_create_stream") is True and isinstance(metadata, Mapping):
        name = metadata.get("name")
    return name if isinstance(name, str) and name else None


def made_stream(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The Stream document that is created with a Source, unless it exists; None if none is requested."""
    spec = document.get("spec")
    if document.get("kind") != "Source" or not isinstance(spec, Mapping):
        return None
    name = publishes_to(document) if spec.get("auto_create_stream") is True else None
    if name is None or name_fault(name) is not None:
        return None
    return {"apiVersion": API_VERSION, "kind": "Stream", "metadata": {"name": name}, "spec": {}}


Found = Iterator[tuple[str, Any, str]]


def _pipeline(spec: dict[str, Any]) -> Found:
    yield from _end(spec.get("source"), "Source", "spec.source")
    for i, task in enumerate(_list(spec.get("tasks"))):
        yield "Task", task, f"spec.tasks[{i}]"
    yield from _steps(spec)
    for i, sink in enumerate(_list(spec.get("sinks"))):
        yield from _end(sink, "Sink", f"spec.sinks[{i}]")
    yield "Stream", spec.get("dead_letters"), "spec.dead_letters"


def _end(end: Any, kind: str, path: str) -> Found:
    if isinstance(end, dict):
        yield kind, end.get("ref"), f"{path}.ref"
        if end.get("type") == "stream":  # Redis has streams, too
            yield "Stream", end.get("stream"), f"{path}.stream"


def _task(spec: dict[str, Any]) -> Found:
    yield "Stream", spec.get("input"), "spec.input"
    yield from _steps(spec)
    for i, output in enumerate(_list(spec.get("outputs"))):
        if isinstance(output, dict):
            yield "Stream", output.get("stream"), f"spec.outputs[{i}].stream"


def _steps(spec: dict[str, Any]) -> Found:
    """The streams that processors refer to: for joins, and for late events."""
    for i, step in enumerate(_list(spec.get("processors"))):
        for field in ("stream", "late"):
            if isinstance(step, dict):
                yield "Stream", step.get(field), f"spec.processors[{i}].{field}"


def _bound(role: Role, spec: dict[str, Any]) -> Found:
    if spec.get("type") == "stream" or not has_own_stream(role, spec):
        yield "Stream", spec.get("stream"), "spec.stream"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
