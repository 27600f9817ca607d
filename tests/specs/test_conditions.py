"""Fields that have an effect only with certain values of other fields."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from penstock.specs.catalog import ROLES, catalog
from penstock.specs.conditions import condition_of, condition_text, ineffective
from penstock.specs.documents import Models, PipelineDocument, StreamDocument
from penstock.specs.validation import parse

RULE = {"name": "a", "where": "true"}


def stream(**spec: Any) -> dict[str, Any]:
    return {"kind": "Stream", "metadata": {"name": "s"}, "spec": spec}


def pipeline(**spec: Any) -> dict[str, Any]:
    whole = {"source": {"type": "http"}, "sinks": [{"type": "drop"}], **spec}
    return {"kind": "Pipeline", "metadata": {"name": "p"}, "spec": whole}


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        (stream(), []),
        (stream(buffer={"mode": "timeout", "timeout_ms": 5}), []),
        (stream(buffer={"timeout_ms": 5}), []),
        (stream(buffer={"mode": "drop", "timeout_ms": 5}), ["spec.buffer.timeout_ms"]),
        (stream(buffer={"mode": "drop", "timeout_ms": 5000}), []),
        (stream(buffer={"spill": True}), ["spec.buffer.spill"]),
        (stream(buffer={"spill": True}, wal={"enabled": False}), []),
        (stream(storage="kafka", wal={"max_segments": 3}), ["spec.wal.max_segments"]),
        (stream(storage="sqlite", wal={"segment_ms": 3}), ["spec.wal.segment_ms"]),
        (pipeline(restart={"policy": "never", "max_attempts": 2}), ["spec.restart.max_attempts"]),
        (
            pipeline(processors=[{"type": "validate", "expectations": [RULE], "tag": "t"}]),
            ["spec.processors[0].tag"],
        ),
    ],
)  # fmt: skip
def test_a_field_that_is_set_without_effect_is_a_warning(document: dict[str, Any], paths: list[str]) -> None:
    parsed = parse(document)
    assert [each.path for each in ineffective(document, parsed, parsed)] == paths


def test_defaults_of_an_installation_are_no_warning() -> None:
    document = stream(buffer={"mode": "drop"})
    parsed = parse(document, {"stream": {"buffer": {"timeout_ms": 5}}})
    assert isinstance(parsed, StreamDocument)
    assert parsed.spec.buffer.timeout_ms == 5
    assert list(ineffective(document, parsed, parsed)) == []


def test_a_warning_says_why_and_what_to_do() -> None:
    document = pipeline(buffer={"spill": True})
    parsed = parse(document)
    assert isinstance(parsed, PipelineDocument)
    (warning,) = ineffective(document, parsed, parsed)
    assert warning.code == "no_effect"
    assert warning.message == "'spill' has no effect with `type: wal`"
    assert warning.hint == "remove 'spill', or set `type: memory`"


def test_text() -> None:
    assert condition_text({"mode": ["quorum"]}) == "`mode: quorum`"
    assert condition_text({"format": ["csv", None]}) == "`format: csv`"
    assert condition_text({"kind": ["a", "b", "c"]}) == "`kind: a`, `b` or `c`"
    assert (
        condition_text({"enabled": [True], "spec.storage": ["local"]})
        == "`enabled: true` and `storage: local`"
    )


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from models(inner)


def reached() -> set[type[BaseModel]]:
    found: set[type[BaseModel]] = set()
    waiting = [*Models.by_kind.values(), *(c for role in ROLES for c in catalog(role).classes.values())]
    while waiting:
        model = waiting.pop()
        if model not in found:
            found.add(model)
            waiting += [each for field in model.model_fields.values() for each in models(field.annotation)]
    return found


def test_every_condition_names_a_field_and_values_that_it_can_have() -> None:
    conditions = 0
    for model in reached():
        for name, field in model.model_fields.items():
            for other, values in condition_of(field).items():
                conditions += 1
                if other.startswith("spec."):
                    continue
                assert other in model.model_fields, (model, name, other)
                allowed = choices(model.model_fields[other].annotation)
                assert not allowed or set(values) <= allowed, (model, name, other)
    assert conditions > 40


def choices(annotation: Any) -> set[Any]:
    if annotation is bool:
        return {True, False}
    if typing.get_origin(annotation) is typing.Literal:
        return set(typing.get_args(annotation))
    inner = [choices(each) for each in typing.get_args(annotation) if each is not type(None)]
    nothing = {None} if type(None) in typing.get_args(annotation) else set()
    return set().union(*inner, nothing) if any(inner) else set()
