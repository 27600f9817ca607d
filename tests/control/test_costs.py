"""What idle flows and a save cost, counted: documents parsed, rows written, flows planned."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import event

from penstock.control.documents.service import Service
from penstock.control.registry import Registry
from penstock.control.streams import logs as streams_module
from penstock.control.streams.ingest import Entrances
from penstock.engine.plan import edit_effects as edits
from penstock.engine.plan import plan, shapes
from penstock.settings import load
from penstock.spark import queries
from penstock.streams.local.storage import LocalStorage
from tests.cli.commands import wait_for
from tests.flows import assign, flow_of, keeper, pipeline, unassigned

FLOWS = 20


@pytest.fixture
def resting(tmp_path: Path) -> Iterator[Service]:
    """A service without a worker, with a stream and some pipelines."""
    loaded = load({"home": tmp_path}, env={}, cwd=tmp_path)
    registry = Registry.open(loaded.settings.registry_url)
    service = Service(loaded, registry)
    service.streams.ensure(registry.create({"kind": "Stream", "metadata": {"name": "s"}, "spec": {}}))
    for number in range(FLOWS):
        registry.create(pipeline(f"p{number}", source={"type": "http"}))
    yield service
    registry.close()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[Any]]:
    """Counts the calls of a function, which go on to it."""

    def count(owner: Any, name: str) -> list[Any]:
        calls: list[Any] = []
        real = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            calls.append(args)
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)
        return calls

    return count


@contextmanager
def statements(service: Service) -> Iterator[list[str]]:
    """The statements that the registry's database gets."""
    found: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    event.listen(service.registry.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(service.registry.engine, "before_cursor_execute", note)


def test_streams_are_looked_after_without_parsing_documents_that_have_not_changed(
    resting: Service, counted: Callable[[Any, str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "MAINTAIN_S", 0.02)
    looks, parsed = counted(LocalStorage, "maintain"), counted(streams_module, "parse")
    resting.streams.start()
    try:
        wait_for("a look at all streams", lambda: len(looks) > 2 * FLOWS)
        known = len(parsed)
        looked = len(looks)
        wait_for("more looks", lambda: len(looks) > looked + 5 * FLOWS)
        assert len(parsed) == known
        changed = {"kind": "Stream", "metadata": {"name": "another"}, "spec": {}}
        resting.registry.create(changed)
        wait_for("the new stream", lambda: len(parsed) > known)
    finally:
        resting.streams.stop()


def test_a_heartbeat_writes_one_row_and_locks_no_flow(resting: Service) -> None:
    flows = resting.flows
    flows.join("w", 1, "http://127.0.0.1:1", "token", 60.0, {})
    for uid in unassigned(flows):
        assert assign(flows, uid, "w")
    with statements(resting) as made:
        assert flows.renew("w", 60.0, {"cpu_percent": 1})
    assert [each.split()[:2] for each in made if not each.startswith("BEGIN")] == [["UPDATE", "workers"]]


def test_who_sends_events_does_not_have_documents_read_because_a_flow_changed_its_status(
    resting: Service, counted: Callable[[Any, str], list[Any]]
) -> None:
    entrances = Entrances(resting)
    read = counted(entrances, "_read")
    assert entrances.find("p1").streams
    resting.flows.aim(resting.get("Pipeline", "p2"), "paused")
    assert entrances.find("p1").streams
    assert len(read) == 1
    resting.registry.create(pipeline("new", source={"type": "http"}))
    assert entrances.find("new").streams
    assert len(read) == 2


@pytest.mark.slow
def test_progress_is_parsed_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    class Json:
        @staticmethod
        def loads(text: str) -> Any:
            parsed.append(text)
            return json.loads(text)

    monkeypatch.setattr(queries, "json", Json)
    raw = pipeline(source={"type": "generate", "rate": 200}, batch={"max_ms": 20})
    kept = keeper(spark, raw, tmp_path)
    kept.start()
    wait_for("some batches", lambda: kept.state.ops.get("batches", 0) >= 15)
    kept.drain()
    kept.join(60)
    marks = [(found["batchId"], found["timestamp"]) for found in map(json.loads, parsed)]
    assert len(marks) >= 15
    assert len(marks) == len(set(marks)), "each once"
    assert flow_of(raw).id == "test"


@pytest.mark.slow
def test_an_edit_that_changes_no_step_is_planned_to_check_it_and_to_run_it(
    service: Service, counted: Callable[[Any, str], list[Any]]
) -> None:
    window = {"type": "window", "time": "at", "size": "1m", "aggregates": {"n": "count(*)"}}
    stream = {"kind": "Stream", "metadata": {"name": "s"}, "spec": {"schema": "id BIGINT, at TIMESTAMP"}}
    service.create("Stream", stream)
    raw = pipeline("sums", source={"type": "stream", "stream": "s"}, processors=[window])
    service.create("Pipeline", raw)

    def settled() -> bool:
        found = service.get("Pipeline", "sums")
        assert found.flow is not None
        return found.flow.running_revision == found.revision

    wait_for("it to run", settled)
    planned = [counted(owner, "plan_flow") for owner in (edits, plan, shapes)]
    service.patch("Pipeline", "sums", {"restart": {"max_attempts": 7}})
    wait_for("the new revision", settled)
    time.sleep(0.5)
    assert [len(calls) for calls in planned] == [0, 1, 1], "to check it, and to run it"
    service.patch("Pipeline", "sums", {"processors": [{**window, "allowed_lateness": "5s"}]})
    wait_for("the next revision", settled)
    assert [len(calls) for calls in planned] == [2, 2, 2], "to compare what is remembered, both are planned"
