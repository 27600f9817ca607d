from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import Invalid, Problem
from penstock.specs.documents import PipelineDocument, derive_id
from penstock.specs.validation import parse, with_defaults


def pipeline(**spec: Any) -> dict[str, Any]:
    whole = {"source": {"type": "generate"}, "sinks": [{"type": "drop"}], **spec}
    return {"kind": "Pipeline", "metadata": {"name": "orders"}, "spec": whole}


def problems(raw: Any, **options: Any) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        parse(raw, **options)
    return caught.value.problems


def only(raw: Any, **options: Any) -> Problem:
    (problem,) = problems(raw, **options)
    return problem


def test_the_id_is_derived_from_the_name() -> None:
    assert derive_id("Orders raw") == "orders_raw"
    assert derive_id(" Orders\traw ") == "orders_raw"


def test_a_document_has_the_defaults_of_its_kind() -> None:
    document = parse(pipeline())
    assert isinstance(document, PipelineDocument)
    assert document.id == "orders"
    assert document.status == "active"
    assert document.spec.batch.model_dump() == {
        "max_events": 10_000,
        "max_bytes": 16_777_216,
        "max_ms": 50,
        "respect_source_tx": True,
        "max_tx_bytes": 268_435_456,
        "max_tx_ms": 60_000,
        "max_inflight": "auto",
    }
    assert document.spec.commit_policy.mode == "required"
    assert document.spec.restart.max_attempts == 5
    stream: Any = parse({"kind": "Stream", "metadata": {"name": "s"}})
    assert stream.spec.wal.retention_ms == 604_800_000
    assert stream.spec.wal.batch.max_ms == 5
    assert stream.spec.buffer.mode == "block"


def test_every_problem_of_a_document_comes_at_once() -> None:
    raw = {
        "kind": "Pipeline",
        "metadata": {"name": "orders", "labls": {}},
        "spec": {
            "source": {"type": "genrate"},
            "processors": [{"id": "a", "type": "sql"}, {"id": "a", "type": "sql", "query": "SELECT 1"}],
            "sinks": [{"type": "file", "path": 5, "format": "parket"}, {"ref": "lake"}],
            "batch": {"max_events": "ten"},
            "commit_policy": {"mode": "quorum", "quorum": 9},
        },
    }
    found = {(p.code, p.path) for p in problems(raw, known=lambda kind: set())}
    assert found == {
        ("unknown_field", "metadata.labls"),
        ("unknown_type", "spec.source.type"),
        ("missing_field", "spec.processors[0].query"),
        ("duplicate_id", "spec.processors[1].id"),
        ("wrong_type", "spec.sinks[0].path"),
        ("invalid_choice", "spec.sinks[0].format"),
        ("wrong_type", "spec.batch.max_events"),
        ("quorum_out_of_range", "spec.commit_policy.quorum"),
        ("unknown_reference", "spec.sinks[1].ref"),
    }


@pytest.mark.parametrize(
    ("spec", "path", "hint"),
    [
        ({"batch": {"maxms": 1}}, "spec.batch.maxms", "did you mean 'max_ms'?"),
        ({"source": {"type": "fil"}}, "spec.source.type", "did you mean 'file'?"),
        ({"source": {"type": "generate", "rat": 5}}, "spec.source.rat", "did you mean 'rate'?"),
        ({"sinks": [{"type": "drop", "requird": True}]}, "spec.sinks[0].requird", "did you mean 'required'?"),
        ({"sinks": [{"ref": "a", "requird": True}]}, "spec.sinks[0].requird", "did you mean 'required'?"),
        ({"commit_policy": {"mode": "al"}}, "spec.commit_policy.mode", "did you mean 'all'?"),
        (
            {"source": {"type": "file", "path": "a", "format": "json", "schma": "x"}},
            "spec.source.schma",
            "did you mean 'schema'?",
        ),
    ],
)
def test_a_misspelling_is_answered_with_the_nearest_word(spec: Any, path: str, hint: str) -> None:
    problem = only(pipeline(**spec))
    assert (problem.path, problem.hint) == (path, hint)


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"sinks": []}, "invalid_value", "spec.sinks"),
        ({"sinks": [5]}, "wrong_type", "spec.sinks[0]"),
        ({"source": {"rate": 5}}, "missing_field", "spec.source.type"),
        ({"source": "generate"}, "wrong_type", "spec.source"),
        ({"sinks": [{"type": "drop"}, {"type": "drop"}]}, "duplicate_id", "spec.sinks[1].id"),
        ({"tasks": ["a"], "processors": [{"type": "sql", "query": "x"}]}, "exclusive_fields", "spec.tasks"),
        ({"commit_policy": {"mode": "quorum"}}, "missing_field", "spec.commit_policy.quorum"),
        ({"commit_policy": {"mode": "all", "quorum": 1}}, "exclusive_fields", "spec.commit_policy.quorum"),
        ({"sinks": [{"type": "drop", "required": False}]}, "no_required_sink", "spec.sinks"),
        ({"restart": {"backoff_ms": 9, "max_backoff_ms": 1}}, "invalid_value", "spec.restart.max_backoff_ms"),
        ({"batch": {"max_inflight": 0}}, "invalid_value", "spec.batch.max_inflight"),
        ({"batch": {"max_events": True}}, "wrong_type", "spec.batch.max_events"),
        ({"batch": None}, "wrong_type", "spec.batch"),
        ({"source": {"type": "generate", "rate": 0}}, "invalid_value", "spec.source.rate"),
    ],
)
def test_rules_of_a_pipeline(spec: Any, code: str, path: str) -> None:
    problem = only(pipeline(**spec))
    assert (problem.code, problem.path) == (code, path)


def test_a_list_that_may_not_be_empty_says_what_to_add() -> None:
    problem = only(pipeline(sinks=[]))
    assert (problem.message, problem.hint) == ("at least one is required", "add one to 'sinks'")


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ([], "not_a_document"),
        (None, "not_a_document"),
        ({}, "missing_field"),
        ({"kind": "Pipline"}, "unknown_kind"),
        ({"kind": ["Pipeline"]}, "unknown_kind"),
    ],
)
def test_what_is_no_document(raw: Any, code: str) -> None:
    assert only(raw).code == code


@pytest.mark.parametrize("name", ["", " a", "a ", "../x", "a/b", "💥", "a" * 129, ".a", "a.", "a\n"])
def test_names_that_cannot_be_ids(name: str) -> None:
    problem = only({"kind": "Stream", "metadata": {"name": name}})
    assert problem.path == "metadata.name"


def test_a_transient_stream_lives_in_memory() -> None:
    problem = only(
        {
            "kind": "Stream",
            "metadata": {"name": "s"},
            "spec": {"wal": {"enabled": False}, "storage": "sqlite"},
        }
    )
    assert (problem.code, problem.path) == ("exclusive_fields", "spec.storage")


def test_configured_defaults_lie_under_the_document() -> None:
    defaults = {"pipeline": {"batch": {"max_ms": 7, "max_events": 3}, "commit_policy": {"mode": "all"}}}
    document: Any = parse(pipeline(batch={"max_events": 5}), defaults)
    assert (document.spec.batch.max_events, document.spec.batch.max_ms) == (5, 7)
    assert document.spec.commit_policy.mode == "all"
    raw = {"kind": "Stream", "metadata": {"name": "s"}}
    assert with_defaults(raw, defaults) == raw
