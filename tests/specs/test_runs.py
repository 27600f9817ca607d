"""Which documents run by themselves, and what they may say about it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pytest

from penstock.connectors.base import Source
from penstock.errors import Invalid, Problem
from penstock.specs import catalog
from penstock.specs.documents import KINDS, runs
from penstock.specs.references import Reference, made_stream, references_of
from penstock.specs.validation import parse

STEPS = [{"type": "filter", "where": "true"}]


def document(kind: str, **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "Orders"}, "spec": spec}


def problems(raw: dict[str, Any], **options: Any) -> list[Problem]:
    with pytest.raises(Invalid) as caught:
        parse(raw, **options)
    return caught.value.problems


class Pushed(Source):
    """A source that events are sent to."""

    type: Literal["pushed"] = "pushed"
    push: ClassVar = True


class Reader(Source):
    """A source that reads a stream."""

    type: Literal["reader"] = "reader"
    stream: str


@pytest.fixture
def more_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed sources, and two of kinds that may not be among them."""
    classes = {**catalog.catalog("source").classes, "pushed": Pushed, "reader": Reader}
    found = catalog.Catalog("source", classes)
    monkeypatch.setattr("penstock.specs.documents.catalog", lambda role: found)


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "Pipeline"},
        document("Task", input="a", outputs=[{"stream": "b"}], processors=STEPS),
        document("Sink", type="drop", stream="a"),
        document("Source", type="generate", stream="a"),
        document("Source", type="generate", auto_create_stream=True),
        document("Source", type="a plugin that is gone", stream="a"),
    ],
)
def test_what_runs(raw: dict[str, Any]) -> None:
    assert runs(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"kind": ["Task"]},
        document("Stream"),
        *({"kind": kind, "spec": "text"} for kind in KINDS if kind != "Pipeline"),
        document("Task", processors=STEPS),
        document("Task", processors=STEPS, input="a"),
        document("Task", processors=STEPS, input="a", outputs=[]),
        document("Task", processors=STEPS, input="a", outputs=5),
        document("Task", processors=STEPS, outputs=[{"stream": "b"}]),
        document("Sink", type="drop"),
        document("Sink", type="drop", stream=None),
        document("Sink", type="drop", stream=5),
        document("Source", type="generate"),
        document("Source", type=["generate"]),
        document("Source", type="generate", auto_create_stream="true"),
    ],
)
def test_what_is_only_there_to_be_referred_to(raw: dict[str, Any]) -> None:
    assert not runs(raw)


def test_a_source_that_is_pushed_to_or_reads_a_stream_does_not_run(more_sources: None) -> None:
    assert not runs(document("Source", type="pushed", stream="a"))
    assert not runs(document("Source", type="reader", stream="a"))
    assert runs(document("Source", type="generate", stream="a"))


@pytest.mark.parametrize(
    "raw",
    [
        document("Task", processors=STEPS, input="a", outputs=[{"stream": "b"}]),
        document("Sink", type="drop", stream="a"),
    ],
)
def test_what_reads_a_stream_says_where_it_begins(raw: dict[str, Any]) -> None:
    assert parse(raw).spec.position == "earliest"  # type: ignore[attr-defined]
    raw["spec"]["position"] = "offset:7"
    assert parse(raw).spec.position == "offset:7"  # type: ignore[attr-defined]
    raw["spec"]["position"] = "offset:seven"
    (problem,) = problems(raw)
    assert (problem.code, problem.path) == ("invalid_value", "spec.position")
    assert "'seven' is not a valid offset: use a whole number" in problem.message


@pytest.mark.parametrize("kind", ["Source", "Task", "Sink"])
def test_what_runs_has_the_rules_of_a_pipeline(kind: str) -> None:
    own: dict[str, Any] = {"Task": {"processors": STEPS}, "Sink": {"type": "drop"}}.get(
        kind, {"type": "generate"}
    )
    raw = document(kind, **own, batch={"max_ms": 5}, restart={"max_attempts": 2})
    parsed: Any = parse({**raw, "status": "paused"})
    assert (parsed.status, parsed.spec.batch.max_ms, parsed.spec.restart.max_attempts) == ("paused", 5, 2)
    assert parse(raw).status == "active"  # type: ignore[attr-defined]

    raw["spec"] |= {"batch": {"max_inflight": 0}, "restart": {"backoff_ms": 9, "max_backoff_ms": 1}}
    found = {problem.path for problem in problems({**raw, "status": "asleep"})}
    assert found == {"status", "spec.batch.max_inflight", "spec.restart.max_backoff_ms"}


@pytest.mark.parametrize(
    ("stream", "name", "path"),
    [(None, "Orders", "spec.auto_create_stream"), ("All orders", "All orders", "spec.stream")],
)
def test_a_source_may_have_its_stream_made(stream: str | None, name: str, path: str) -> None:
    raw = document(
        "Source", type="generate", auto_create_stream=True, **({"stream": stream} if stream else {})
    )
    assert made_stream(raw) == {
        "apiVersion": "penstock/v1",
        "kind": "Stream",
        "metadata": {"name": name},
        "spec": {},
    }
    assert references_of(raw) == [Reference("Stream", name.lower().replace(" ", "_"), path, made=True)]
    parse(raw, known=lambda kind: set())


def test_a_stream_that_is_not_to_be_made_has_to_exist() -> None:
    raw = document("Source", type="generate", stream="a")
    assert made_stream(raw) is None
    (problem,) = problems(raw, known=lambda kind: set())
    assert (problem.code, problem.path) == ("unknown_reference", "spec.stream")


def test_a_stream_that_cannot_be_made(more_sources: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = problems(document("Source", type="generate", auto_create_stream=True, stream="a/b"))
    assert (problem.code, problem.path) == ("invalid_value", "spec.stream")
    raw = document("Source", type="reader", auto_create_stream=True, stream="a")
    assert ("exclusive_fields", "spec.auto_create_stream") in {(p.code, p.path) for p in problems(raw)}
