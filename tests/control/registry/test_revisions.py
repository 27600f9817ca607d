import pytest

from penstock.control.registry import DiffEntry, Registry
from penstock.control.registry.content import differences
from penstock.errors import NotFound
from tests.control.registry.kit import stream


@pytest.fixture
def history(registry: Registry) -> Registry:
    registry.create(stream("a", {"n": 1}))
    registry.update("Stream", "a", stream("A", {"n": 2}), origin="patch")
    registry.update("Stream", "a", stream("a", {"m": 3}))
    return registry


def test_every_save_is_kept(history: Registry) -> None:
    found = history.revisions("Stream", "a")
    assert [(r.revision, r.origin) for r in found] == [(3, "update"), (2, "patch"), (1, "create")]
    assert [r.document["spec"] for r in found] == [{"m": 3}, {"n": 2}, {"n": 1}]
    assert found[0].created_at > found[1].created_at > found[2].created_at
    assert history.revision("Stream", "a", 2) == found[1]


@pytest.mark.parametrize("number", [0, -1, 4, 2**70])
def test_a_revision_that_never_was(history: Registry, number: int) -> None:
    with pytest.raises(NotFound) as caught:
        history.revision("Stream", "a", number)
    assert caught.value.problems[0].message == f"stream 'a' has no revision {number}"


def test_a_rollback_is_a_new_revision_with_the_old_content(history: Registry) -> None:
    record = history.rollback("Stream", "a", 2, expected="3")
    assert (record.revision, record.name, record.document) == (4, "A", stream("A", {"n": 2}))
    assert history.revisions("Stream", "a")[0].origin == "rollback to 2"
    assert len(history.revisions("Stream", "a")) == 4
    assert history.rollback("Stream", "a", 4).revision == 4, "the content is current already"


def test_a_diff_in_fields_and_as_text(history: Registry) -> None:
    diff = history.diff("Stream", "a", 1, 2)
    assert diff.entries == [
        DiffEntry("metadata.name", "replace", "a", "A"),
        DiffEntry("spec.n", "replace", 1, 2),
    ]
    assert diff.text.splitlines() == [
        "--- revision 1",
        "+++ revision 2",
        "@@ -1,6 +1,6 @@",
        " apiVersion: penstock/v1",
        " kind: Stream",
        " metadata:",
        "-  name: a",
        "+  name: A",
        " spec:",
        "-  n: 1",
        "+  n: 2",
    ]
    assert history.diff("Stream", "a", 3, 3).entries == []
    assert history.diff("Stream", "a", 3, 3).text == ""


def test_the_paths_of_a_diff() -> None:
    before = {"spec": {"sinks": [{"path": "a"}, {"path": "b"}, 3], "labels": {"a.b": 1}, "gone": None}}
    after = {"spec": {"sinks": [{"path": "a"}, {"path": "c"}], "labels": {"a.b": True}, "new": [1]}}
    assert list(differences(before, after)) == [
        DiffEntry("spec.sinks[1].path", "replace", "b", "c"),
        DiffEntry("spec.sinks[2]", "remove", before=3),
        DiffEntry('spec.labels["a.b"]', "replace", 1, True),
        DiffEntry("spec.gone", "remove"),
        DiffEntry("spec.new", "add", after=[1]),
    ]
    assert list(differences([1], {"a": 1}, "spec")) == [DiffEntry("spec", "replace", [1], {"a": 1})]
