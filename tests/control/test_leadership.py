"""Two servers on one registry: one makes rounds, the other takes over when it is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from penstock.control.fleet.assignments import Flows
from penstock.control.fleet.leadership import Leadership
from penstock.control.registry import Registry
from penstock.control.registry.tables import leader
from tests.cli.commands import wait_for
from tests.product import Product

LEASE_S = 1.0


@pytest.fixture(params=["sqlite", "postgresql"])
def registries(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Registry]]:
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    found = [Registry.open(url) for _ in range(4)]
    yield found
    for registry in found:
        registry.close()


def test_one_of_several_leads_and_another_takes_over_when_it_is_gone(registries: list[Registry]) -> None:
    servers = [Leadership(registry, LEASE_S) for registry in registries]
    results: list[bool] = []

    def look(server: Leadership) -> None:
        results.append(server.look(time.monotonic()))

    threads = [threading.Thread(target=look, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]
    (first,) = [server for server in servers if server.leads]
    others = [server for server in servers if server is not first]
    until = time.monotonic() + 2 * LEASE_S
    while time.monotonic() < until:
        assert first.look(time.monotonic())
        assert not any(server.look(time.monotonic()) for server in others)
    time.sleep(LEASE_S + 0.1)
    assert others[0].look(time.monotonic())
    assert not first.look(time.monotonic() + LEASE_S), "it sees that it no longer leads"
    others[0].resign()
    assert others[1].look(time.monotonic()), "at once, not at the end of a lease"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_servers_on_one_registry_survive_the_kill_of_the_leader(
    postgres_database: str, tmp_path: Path
) -> None:
    """Both answer and take writes. After kill -9 of the leader the other one places flows."""
    env = {"PENSTOCK_REGISTRY_URL": postgres_database, "PENSTOCK_WORKER_LEASE_MS": "3000"}
    servers = [Product(tmp_path / name, options=("--workers", "0"), env=env) for name in ("one", "two")]
    registry = Registry.open(postgres_database)
    try:
        for server in servers:
            server.directory.mkdir()
            server.listen()
            wait_for("an answer", lambda server=server: server.client.get("/healthz").status_code == 200)
        first, second = servers
        for number, server in enumerate(servers):
            spec = {"source": {"type": "generate"}, "sinks": [{"type": "drop"}]}
            document = {
                "kind": "Pipeline",
                "metadata": {"name": f"p{number}"},
                "spec": spec,
                "status": "paused",
            }
            wait_for(
                "a write", lambda s=server, d=document: s.client.post("/pipelines", json=d).status_code == 201
            )
        for server in servers:
            assert [each["id"] for each in server.client.get("/pipelines").json()["items"]] == ["p0", "p1"]
        led = wait_for("a leader", lambda: leading(registry))
        assert first.process is not None
        first.process.kill()
        first.process.wait()
        flows = Flows(registry)
        flows.join("w", 1, "http://127.0.0.1:1", "token", 600.0, {})
        flows.aim(registry.get("Pipeline", "p0"), "active")
        wait_for("a worker for it", lambda: second.get("p0")["worker"] == "w")
        assert leading(registry) != led
        assert second.down() == 0
    finally:
        for server in servers:
            server.close()
        registry.close()


def leading(registry: Registry) -> str | None:
    """The server that leads."""
    with registry.engine.connect() as conn:
        return conn.scalar(select(leader.c.server))
