"""Every kind that runs has flows, and only while it does."""

from typing import Any

import pytest

from penstock.control.fleet.assignments import Flows
from penstock.control.registry import Change, DiffEntry, Registry
from penstock.errors import Conflict, Invalid
from tests.control.registry.kit import document, only_problem, pipeline, stream
from tests.flows import assign

STEPS = [{"type": "filter", "where": "true"}]
SOURCE, TASK, SINK = (
    document("Source", "x", {"type": "generate", "stream": "a"}),
    document("Task", "x", {"processors": STEPS, "input": "a", "outputs": [{"stream": "b"}]}),
    document("Sink", "x", {"type": "drop", "stream": "a"}),
)
DEFINITIONS = {
    "Source": document("Source", "x", {"type": "generate"}),
    "Task": document("Task", "x", {"processors": STEPS}),
    "Sink": document("Sink", "x", {"type": "drop"}),
}


def auto(name: str = "Orders", **spec: Any) -> dict[str, Any]:
    """A source whose stream is made with it."""
    return document("Source", name, {"type": "generate", "auto_create_stream": True, **spec})


@pytest.fixture
def streams(registry: Registry) -> Registry:
    registry.create(stream("a"))
    registry.create(stream("b"))
    return registry


def test_all_kinds_may_have_flows_of_the_same_name(streams: Registry) -> None:
    for raw in (SOURCE, TASK, SINK, pipeline("x", "a")):
        flow = streams.create(raw, desired="paused").flow
        assert flow is not None
        assert (flow.id, flow.status, flow.phase) == ("x", "paused", "idle")
    assert streams.statuses() == {kind: {"x": "paused"} for kind in ("Source", "Task", "Sink", "Pipeline")}
    assert streams.list("Sink", status="paused").total == 1
    assert streams.list("Sink", status="active").total == 0


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_a_definition_has_none(streams: Registry, kind: str) -> None:
    created = streams.create({**DEFINITIONS[kind], "status": "paused"})
    assert (created.flow, created.document) == (None, DEFINITIONS[kind])
    assert streams.update(kind, "x", DEFINITIONS[kind], desired="stopped") == created
    assert streams.list(kind, sort="status").items == [created]
    assert not any(streams.statuses().values())


@pytest.mark.parametrize("raw", [SOURCE, TASK, SINK], ids=lambda raw: raw["kind"])
def test_a_flow_comes_and_goes_with_the_edits(streams: Registry, raw: dict[str, Any]) -> None:
    kind = raw["kind"]
    streams.create(DEFINITIONS[kind])
    begun = streams.update(kind, "x", {**raw, "status": "stopped"}).flow
    assert begun is not None
    assert (begun.status, begun.epoch) == ("stopped", 0)
    assert streams.update(kind, "x", DEFINITIONS[kind]).flow is None
    again = streams.rollback(kind, "x", 2).flow
    assert again is not None
    assert again.status == "active"


def test_epochs_never_go_back(streams: Registry) -> None:
    flows = Flows(streams)
    flows.join("w", 1, "http://127.0.0.1:1", "token", 60.0, {})
    uid = streams.create(SINK).uid
    for epoch in (1, 2, 3):
        assert assign(flows, uid, "w")
        (held,) = flows.assigned("w")
        assert held.flow is not None
        assert held.flow.epoch == epoch
        assert streams.update("Sink", "x", DEFINITIONS["Sink"]).flow is None
        assert flows.assigned("w") == []
        streams.update("Sink", "x", SINK)


@pytest.mark.parametrize(("spec", "name"), [({}, "Orders"), ({"stream": "Raw ones"}, "Raw ones")])
def test_a_stream_is_made_with_its_source(registry: Registry, spec: dict[str, Any], name: str) -> None:
    registry.create(auto(**spec))
    made = registry.get("Stream", name)
    assert (made.name, made.document["spec"]) == (name, {})
    assert registry.revisions("Stream", name)[0].origin == "auto_create"
    assert [(e.kind, e.type) for e in registry.events_after(0)] == [
        ("Stream", "created"),
        ("Source", "created"),
    ]
    with pytest.raises(Conflict) as caught:
        registry.delete("Stream", name)
    assert only_problem(caught.value).message == "source 'Orders' refers to it"
    registry.delete("Source", "Orders")
    registry.delete("Stream", name)


def test_a_stream_that_exists_is_not_made(registry: Registry) -> None:
    registry.create(stream("orders", {"n": 1}))
    registry.create(auto())
    assert registry.get("Stream", "orders").document["spec"] == {"n": 1}


def test_an_edit_makes_the_stream_and_a_refused_one_does_not(registry: Registry) -> None:
    registry.create(DEFINITIONS["Source"])
    with pytest.raises(Invalid):
        registry.update("Source", "x", document("Sink", "x", {}))
    with pytest.raises(Conflict):
        registry.create(auto("x", stream="other"))
    assert registry.ids("Stream") == set()
    registry.update("Source", "x", auto("x"), desired="paused")
    assert registry.ids("Stream") == {"x"}


def test_a_bundle_makes_streams_too(registry: Registry) -> None:
    given = [auto("one"), auto("two", stream="shared"), auto("three", stream="Shared")]
    planned = registry.plan_import(given)
    assert [(change.action, change.kind, change.id) for change in planned] == [
        ("create", "Source", "one"),
        ("create", "Source", "two"),
        ("create", "Source", "three"),
        ("create", "Stream", "one"),
        ("create", "Stream", "shared"),
    ]
    assert registry.ids("Stream") == set()
    assert registry.apply_import(given) == planned
    assert registry.ids("Stream") == {"one", "shared"}
    assert {change.action for change in registry.apply_import(given)} == {"unchanged"}
    registry.update("Stream", "one", stream("one", {"n": 1}))
    replaced = registry.apply_import([auto("one")], "replace")
    assert sorted((c.action, c.kind, c.id) for c in replaced) == [
        ("delete", "Source", "three"),
        ("delete", "Source", "two"),
        ("delete", "Stream", "shared"),
        ("unchanged", "Source", "one"),
        ("unchanged", "Stream", "one"),
    ]
    assert registry.get("Stream", "one").document["spec"] == {"n": 1}


def test_a_bundle_changes_what_runs(streams: Registry) -> None:
    streams.create(SINK)
    streams.create(DEFINITIONS["Task"])
    given = [{**DEFINITIONS["Sink"], "status": "paused"}, {**TASK, "status": "paused"}]
    planned = streams.plan_import(given)
    assert planned[0] == Change("update", "Sink", "x", "x", [DiffEntry("spec.stream", "remove", before="a")])
    assert streams.apply_import(given) == planned
    assert streams.get("Sink", "x").flow is None
    assert streams.get("Task", "x").flow.status == "paused"  # type: ignore[union-attr]
    exported = {each["kind"]: each for each in streams.export()["documents"]}
    assert exported["Task"]["status"] == "paused"
    assert "status" not in exported["Sink"]


def test_a_definition_in_a_bundle_may_not_dangle_whatever_its_status(registry: Registry) -> None:
    raw = document("Task", "t", {"processors": STEPS, "input": "nowhere"})
    with pytest.raises(Invalid) as caught:
        registry.apply_import([{**raw, "status": "paused"}])
    assert only_problem(caught.value).path == "documents[0].spec.input"
    runs = document("Task", "t", {**raw["spec"], "outputs": [{"stream": "nowhere"}]})
    registry.apply_import([{**runs, "status": "paused"}])


def test_versions_reach_through_documents(streams: Registry) -> None:
    streams.create(document("Sink", "mirror", {"type": "stream", "stream": "b"}))
    reads = {"source": {"type": "stream", "stream": "a"}, "sinks": [{"ref": "mirror"}]}
    p, q = (streams.create(document("Pipeline", name, reads)) for name in ("p", "q"))
    alone = streams.create(document("Pipeline", "r", {"source": {"type": "generate"}, "sinks": []}))

    before = streams.versions([p.uid, q.uid, alone.uid])
    assert before[p.uid] == before[q.uid]
    assert len(before[p.uid]) == 3
    assert before[alone.uid] == frozenset()
    streams.update("Stream", "b", stream("b", {"n": 1}))
    after = streams.versions([p.uid])
    assert before[p.uid] - after[p.uid] == {(streams.get("Stream", "b").uid, 1)}
    assert streams.versions([]) == {}


def test_dependents_are_found_through_documents(streams: Registry) -> None:
    streams.create(document("Sink", "mirror", {"type": "stream", "stream": "b"}))
    streams.create(document("Pipeline", "p", {"source": {"type": "generate"}, "sinks": [{"ref": "mirror"}]}))
    streams.create(TASK)
    assert [(r.kind, r.id) for r in streams.dependents("Stream", "b")] == [
        ("Pipeline", "p"),
        ("Sink", "mirror"),
        ("Task", "x"),
    ]
    assert [r.id for r in streams.dependents("Sink", "mirror")] == ["p"]
    assert streams.dependents("Pipeline", "p") == []
