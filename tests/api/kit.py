"""A running server for tests, with workers that judge documents."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx

from penstock.api.app import create_app
from penstock.api.server import Server
from penstock.api.web_files import BUILT
from penstock.control.documents.edits import Planner
from penstock.control.documents.service import Service
from penstock.control.fleet.control import database_control
from penstock.control.fleet.progress import state_directory
from penstock.control.fleet.start_turns import Turns
from penstock.control.fleet.worker import Worker
from penstock.control.questions.rpc import RpcServer
from penstock.control.registry import Registry
from penstock.engine.runtime.checkpoints import memory_of
from penstock.settings import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_S = 86_400.0
"""The lease of a worker that nobody renews: longer than the longest run of all tests."""


@dataclass(frozen=True)
class Api:
    """A server, what is behind it, and a client."""

    url: str
    service: Service
    client: httpx.Client


@contextmanager
def open_service(home: Path, **settings: str) -> Iterator[Service]:
    """A service on a new registry, with further settings."""
    # Tests share a server, and name files of their own directories, which are beside its home.
    chosen = {"home": home, "port": 0, "policy.paths": [str(home.parent), str(Path.cwd())], **settings}
    loaded = load(chosen, env={}, cwd=home)
    registry = Registry.open(loaded.settings.registry_url)
    try:
        yield Service(loaded, registry)
    finally:
        registry.close()


@contextmanager
def running(service: Service, ui: Path = BUILT) -> Iterator[Api]:
    """A server on a free port."""
    ready = threading.Event()
    server = Server(create_app(service, ui), service.settings, lambda _: ready.set())
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(60)
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
            yield Api(server.url, service, client)
    finally:
        server.stop()
        thread.join(60)
    assert not thread.is_alive()


@contextmanager
def judging(service: Service) -> Iterator[None]:
    """A worker without Spark: it judges documents by their structure, and runs nothing."""
    worker: Any = SimpleNamespace(
        settings=service.settings,
        registry=service.registry,
        streams=service.streams,
        spark=None,
        token=uuid.uuid4().hex,
        poke=lambda: None,
        turns=Turns(),
        is_stopping=False,
        limited=lambda app: app,
    )
    rpc, id = RpcServer(worker), str(uuid.uuid4())
    rpc.start()
    service.flows.join(id, 1, rpc.url, worker.token, DAY_S, {"version": "test"})
    try:
        yield
    finally:
        service.flows.leave(id)
        rpc.stop()


@contextmanager
def working(service: Service, spark: SparkSession) -> Iterator[None]:
    """A worker in a thread, and the coordinator that gives it something to do."""
    worker = Worker(service.settings, database_control(service.settings, service.registry), spark)
    thread = threading.Thread(target=worker.run)
    thread.start()
    service.coordinator.start()
    try:
        yield
    finally:
        service.coordinator.stop()
        worker.stop()
        thread.join()


def begun(service: Service, name: str, kind: str = "Pipeline") -> str:
    """Let a flow look as if it had read something; the name that streams know it by."""
    record = service.get(kind, name)
    flow = Planner(service.settings, service.registry, service.streams)._last_valid(record)
    assert flow is not None
    directory = Path(state_directory(service.settings, record)) / memory_of(flow, None).key / "offsets"
    directory.mkdir(parents=True)
    (directory / "0").touch()
    return flow.site.flow


def stream(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Stream", "metadata": {"name": name}, "spec": spec}


def pipeline(name: str, status: str = "paused", **spec: Any) -> dict[str, Any]:
    """A pipeline that makes events and drops them."""
    content = {"source": {"type": "generate", "rate": 10}, "sinks": [{"type": "drop"}], **spec}
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": content, "status": status}


def codes(response: httpx.Response) -> list[str]:
    """The codes of all problems of a refusal, after a check of its envelope."""
    body = response.json()
    assert set(body) == {"code", "message", "path", "hint", "errors"}
    assert {key: body[key] for key in ("code", "message", "path", "hint")} == body["errors"][0]
    return [problem["code"] for problem in body["errors"]]
