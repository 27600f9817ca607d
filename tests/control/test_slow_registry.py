"""A registry that answers late or not at all: flows wait for it, and failed reports are repeated."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy.exc import SQLAlchemyError

from penstock.control.documents.service import Service
from penstock.control.fleet.control import database_control
from penstock.control.fleet.lifecycle import Keeper
from penstock.control.fleet.worker import Held, Worker
from penstock.control.registry import Registry
from penstock.engine.runtime.failures import failure_of
from penstock.errors import Suspended
from penstock.settings import load
from tests.cli.commands import wait_for
from tests.control.test_worker import NO_SPARK
from tests.flows import assign, flow_of, json_rows, pipeline

LEASE_S = 2.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    options = {"home": tmp_path / "home", "worker.lease_ms": int(LEASE_S * 1000), "worker.drain_ms": 3000}
    loaded = load(options, env={}, cwd=tmp_path)
    registry = Registry.open(loaded.settings.registry_url)
    yield Service(loaded, registry)
    registry.close()


def database(service: Service) -> sqlite3.Connection:
    path = service.settings.registry_url.removeprefix("sqlite:///")
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


@contextmanager
def refusing(service: Service, what: str) -> Iterator[None]:
    """The database refuses a kind of write, such as `UPDATE OF outcome ON flows`."""
    with closing(database(service)) as other:
        other.execute(f"CREATE TRIGGER no BEFORE {what} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
        try:
            yield
        finally:
            other.execute("DROP TRIGGER no")


def holding(service: Service, *names: str) -> Worker:
    """A worker without Spark that holds flows which have just completed."""
    worker = Worker(service.settings, database_control(service.settings, service.registry), NO_SPARK)
    worker.flows.join(worker.id, 1, "http://127.0.0.1:1", "token", 60.0, {})
    for name in names:
        uid = service.registry.create(pipeline(name)).uid
        assert assign(service.flows, uid, worker.id)
        (record,) = [each for each in worker.flows.assigned(worker.id) if each.uid == uid]
        keeper = Keeper(name, lambda: flow_of(pipeline()), NO_SPARK, lambda _: "")
        keeper._become(phase="idle", outcome="completed")
        worker._held[uid] = Held(record, (1, frozenset()), "", keeper)
    return worker


def outcomes(service: Service) -> list[tuple[str | None, str | None]]:
    return [(each.flow.outcome, each.flow.worker) for each in service.registry.running()]


def test_an_outcome_that_could_not_be_reported_is_reported_again(service: Service) -> None:
    worker = holding(service, "orders")
    with refusing(service, "UPDATE OF outcome ON flows"), pytest.raises(SQLAlchemyError, match="full"):
        worker._report()
    assert outcomes(service) == [(None, worker.id)]
    worker._report()
    assert outcomes(service) == [("completed", worker.id)]


@pytest.mark.parametrize("what", ["UPDATE OF state ON workers", "UPDATE OF outcome ON flows"])
def test_a_drain_goes_on_after_an_error(service: Service, what: str) -> None:
    worker = holding(service, "one", "other")
    drain = threading.Thread(target=worker._drain)
    with refusing(service, what):
        drain.start()
        time.sleep(0.5)
        assert drain.is_alive(), "it tries again"
        assert all(held.keeper._stop.is_set() for held in worker._held.values()), "every flow drains"
    drain.join(10)
    assert not worker._held
    assert outcomes(service) == [("completed", None)] * 2


def test_a_registry_that_cannot_be_asked_is_no_fault_of_the_flow(service: Service) -> None:
    source = {"kind": "Source", "metadata": {"name": "numbers"}, "spec": {"type": "generate"}}
    service.registry.create(source)
    record = service.registry.create(pipeline(source={"ref": "numbers"}))
    worker = Worker(service.settings, database_control(service.settings, service.registry), NO_SPARK)
    with closing(database(service)) as other:
        other.execute("ALTER TABLE revisions RENAME TO gone")
        for ask in (lambda: worker.resolve(record), lambda: worker.site(record).stream("s")):
            with pytest.raises(Suspended, match="out of reach") as raised:
                ask()
            failure = failure_of(raised.value)
            assert (failure.passing, failure.fatal, failure.problem.code) == (True, False, "suspended")
        other.execute("ALTER TABLE gone RENAME TO revisions")
    assert worker.resolve(record).source.id


@pytest.mark.slow
def test_a_flow_starts_once_the_registry_can_be_asked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.control.fleet.lifecycle.UNRESOLVED_S", 0.01)
    late: list[Exception] = [Suspended("the registry is out of reach")] * 7

    def resolve() -> Any:
        if late:
            raise late.pop()
        return flow_of(pipeline(restart={"max_attempts": 1}))

    kept = Keeper("test", resolve, spark, lambda _: str(tmp_path / "checkpoint"))
    kept.start()
    kept.join(120)
    assert (kept.state.outcome, len(kept.state.attempts)) == ("completed", 7)


@pytest.mark.slow
def test_flows_wait_for_a_registry_that_is_locked_and_go_on(service: Service, spark: SparkSession) -> None:
    """Nothing is delivered without a lease; afterwards the same worker goes on, best-effort sinks too."""
    worker = Worker(service.settings, database_control(service.settings, service.registry), spark)
    thread = threading.Thread(target=worker.run)
    thread.start()
    service.coordinator.start()
    out = service.settings.home / "out"
    sinks = [
        {"id": id, "type": "file", "path": str(out / id), "format": "json", "required": id == "lake"}
        for id in ("lake", "mirror")
    ]
    raw = pipeline("numbers", source={"type": "generate", "rate": 100}, sinks=sinks)
    raw["spec"] |= {"batch": {"max_ms": 100}, "restart": {"policy": "never"}}

    def rows() -> list[int]:
        return [len(json_rows(out / sink["id"])) for sink in sinks]

    try:
        service.create("Pipeline", raw)
        wait_for("events in both sinks", lambda: all(rows()))
        with closing(database(service)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(2 * LEASE_S)
            kept = rows()
            time.sleep(LEASE_S)
            assert rows() == kept, "nothing is delivered without a lease"
            other.execute("ROLLBACK")
        wait_for("more events in both sinks", lambda: all(a > b for a, b in zip(rows(), kept, strict=True)))
        flow = service.get("Pipeline", "numbers").flow
        assert flow is not None
        assert (flow.status, flow.worker, flow.epoch) == ("active", worker.id, 1)
    finally:
        worker.stop()
        thread.join(60)
        service.coordinator.stop()
    assert not thread.is_alive()
    seen = sorted(row["seq"] for row in json_rows(out / "lake"))
    assert seen == list(range(len(seen))), "each once"
