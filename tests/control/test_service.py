"""What a person can do with pipelines, with a real worker behind it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.control.documents.edit_gate import Reset
from penstock.control.documents.raw import merge_patch
from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import Flows
from penstock.control.registry.records import Record
from penstock.errors import Conflict, Invalid, PreconditionFailed
from tests.cli.commands import wait_for
from tests.flows import json_rows, pipeline

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("patient")]

TICKS = {"type": "generate", "rate": 50}
ACCEPTED = Reset(accepted=True)


def status(service: Service, name: str = "orders") -> tuple[str, str]:
    flow = service.get("Pipeline", name).flow
    assert flow is not None
    return flow.status, flow.phase


def running(service: Service, name: str = "orders") -> Record:
    wait_for(f"{name} to run", lambda: status(service, name) == ("active", "running"))
    return service.get("Pipeline", name)


def delivered(service: Service, name: str = "orders") -> int:
    return sum(sink["events"] for sink in service.progress("Pipeline", name).get("sinks", {}).values())


def test_a_life(service: Service, tmp_path: Path) -> None:
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    service.create("Pipeline", pipeline("orders", source=TICKS, sinks=sinks))
    running(service)
    wait_for("events", lambda: delivered(service))

    paused = service.act("Pipeline", "orders", "pause").flow
    assert paused is not None
    assert (paused.status, paused.phase, paused.worker) == ("paused", "idle", None)
    count = delivered(service)
    assert count == len(json_rows(tmp_path / "out"))
    time.sleep(1)
    assert len(json_rows(tmp_path / "out")) == count, "a paused pipeline delivers nothing"

    service.act("Pipeline", "orders", "resume")
    wait_for("more events", lambda: delivered(service) > count)
    assert status(service) == ("active", "running")
    service.act("Pipeline", "orders", "stop")
    assert status(service) == ("stopped", "idle")
    with pytest.raises(Conflict) as caught:
        service.act("Pipeline", "orders", "resume")
    assert (caught.value.problems[0].code, caught.value.problems[0].hint) == (
        "invalid_transition",
        "use start",
    )
    service.act("Pipeline", "orders", "start")
    assert status(service) == ("active", "running")

    service.delete("Pipeline", "orders")
    numbers = sorted(row["seq"] for row in json_rows(tmp_path / "out"))
    assert numbers == list(range(len(numbers)))
    assert not (service.settings.home / "flows" / "orders").exists()


def test_a_finite_input_ends_as_completed_and_can_be_started_again(service: Service) -> None:
    service.create("Pipeline", pipeline("orders"))
    wait_for("the end", lambda: status(service) == ("completed", "idle"))
    assert delivered(service) == 10
    with pytest.raises(Conflict):
        service.act("Pipeline", "orders", "pause")
    service.act("Pipeline", "orders", "start")
    wait_for("the end", lambda: status(service) == ("completed", "idle"))
    assert delivered(service) == 10


def test_an_edit_restarts_with_the_new_revision(service: Service) -> None:
    service.create("Pipeline", pipeline("orders", source=TICKS))
    running(service)
    saved = service.patch("Pipeline", "orders", {"batch": {"max_ms": 10}}).record
    assert saved.revision == 2
    assert status(service) == ("active", "running")
    saved = service.patch("Pipeline", "orders", {"spec": {"batch": None, "source": {"rate": 20}}}).record
    assert saved.document["spec"]["source"] == {"type": "generate", "rate": 20}
    assert "batch" not in saved.document["spec"]
    assert (
        service.rollback("Pipeline", "orders", 1).record.document
        == service.registry.revision("Pipeline", "orders", 1).document
    )
    assert [r.origin for r in service.revisions("Pipeline", "orders")] == [
        "rollback to 1",
        "patch",
        "patch",
        "create",
    ]


def test_an_edit_that_is_invalid_changes_nothing(service: Service) -> None:
    service.create("Pipeline", pipeline("orders", source=TICKS))
    before = running(service)
    with pytest.raises(Invalid) as caught:
        service.patch("Pipeline", "orders", {"processors": [{"type": "filter", "where": "nothing > 1"}]})
    assert caught.value.problems[0].path == "spec.processors[0].where"
    with pytest.raises(PreconditionFailed):
        service.replace("Pipeline", "orders", before.document, expected='"7"')
    assert service.get("Pipeline", "orders").revision == 1
    assert status(service) == ("active", "running")


def test_an_edit_that_does_not_start_is_rolled_back(service: Service, tmp_path: Path) -> None:
    # So slow that the source has nothing at first, which does not make a start a success.
    service.create("Pipeline", pipeline("orders", source={"type": "generate", "rate": 1.5}))
    running(service)
    (tmp_path / "file").write_text("in the way")
    bad = [{"type": "file", "path": str(tmp_path / "file"), "format": "json"}]
    with pytest.raises(Conflict) as caught:
        service.patch("Pipeline", "orders", {"sinks": bad})
    (problem,) = caught.value.problems
    assert problem.code == "rolled_back"
    assert "revision 2 did not start; rolled back to revision 1" in problem.message
    record = running(service)
    assert record.revision == 3
    assert record.document == service.registry.revision("Pipeline", "orders", 1).document
    assert record.flow is not None
    assert (record.flow.error or {})["code"] == "rolled_back"
    assert service.revisions("Pipeline", "orders")[0].origin == "rollback to 1: 2 did not start"


def test_a_flow_that_moves_to_another_stream_leaves_no_cursor_behind(
    service: Service, tmp_path: Path
) -> None:
    """A cursor in a stream that nothing reads would keep its events from being removed."""
    for name in ("a", "b", "c", "other"):
        service.create("Stream", {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": "id INT"}})
        service.streams.log(name).append(pa.record_batch({"id": pa.array([1], pa.int32())}))
    join = {"id": "paid", "type": "join", "stream": "other", "on": ["id"], "within": "1m"}
    spec = {"source": {"type": "stream", "stream": "a"}, "processors": [join]}
    service.create("Pipeline", pipeline("orders", **spec))
    reader = f"pipeline:orders:{running(service).uid[:8]}"

    def read() -> dict[str, list[str]]:
        found = {name: service.streams.log(name).storage.cursors() for name in ("a", "b", "c", "other")}
        return {
            name: [cursor.reader for cursor in cursors if cursor.has_run] for name, cursors in found.items()
        }

    at_first = {"a": [reader], "b": [], "c": [], "other": [f"{reader}/paid"]}
    wait_for("the cursors", lambda: read() == at_first)
    (tmp_path / "file").write_text("in the way")
    bad = [{"type": "file", "path": str(tmp_path / "file"), "format": "json"}]
    with pytest.raises(Conflict):
        service.patch("Pipeline", "orders", {"source": {"stream": "b"}, "sinks": bad}, reset=ACCEPTED)
    wait_for("the cursors before the revision that was rolled back", lambda: read() == at_first)

    moved = {"source": {"stream": "b"}, "processors": [{**join, "stream": "c"}]}
    service.patch("Pipeline", "orders", {"spec": moved}, reset=ACCEPTED)
    wait_for("the cursors", lambda: read() == {"a": [], "b": [reader], "c": [f"{reader}/paid"], "other": []})

    service.act("Pipeline", "orders", "pause")
    saved = service.patch("Pipeline", "orders", {"source": {"stream": "a"}}, reset=ACCEPTED)
    assert (saved.record.flow and saved.record.flow.status, read()["b"]) == ("paused", [])


def test_an_invalid_document_can_be_kept_paused_but_not_run(service: Service) -> None:
    raw = pipeline("orders", processors=[{"type": "sql", "query": "SELECT nothing FROM input"}])
    with pytest.raises(Invalid):
        service.create("Pipeline", raw)
    record = service.create("Pipeline", raw | {"status": "paused"}).record
    assert record.flow is not None
    assert record.flow.status == "paused"
    assert (record.flow.error or {})["path"] == "spec.processors[0].query"
    with pytest.raises(Invalid):
        service.act("Pipeline", "orders", "resume")
    mended = {"processors": [{"type": "sql", "query": "SELECT seq FROM input"}]}
    saved = service.patch("Pipeline", "orders", mended).record
    assert saved.flow is not None
    assert (saved.flow.status, saved.flow.error) == ("paused", None)
    service.act("Pipeline", "orders", "resume")
    wait_for("the end", lambda: status(service) == ("completed", "idle"))


def test_a_flow_that_ends_while_its_worker_looks_is_not_begun_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Flows.assigned

    def read_early(flows: Flows, worker: str) -> list[Record]:
        """What was so before a flow came to its end."""
        found = read(flows, worker)
        time.sleep(4 if found else 0)
        return found

    monkeypatch.setattr(Flows, "assigned", read_early)
    service.create("Pipeline", pipeline("orders"))
    wait_for("the end", lambda: status(service) == ("completed", "idle"))
    events = service.registry.events_after(0)
    told = [event.data["status"] for event in events if event.type == "status"]
    assert "active" not in told[told.index("completed") :], told


def test_a_schema_that_could_not_be_known_is_pinned_when_it_can(service: Service, tmp_path: Path) -> None:
    source = {"type": "file", "path": str(tmp_path / "in"), "format": "json", "finite": True}
    service.create("Pipeline", pipeline("orders", source=source) | {"status": "paused"})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    service.act("Pipeline", "orders", "resume")
    record = service.get("Pipeline", "orders")
    assert (record.revision, record.document["spec"]["source"]["schema"]) == (2, "id BIGINT")
    wait_for("the end", lambda: status(service) == ("completed", "idle"))


def test_failures_are_tried_again_and_then_told(service: Service, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sinks = [{"type": "file", "path": str(tmp_path / "file"), "format": "json"}]
    restart = {"max_attempts": 3, "backoff_ms": 10}
    service.create("Pipeline", pipeline("orders", sinks=sinks, restart=restart))
    wait_for("the end", lambda: status(service) == ("failed", "idle"))
    flow = service.get("Pipeline", "orders").flow
    assert flow is not None
    assert [attempt["attempt"] for attempt in flow.attempts] == [1, 2, 3]
    assert flow.error is not None
    assert flow.error["at"] == pytest.approx(time.time(), abs=120)
    (tmp_path / "file").unlink()
    service.act("Pipeline", "orders", "start")
    wait_for("the end", lambda: status(service) == ("completed", "idle"))


def test_shared_parts(service: Service) -> None:
    task: dict[str, Any] = {
        "kind": "Task",
        "metadata": {"name": "clean"},
        "spec": {"processors": [{"type": "filter", "where": "seq >= 0"}]},
    }
    service.create("Task", task)
    service.create("Pipeline", pipeline("orders", source=TICKS, tasks=["clean"]))
    running(service)
    broken = {"processors": [{"type": "filter", "where": "nothing >= 0"}]}
    with pytest.raises(Invalid) as caught:
        service.patch("Task", "clean", broken)
    assert "pipeline 'orders' would break" in caught.value.problems[0].message
    with pytest.raises(Conflict) as refused:
        service.delete("Task", "clean")
    assert refused.value.problems[0].code == "referenced"
    wait_for("events", lambda: delivered(service))
    service.patch("Task", "clean", {"processors": [{"type": "filter", "where": "seq < 0"}]})

    def filtered() -> bool:
        """The new filter is in force: batches go on, events do not come out."""
        before, batches = delivered(service), service.progress("Pipeline", "orders")["batches"]
        wait_for("a batch", lambda: service.progress("Pipeline", "orders")["batches"] > batches + 1)
        return delivered(service) == before

    wait_for("the new task", filtered)


def test_bundles_are_all_or_nothing(service: Service) -> None:
    service.create("Pipeline", pipeline("orders") | {"status": "paused"})
    good, bad = pipeline("good"), pipeline("bad", sinks=[])
    with pytest.raises(Invalid) as caught:
        service.import_([good, bad], "merge", dry_run=False)
    assert caught.value.problems[0].path == "documents[1].spec.sinks"
    assert service.list("Pipeline").total == 1
    planned = service.import_([good], "replace", dry_run=True)
    assert {(c.action, c.id) for c in planned} == {("create", "good"), ("delete", "orders")}
    assert service.list("Pipeline").total == 1
    service.import_([good], "replace", dry_run=False)
    wait_for("the end", lambda: status(service, "good") == ("completed", "idle"))
    exported = service.export()["documents"]
    assert [d["metadata"]["name"] for d in exported] == ["good"]
    assert exported[0]["status"] == "active"


def test_merge_patch() -> None:
    """The examples of RFC 7386, appendix A."""
    for target, patch, result in [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]:
        assert merge_patch(target, patch) == result
