import copy
from typing import Any

import pytest

from penstock.control.registry import Change, DiffEntry, Registry
from penstock.errors import Invalid
from tests.control.registry.kit import document, pipeline, stream, together


@pytest.fixture
def filled(registry: Registry) -> Registry:
    registry.create(stream("b"))
    registry.create(stream("a"))
    registry.create(document("Sink", "lake", {"type": "file", "stream": "a"}))
    registry.create(pipeline("p", "a"), desired="stopped")
    registry.create(document("Task", "t", {"input": "a"}))
    registry.create(document("Source", "web", {"type": "http"}))
    return registry


def actions(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.action, change.id) for change in changes]


def test_an_export_lists_what_is_referred_to_first(filled: Registry) -> None:
    exported = filled.export()
    assert (exported["apiVersion"], exported["kind"]) == ("penstock/v1", "Bundle")
    named = [(each["kind"], each["metadata"]["name"]) for each in exported["documents"]]
    assert named == [
        ("Stream", "a"),
        ("Stream", "b"),
        ("Source", "web"),
        ("Task", "t"),
        ("Sink", "lake"),
        ("Pipeline", "p"),
    ]
    assert exported["documents"][-1] == {**pipeline("p", "a"), "status": "stopped"}


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_an_export_imports_as_it_was(filled: Registry, mode: Any) -> None:
    bundle = filled.export()
    assert {action for action, _ in actions(filled.apply_import(bundle["documents"], mode))} == {"unchanged"}
    filled.apply_import([], "replace")
    assert filled.export()["documents"] == []
    filled.apply_import(bundle["documents"], mode)
    assert filled.export() == bundle
    assert filled.revisions("Pipeline", "p")[0].origin == "import"


def test_a_merge_leaves_what_is_not_named(filled: Registry) -> None:
    given = [
        stream("A", {"n": 1}),
        pipeline("q", "new"),
        stream("new"),
        {**pipeline("p", "a"), "status": "active"},
    ]
    planned = filled.plan_import(given, "merge")
    assert planned == [
        Change(
            "update",
            "Stream",
            "a",
            "A",
            [DiffEntry("metadata.name", "replace", "a", "A"), DiffEntry("spec.n", "add", after=1)],
        ),
        Change("create", "Pipeline", "q", "q"),
        Change("create", "Stream", "new", "new"),
        Change("update", "Pipeline", "p", "p", [DiffEntry("status", "replace", "stopped", "active")]),
    ]
    assert filled.find("Stream", "new") is None, "a plan changes nothing"
    assert filled.apply_import(given, "merge") == planned
    assert filled.get("Stream", "a").revision == 2
    assert filled.get("Pipeline", "q").flow.desired == "active"  # type: ignore[union-attr]
    p = filled.get("Pipeline", "p")
    assert (p.revision, p.flow.desired) == (1, "active")  # type: ignore[union-attr]
    assert len(filled.export()["documents"]) == 8


def test_a_bundle_without_status_leaves_it(filled: Registry) -> None:
    assert actions(filled.apply_import([pipeline("p", "a")], "merge")) == [("unchanged", "p")]
    assert filled.get("Pipeline", "p").flow.desired == "stopped"  # type: ignore[union-attr]


def test_a_replace_deletes_what_is_not_named(filled: Registry) -> None:
    given = [stream("b"), pipeline("p", "b", "c"), stream("c")]
    planned = filled.plan_import(given, "replace")
    assert actions(planned)[:3] == [("unchanged", "b"), ("update", "p"), ("create", "c")]
    assert sorted(actions(planned)[3:]) == [("delete", id) for id in ("a", "lake", "t", "web")]
    assert filled.apply_import(given, "replace") == planned
    assert [each["metadata"]["name"] for each in filled.export()["documents"]] == ["b", "c", "p"]
    assert filled.referrers("Stream", "a") == []


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_an_import_is_everything_or_nothing(filled: Registry, mode: Any) -> None:
    before = filled.export()
    given = [stream("a", {"n": 1}), stream("new"), pipeline("q", "new"), pipeline("r", "nwe", "new")]
    for attempt in (filled.plan_import, filled.apply_import):
        with pytest.raises(Invalid) as caught:
            attempt(given, mode)
        assert [(p.code, p.path, p.hint) for p in caught.value.problems] == [
            ("unknown_reference", "documents[3].spec.source.stream", "did you mean 'new'?")
        ]
    last = filled.last_event_id()
    assert filled.export() == before
    assert filled.last_event_id() == last


def test_a_replace_cannot_delete_what_an_unchanged_document_needs(filled: Registry) -> None:
    kept = [each for each in filled.export()["documents"] if each["metadata"]["name"] != "a"]
    with pytest.raises(Invalid) as caught:
        filled.apply_import(kept, "replace")
    # The stopped pipeline may dangle; the task and the sink may not.
    assert [p.path for p in caught.value.problems] == ["documents[2].spec.input", "documents[3].spec.stream"]


def test_every_problem_of_a_bundle_is_told_at_once(filled: Registry) -> None:
    given: list[Any] = [
        stream("x y"),
        stream("X_Y"),
        {"kind": "Streem", "metadata": {"name": "z"}},
        {**pipeline("p", "a"), "status": "completed"},
        "text",
    ]
    with pytest.raises(Invalid) as caught:
        filled.plan_import(given, "merge")
    assert [(p.code, p.path) for p in caught.value.problems] == [
        ("duplicate", "documents[1].metadata.name"),
        ("unknown_kind", "documents[2].kind"),
        ("unknown_status", "documents[3].status"),
        ("not_a_document", "documents[4]"),
    ]
    assert caught.value.problems[0].message == (
        "stream 'X_Y': the bundle has this document twice, also as document 1"
    )
    assert caught.value.problems[3].message.startswith("document 5: ")


def test_an_import_does_not_change_what_it_is_given(filled: Registry) -> None:
    given = filled.export()["documents"]
    before = copy.deepcopy(given)
    filled.apply_import(given, "replace")
    assert given == before


def test_imports_and_updates_at_once(filled: Registry) -> None:
    bundle = filled.export()["documents"]

    def replace() -> None:
        for _ in range(5):
            filled.apply_import(bundle, "replace")

    def edit() -> None:
        for n in range(10):
            filled.update("Pipeline", "p", pipeline("p", "a", description=str(n)))

    together(replace, replace, edit, edit)
    found = filled.revisions("Pipeline", "p")
    assert [each.revision for each in found] == list(range(len(found), 0, -1))
