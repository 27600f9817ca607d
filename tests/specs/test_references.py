from __future__ import annotations

from typing import Any

import pytest

from penstock.specs.references import Reference, references_of


def test_every_place_that_names_another_document() -> None:
    pipeline = {
        "kind": "Pipeline",
        "spec": {
            "source": {"ref": "Shop"},
            "tasks": ["Clean up", "tag"],
            "sinks": [{"ref": "lake"}, {"type": "stream", "stream": "mirror"}],
            "dead_letters": "dead",
        },
    }
    assert references_of(pipeline) == [
        Reference("Source", "shop", "spec.source.ref"),
        Reference("Task", "clean_up", "spec.tasks[0]"),
        Reference("Task", "tag", "spec.tasks[1]"),
        Reference("Sink", "lake", "spec.sinks[0].ref"),
        Reference("Stream", "mirror", "spec.sinks[1].stream"),
        Reference("Stream", "dead", "spec.dead_letters"),
    ]
    steps = [{"type": "join", "stream": "Other"}, {"type": "filter"}, {"type": "window", "late": "late"}]
    task = {"kind": "Task", "spec": {"input": "a", "processors": steps, "outputs": [{"stream": "b"}]}}
    assert references_of(task) == [
        Reference("Stream", "a", "spec.input"),
        Reference("Stream", "other", "spec.processors[0].stream"),
        Reference("Stream", "late", "spec.processors[2].late"),
        Reference("Stream", "b", "spec.outputs[0].stream"),
    ]


@pytest.mark.parametrize(
    "raw",
    [{}, {"kind": "Pipeline"}, {"kind": "Pipeline", "spec": []}, {"kind": "Task", "spec": {"outputs": [5]}}],
)
def test_a_broken_document_refers_to_nothing(raw: dict[str, Any]) -> None:
    assert references_of(raw) == []


def test_a_stream_of_another_system_is_no_reference() -> None:
    other = {"type": "other", "stream": "orders"}
    pipeline = {"kind": "Pipeline", "spec": {"source": other, "sinks": [other]}}
    assert references_of(pipeline) == []
