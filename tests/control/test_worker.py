"""A worker without flows, and therefore without Spark: its lease, its ticks, and how it is poked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from penstock.control.documents.service import Service
from penstock.control.fleet.assignments import Flows, WorkerInfo
from penstock.control.fleet.control import database_control
from penstock.control.fleet.start_turns import Turn
from penstock.control.fleet.worker import Worker
from penstock.control.questions import rpc
from penstock.control.questions.rpc import RpcClient
from penstock.control.registry import Registry
from penstock.errors import Problem
from penstock.settings import load
from tests.cli.commands import wait_for

NO_SPARK: Any = SimpleNamespace(
    version="0", sparkContext=SimpleNamespace(master="local", uiWebUrl=None, _gateway=SimpleNamespace())
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    loaded = load({"home": tmp_path, "worker.lease_ms": 1000}, env={}, cwd=tmp_path)
    registry = Registry.open(loaded.settings.registry_url)
    yield Service(loaded, registry)
    registry.close()


@contextmanager
def working(service: Service) -> Iterator[Worker]:
    worker = Worker(service.settings, database_control(service.settings, service.registry), NO_SPARK)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        wait_for("the worker", service.flows.workers)
        yield worker
    finally:
        worker.stop()
        thread.join(20)
    assert not thread.is_alive()
    assert service.flows.workers() == [], "it has left"


def test_a_worker_that_ends_leaves_questions_for_spark_to_others(service: Service) -> None:
    worker = Worker(service.settings, database_control(service.settings, service.registry), NO_SPARK)
    with TestClient(rpc._app(worker), headers={"Authorization": f"Bearer {worker.token}"}) as client:
        assert client.post("/analyse", json={"documents": []}).json() == []
        worker.stop()
        for path in rpc.BY_SPARK:
            assert client.post(path, json={"documents": []}).status_code == 503, path
        assert client.post("/poke").status_code == 204


def test_another_worker_is_asked_when_one_is_about_to_end(service: Service) -> None:
    for name in ("ending", "well"):
        service.flows.join(name, 1, "http://127.0.0.1:1", "t", 60.0, {})
    asked: list[str] = []

    def question(worker: WorkerInfo) -> str:
        asked.append(worker.id)
        if len(asked) == 1:
            request = httpx.Request("POST", worker.url)
            raise httpx.HTTPStatusError("", request=request, response=httpx.Response(503, request=request))
        return worker.id

    assert service.judge.ask(question, Problem(code="no_worker", message="")) == asked[1] != asked[0]


def test_a_lease_is_renewed_while_the_worker_is_busy(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = threading.Event()

    def tick(_: Worker) -> None:
        busy.set()
        time.sleep(3)

    monkeypatch.setattr(Worker, "_tick", tick)
    with working(service) as worker:
        assert busy.wait(10)
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            assert service.flows.expire() == []
            time.sleep(0.1)
        worker.permitted()


def test_a_worker_that_was_given_up_ends(service: Service) -> None:
    with working(service) as worker:
        service.flows.leave(worker.id)
        wait_for("its end", worker._stop.is_set)


def test_a_tick_without_news_reads_no_documents(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def assigned(self: Flows, worker: str) -> list[Any]:
        reads.append(worker)
        return []

    monkeypatch.setattr(Flows, "assigned", assigned)
    with working(service) as worker:
        wait_for("the first look", lambda: reads)
        for _ in range(5):
            worker.poke()
            time.sleep(0.1)
        assert len(reads) == 1
        service.registry.create({"kind": "Stream", "metadata": {"name": "s"}, "spec": {}})
        worker.poke()
        wait_for("the second look", lambda: len(reads) == 2)


def test_who_saves_does_not_wait_for_a_worker_that_answers_late(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    pokes: list[str] = []
    late = threading.Event()

    def poke(self: RpcClient, worker: Any) -> None:
        pokes.append(worker.id)
        late.wait(20)

    monkeypatch.setattr(RpcClient, "poke", poke)
    service.flows.join("w", 1, "http://127.0.0.1:1", "token", 60.0, {})
    service._poke()
    wait_for("the poke", lambda: pokes == ["w"])
    began = time.monotonic()
    for _ in range(10):
        service._poke()
    assert time.monotonic() - began < 2
    assert pokes == ["w"], "one at a time"
    late.set()
    wait_for("one poke for all that came meanwhile", lambda: len(pokes) == 2)
    service._poke()
    wait_for("another", lambda: len(pokes) == 3)


def test_no_flow_begins_to_start_while_a_document_is_judged(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Turn, bool]] = []

    def analyse(worker: Worker, *_: object) -> list[Any]:
        turn = worker.turns.ask()
        asked.append((turn, turn.begun))
        return []

    monkeypatch.setattr(rpc, "_analyse", analyse)
    with working(service):
        (found,) = service.flows.workers()
        assert service.rpc.analyse(found, [], alone=True, only=[]) == []
    ((turn, begun),) = asked
    assert (begun, turn.begun) == (False, True)
