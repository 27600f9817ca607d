from contextlib import suppress

import pytest

from penstock.control.registry import Record, Referrer, Registry
from penstock.errors import Conflict, Invalid, NotFound, PreconditionFailed
from tests.control.registry.kit import document, only_problem, pipeline, stream, together


def test_a_referenced_document_cannot_be_deleted(registry: Registry) -> None:
    registry.create(stream("Orders raw"))
    registry.create(stream("other"))
    registry.create(pipeline("P 1", "Orders raw", "other"))
    registry.create(document("Task", "t", {"input": "other", "outputs": [{"stream": "orders_raw"}]}))
    with pytest.raises(Conflict) as caught:
        registry.delete("Stream", "Orders raw")
    assert [(p.code, p.message, p.path) for p in caught.value.problems] == [
        ("referenced", "pipeline 'P 1' refers to it", "spec.source.stream"),
        ("referenced", "task 't' refers to it", "spec.outputs[0].stream"),
    ]
    assert registry.referrers("Stream", "orders_raw") == [
        Referrer("Pipeline", "p_1", "P 1", "spec.source.stream"),
        Referrer("Task", "t", "t", "spec.outputs[0].stream"),
    ]


def test_only_the_current_revision_refers(registry: Registry) -> None:
    registry.create(stream("a"))
    registry.create(stream("b"))
    registry.create(pipeline("p", "a"))
    registry.update("Pipeline", "p", pipeline("p", "b"))
    registry.delete("Stream", "a")
    with pytest.raises(Invalid) as caught:
        registry.rollback("Pipeline", "p", 1)
    assert only_problem(caught.value).code == "unknown_reference"
    assert registry.get("Pipeline", "p").revision == 2
    registry.delete("Pipeline", "p")
    registry.delete("Stream", "b")


def test_every_unknown_reference_is_told_at_once(registry: Registry) -> None:
    registry.create(stream("orders"))
    with pytest.raises(Invalid) as caught:
        registry.create(pipeline("p", "Ordres", "zzz"))
    assert [(p.code, p.path, p.hint) for p in caught.value.problems] == [
        ("unknown_reference", "spec.source.stream", "did you mean 'orders'?"),
        ("unknown_reference", "spec.sinks[0].stream", None),
    ]
    assert registry.find("Pipeline", "p") is None, "nothing is left of it"
    assert registry.last_event_id() == 1

    registry.create(pipeline("p", "orders"))
    with pytest.raises(Invalid):
        registry.update("Pipeline", "p", pipeline("p", "gone"))
    assert registry.get("Pipeline", "p").document == pipeline("p", "orders")


def test_a_paused_pipeline_may_dangle_until_it_is_activated(registry: Registry) -> None:
    registry.create(pipeline("p", "later"), desired="paused", check_references=False)
    registry.update("Pipeline", "p", pipeline("p", "a\0b"), check_references=False)
    registry.update("Pipeline", "p", pipeline("p", "later"), check_references=False)
    with pytest.raises(Invalid):
        registry.update("Pipeline", "p", pipeline("p", "later"), desired="active")
    assert registry.get("Pipeline", "p").flow.desired == "paused"  # type: ignore[union-attr]

    registry.create(stream("later"))
    with pytest.raises(Conflict):
        registry.delete("Stream", "later")
    assert registry.update("Pipeline", "p", pipeline("p", "later"), desired="active").revision == 3


@pytest.mark.parametrize("paused", [False, True])
def test_a_race_leaves_no_dangling_reference(registry: Registry, paused: bool) -> None:
    if paused:
        registry.create(pipeline("p", "none"), desired="paused", check_references=False)
    for _ in range(20):
        registry.create(stream("s"))
        deleted, saved = together(
            lambda: registry.delete("Stream", "s"),
            lambda: (
                registry.update("Pipeline", "p", pipeline("p", "s"))
                if paused
                else registry.create(pipeline("p", "s"))
            ),
        )
        if isinstance(deleted, Record):
            assert isinstance(saved, Invalid)
            assert only_problem(saved).code == "unknown_reference"
        else:
            assert isinstance(deleted, Conflict)
            assert isinstance(saved, Record)
            if paused:
                registry.update("Pipeline", "p", pipeline("p", "none"), check_references=False)
            else:
                registry.delete("Pipeline", "p")
            registry.delete("Stream", "s")


def test_one_of_two_creators_wins(registry: Registry) -> None:
    for i in range(10):
        outcomes = together(*(lambda: registry.create(stream(f"s{i}")) for _ in range(4)))  # noqa: B023
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 3 + ["Record"]


def test_no_update_is_lost(registry: Registry) -> None:
    registry.create(stream("counter", {"n": 0}))

    def count() -> int:
        done = 0
        while done < 10:
            seen = registry.get("Stream", "counter")
            after = stream("counter", {"n": seen.document["spec"]["n"] + 1})
            with suppress(PreconditionFailed):
                registry.update("Stream", "counter", after, expected=seen.etag)
                done += 1
        return done

    assert sum(together(*[count] * 8)) == 80
    counter = registry.get("Stream", "counter")
    assert (counter.document["spec"]["n"], counter.revision) == (80, 81)
    history = registry.revisions("Stream", "counter")
    assert [each.document["spec"]["n"] for each in history] == list(range(80, -1, -1))


def test_what_is_gone_cannot_be_deleted_again(registry: Registry) -> None:
    registry.create(stream("s"))
    outcomes = together(*(lambda: registry.delete("Stream", "s") for _ in range(4)))
    assert sum(isinstance(outcome, NotFound) for outcome in outcomes) == 3
