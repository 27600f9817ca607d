from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.plan.flow import Flow, resolve_flow
from penstock.errors import Invalid, Problem
from tests.flows import NO_STREAMS, flow_of, pipeline

DOCUMENTS: dict[tuple[str, str], dict[str, Any]] = {
    ("Source", "shop"): {
        "kind": "Source",
        "metadata": {"name": "shop"},
        "spec": {"type": "generate", "rate": 5, "stream": "orders"},
    },
    ("Sink", "lake"): {
        "kind": "Sink",
        "metadata": {"name": "lake"},
        "spec": {"type": "file", "path": "out", "format": "json"},
    },
    ("Task", "clean"): {
        "kind": "Task",
        "metadata": {"name": "clean"},
        "spec": {
            "processors": [
                {"id": "big", "type": "filter", "where": "seq > 5"},
                {"type": "sql", "query": "SELECT * FROM input"},
            ]
        },
    },
    ("Task", "bad"): {"kind": "Task", "metadata": {"name": "bad"}, "spec": {"processors": [{"type": "sql"}]}},
}


def resolved(**spec: Any) -> Flow:
    return resolve_flow(pipeline(**spec), lambda kind, name: DOCUMENTS.get((kind, name)), NO_STREAMS)


def problems(**spec: Any) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        resolved(**spec)
    return caught.value.problems


def test_references_are_followed() -> None:
    flow = resolved(
        source={"ref": "Shop"}, tasks=["clean", "clean"], sinks=[{"ref": "lake", "required": True}]
    )
    assert flow.source.component.type == "generate"  # type: ignore[attr-defined]
    assert [part.id for part in flow.processors] == ["clean.big", "sql", "clean.big", "sql_2"]
    assert [(sink.id, sink.required) for sink in flow.sinks] == [("lake", True)]


def test_steps_without_an_id_are_called_after_their_type() -> None:
    steps = [
        {"type": "sql", "query": "x"},
        {"type": "sql", "query": "x", "id": "sql_2"},
        {"type": "sql", "query": "x"},
        {"type": "filter", "where": "x"},
    ]
    flow = flow_of(pipeline(processors=steps))
    assert [part.id for part in flow.processors] == ["sql", "sql_2", "sql_3", "filter"]


def test_problems_of_a_referred_document_are_told_from_the_pipeline() -> None:
    (problem,) = problems(tasks=["clean", "bad"])
    assert problem.path == "spec.tasks[1]"
    assert problem.message == "task 'bad', at spec.processors[0].query: this field is required"


def test_missing_documents_are_all_named() -> None:
    found = problems(source={"ref": "a"}, tasks=["b"], sinks=[{"ref": "c"}])
    assert [(p.code, p.path) for p in found] == [
        ("unknown_reference", "spec.source.ref"),
        ("unknown_reference", "spec.tasks[0]"),
        ("unknown_reference", "spec.sinks[0].ref"),
    ]


def test_variables_are_filled_in_here() -> None:
    sinks = [{"type": "file", "path": "${OUT}/x", "format": "json"}]
    flow = flow_of(pipeline(sinks=sinks), OUT="/data")
    assert flow.sinks[0].component.path == "/data/x"  # type: ignore[attr-defined]
    with pytest.raises(Invalid) as caught:
        flow_of(pipeline(sinks=sinks))
    assert caught.value.problems[0].path == "spec.sinks[0].path"


def test_a_checkpoint_is_kept_while_offsets_keep_their_meaning() -> None:
    def key(**source: Any) -> str:
        return flow_of(pipeline(source=source)).position_key

    file = {"type": "file", "path": "in", "format": "json"}
    assert key(type="generate", rate=5) == key(type="generate", rate=9, count=3)
    assert key(**file) == key(**file, schema="a INT", poll_ms=50)
    assert key(**file) != key(**{**file, "path": "other"})
    assert key(**file) != key(type="generate")
