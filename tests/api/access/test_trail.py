"""The audit trail of changes over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.kit import Api, judging, open_service, pipeline, running, stream


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp("trail")
    with open_service(home) as service, judging(service), running(service) as found:
        yield found


def entries(server: Api, **filters: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.client.get("/audit", params=filters).json()["entries"]
    return found


def test_changes_of_documents_are_there_before_and_after(server: Api) -> None:
    sink = {
        "type": "http",
        "url": "http://ann:opensesame@127.0.0.1/x",
        "headers": {"Authorization": "Bearer t0p"},
    }
    body = pipeline("orders", sinks=[sink])
    assert server.client.post("/pipelines", json=body).status_code == 201
    changed = server.client.patch("/pipelines/orders", json={"metadata": {"description": "new"}})
    assert changed.status_code == 200
    assert server.client.post("/pipelines/orders/stop").status_code == 200
    assert server.client.put("/pipelines/orders", content=b"{").status_code == 400
    assert server.client.delete("/pipelines/orders").status_code == 204
    found = entries(server, target="pipeline/orders")
    assert [(entry["action"], entry["status"]) for entry in found] == [
        ("pipeline.delete", 204),
        ("pipeline.update", 400),
        ("flow.stop", 200),
        ("pipeline.update", 200),
        ("pipeline.create", 201),
    ]
    deleted, failed, stopped, updated, created = found
    assert (created["before"], created["after"]["kind"]) == (None, "Pipeline")
    assert "description" not in updated["before"]["metadata"]
    assert updated["after"]["metadata"]["description"] == "new"
    assert (stopped["before"], stopped["after"]) == ({"status": "paused"}, {"status": "stopped"})
    assert (failed["after"], deleted["after"]) == (None, None)
    assert {(entry["user"], entry["via"], entry["address"]) for entry in found} == {
        ("local", "local", "127.0.0.1")
    }
    assert "opensesame" not in str(found)
    assert "t0p" not in str(found)


def test_a_bundle_has_an_entry_for_each_document(server: Api) -> None:
    bundle = {"kind": "Bundle", "documents": [stream("a"), stream("b")]}
    assert server.client.post("/bundle", json=bundle).status_code == 200
    found = entries(server)[:3]
    assert {entry["action"] for entry in found} == {"bundle.import", "stream.create"}
    assert {entry["target"] for entry in found} == {"bundle", "stream/a", "stream/b"}


def test_it_is_read_page_by_page(server: Api) -> None:
    for name in ("one", "two", "three"):
        server.client.post("/tokens", json={"name": name, "role": "viewer"})
    first = server.client.get("/audit", params={"action": "token.create", "limit": 2}).json()
    rest = server.client.get(
        "/audit", params={"action": "token.create", "limit": 2, "before": first["next"]}
    ).json()
    names = [entry["after"]["name"] for page in (first, rest) for entry in page["entries"]]
    assert names == ["three", "two", "one"]
    assert rest["next"] is None


def test_queries_and_events_are_not_in_it(server: Api, tmp_path: Path) -> None:
    before = entries(server)
    server.client.post("/ingest/nothing", json={})
    server.client.post("/validate", json=stream("x"))
    assert entries(server) == before
