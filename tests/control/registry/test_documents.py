import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from penstock.control.registry import Registry, tables
from penstock.errors import Conflict, Invalid, NotFound, PreconditionFailed
from tests.control.registry.kit import document, only_problem, pipeline, stream


def test_a_created_document_reads_back_as_it_was_given(registry: Registry) -> None:
    given = stream("Orders raw", {"z": 1, "a": {"ü": [1.5, None, True, "\0 \U0001f600"]}}, description="x")
    created = registry.create(given)
    assert created == registry.get("Stream", "Orders raw") == registry.get("Stream", "orders_raw")
    assert created == registry.find_by_uid(created.uid)
    assert (created.kind, created.id, created.name, created.revision) == (
        "Stream",
        "orders_raw",
        "Orders raw",
        1,
    )
    assert created.document == given
    assert list(created.document["spec"]) == ["z", "a"], "the order of fields is kept"
    assert created.flow is None
    assert created.created_at == created.updated_at
    assert abs(created.created_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_text_that_a_database_cannot_compare_is_stored_nevertheless(registry: Registry) -> None:
    given = stream("a", description="a\0b", labels={"a\0b": "c\0d"})
    assert registry.create(given).document == given
    assert registry.list("Stream", search="A\0B", label=["a\0b=c\0d"]).total == 1


def test_a_flow_keeps_any_error(registry: Registry) -> None:
    registry.create(stream("s"))
    registry.create(pipeline("p", "s"))
    with registry.begin() as conn:
        conn.execute(update(tables.flows).values(error={"message": "a\0b \ud800"}))
    assert registry.get("Pipeline", "p").flow.error == {"message": "a\0b \ud800"}  # type: ignore[union-attr]


def test_the_registry_keeps_its_own_copy(registry: Registry) -> None:
    given = stream("a", {"list": [1]})
    created = registry.create(given)
    given["spec"]["list"].append(2)
    assert created.document["spec"] == registry.get("Stream", "a").document["spec"] == {"list": [1]}


def test_a_name_can_be_used_once_per_kind(registry: Registry) -> None:
    registry.create(stream("Orders raw"))
    registry.create(document("Sink", "Orders raw"))
    with pytest.raises(Conflict) as caught:
        registry.create(stream("ORDERS RAW"))
    problem = only_problem(caught.value)
    assert (problem.code, problem.path) == ("name_in_use", "metadata.name")
    assert "'Orders raw'" in problem.message


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        (stream(" "), ["invalid_name"]),
        (stream("a\0b"), ["invalid_name"]),
        ({"kind": "Strem", "metadata": {"name": "a"}}, ["unknown_kind"]),
        ({"metadata": "a"}, ["unknown_kind", "invalid_name"]),
        (stream("a", {"at": datetime.now(UTC)}), ["not_json"]),
        (stream("a", {"n": float("nan")}), ["not_json"]),
        (stream("a", description="half a character: \ud800"), ["not_json"]),
        (["a"], ["not_a_document"]),
        ({**pipeline("p", "s"), "status": "pasued"}, ["unknown_status"]),
    ],
)
def test_what_is_no_document_is_refused(registry: Registry, given: Any, codes: list[str]) -> None:
    with pytest.raises(Invalid) as caught:
        registry.create(given)
    assert [problem.code for problem in caught.value.problems] == codes


def test_a_missing_document_is_named_with_the_nearest_one(registry: Registry) -> None:
    registry.create(stream("orders"))
    with pytest.raises(NotFound) as caught:
        registry.get("Stream", "Ordres")
    problem = only_problem(caught.value)
    assert (problem.code, problem.message) == ("not_found", "there is no stream 'Ordres'")
    assert problem.hint == "did you mean 'orders'?"
    with pytest.raises(NotFound) as caught:
        registry.get("Sink", "orders")
    assert only_problem(caught.value).hint is None


@pytest.mark.parametrize("name", ["", " ", "a\0b", "../x", "x" * 5000, "no such"])
def test_any_text_can_be_looked_up(registry: Registry, name: str) -> None:
    assert registry.find("Stream", name) is None
    assert registry.find_by_uid(name) is None
    assert registry.referrers("Stream", name) == []


def test_an_update_makes_a_new_revision(registry: Registry) -> None:
    created = registry.create(stream("Orders raw", {"a": 1}))
    updated = registry.update("Stream", "orders_raw", stream("orders RAW", {"a": 2}))
    assert (updated.uid, updated.revision, updated.name) == (created.uid, 2, "orders RAW")
    assert updated.document["spec"] == {"a": 2}
    assert updated.created_at == created.created_at
    assert updated.updated_at > created.updated_at
    assert updated.etag != created.etag


def test_saving_the_same_content_changes_nothing(registry: Registry) -> None:
    created = registry.create(stream("a", {"x": 1, "y": 2}))
    last = registry.last_event_id()
    assert registry.update("Stream", "a", stream("a", {"y": 2, "x": 1})) == created
    assert registry.last_event_id() == last
    assert registry.update("Stream", "a", stream("a", {"y": 2, "x": True})).revision == 2, "1 is not true"


def test_an_update_cannot_change_id_or_kind(registry: Registry) -> None:
    registry.create(stream("a"))
    for given, code in ((stream("b"), "id_changed"), (document("Sink", "a"), "kind_changed")):
        with pytest.raises(Invalid) as caught:
            registry.update("Stream", "a", given)
        assert only_problem(caught.value).code == code
    with pytest.raises(NotFound):
        registry.update("Stream", "b", stream("b"))


def test_expected_revision_may_be_an_etag_a_number_or_any(registry: Registry) -> None:
    record = registry.create(stream("a", {"n": 0}))
    for n, form in enumerate(("{etag}", "W/{etag}", '"other-1", {etag}', "{number}", "*"), start=1):
        expected = form.format(etag=record.etag, number=record.revision)
        record = registry.update("Stream", "a", stream("a", {"n": n}), expected=expected)
        assert record.revision == n + 1


def test_a_stale_expectation_is_refused(registry: Registry) -> None:
    first = registry.create(stream("a", {"n": 1}))
    registry.update("Stream", "a", stream("a", {"n": 2}))
    for change in (
        lambda: registry.update("Stream", "a", stream("a", {"n": 3}), expected=first.etag),
        lambda: registry.delete("Stream", "a", expected="1"),
        lambda: registry.rollback("Stream", "a", 1, expected=""),
    ):
        with pytest.raises(PreconditionFailed) as caught:
            change()
        problem = only_problem(caught.value)
        assert problem.code == "stale_revision"
        assert "revision 2" in problem.message
    assert registry.get("Stream", "a").revision == 2


def test_a_deleted_document_is_gone_with_its_history(registry: Registry) -> None:
    registry.create(stream("s"))
    old = registry.create(pipeline("a", "s", labels={"k": "v"}))
    registry.update("Pipeline", "a", pipeline("a", "s", labels={"k": "w"}))
    deleted = registry.delete("Pipeline", "a")
    assert (deleted.uid, deleted.revision) == (old.uid, 2)
    assert registry.find("Pipeline", "a") is None
    with registry.engine.connect() as conn:
        for table in (tables.labels, tables.refs, tables.flows):
            assert conn.scalar(select(func.count()).select_from(table)) == 0, table.name
        assert conn.scalar(select(func.count()).select_from(tables.revisions)) == 1, "that of the stream"
    again = registry.create(pipeline("a", "s"))
    assert again.revision == 1
    assert again.etag != old.etag, "an ETag of the deleted document does not match its namesake"


def test_a_pipeline_has_a_flow(registry: Registry) -> None:
    registry.create(stream("s"))
    flow = registry.create(pipeline("p", "s")).flow
    assert flow is not None
    assert (flow.id, flow.desired, flow.status, flow.phase, flow.epoch) == (
        "p",
        "active",
        "active",
        "waiting",
        0,
    )
    assert (flow.outcome, flow.error, flow.attempts, flow.worker, flow.ops) == (None, None, [], None, {})
    assert registry.create(pipeline("q", "s"), desired="paused").flow.status == "paused"  # type: ignore[union-attr]


def test_status_in_a_document_is_state_and_not_content(registry: Registry) -> None:
    registry.create(stream("s"))
    created = registry.create({**pipeline("p", "s"), "status": "paused"})
    assert created.flow is not None
    assert created.flow.desired == "paused"
    assert "status" not in created.document
    updated = registry.update("Pipeline", "p", {**pipeline("p", "s"), "status": "active"})
    assert updated.flow is not None
    assert (updated.revision, updated.flow.desired) == (1, "active")


def test_a_new_revision_starts_a_flow_over_and_the_same_content_does_not(registry: Registry) -> None:
    registry.create(stream("s"))
    registry.create(pipeline("p", "s"))
    ended = {"outcome": "failed", "error": {"m": 1}, "attempts": [1], "phase": "failed", "epoch": 4}
    with registry.begin() as conn:
        conn.execute(update(tables.flows).values(**ended))
    assert registry.get("Pipeline", "p").flow.status == "failed"  # type: ignore[union-attr]

    flow = registry.update("Pipeline", "p", pipeline("p", "s"), desired="paused").flow
    assert flow is not None
    assert (flow.status, flow.outcome, flow.error, flow.attempts) == ("paused", "failed", {"m": 1}, [1])

    flow = registry.update("Pipeline", "p", pipeline("p", "s", description="new"), desired="active").flow
    assert flow is not None
    assert (flow.status, flow.outcome, flow.error, flow.attempts) == ("active", None, None, [])
    assert (flow.phase, flow.epoch) == ("waiting", 4), "epochs never go back"


def test_the_shared_clock_is_the_time(registry: Registry) -> None:
    with registry.begin() as conn:
        first = registry.now(conn)
        time.sleep(0.01)
        assert 0.005 < registry.now(conn) - first < 5, "it moves within a transaction"
        assert abs(first - time.time()) < 5


def test_a_failed_transaction_leaves_nothing(registry: Registry) -> None:
    registry.create(stream("s"))
    registry.create(pipeline("p", "s"))
    last = registry.last_event_id()

    def fail() -> None:
        with registry.begin() as conn:
            registry.emit(conn, "Pipeline", "p", "tested")
            conn.execute(update(tables.flows).values(phase="running"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert registry.last_event_id() == last
    assert registry.get("Pipeline", "p").flow.phase == "waiting"  # type: ignore[union-attr]
