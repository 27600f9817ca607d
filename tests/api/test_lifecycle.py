"""The life of sources, tasks and sinks that run by themselves, without a worker that would run them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from penstock.control.registry import Record
from tests.api.kit import Api, codes, pipeline, stream
from tests.flows import assign

STEPS = [{"type": "filter", "where": "true"}]
RUN: dict[str, dict[str, Any]] = {
    "sources": {"type": "generate", "stream": "raw"},
    "tasks": {"processors": STEPS, "input": "raw", "outputs": [{"stream": "raw"}]},
    "sinks": {"type": "drop", "stream": "raw"},
}
DEFINED: dict[str, dict[str, Any]] = {
    "sources": {"type": "generate"},
    "tasks": {"processors": STEPS},
    "sinks": {"type": "drop"},
}
ACTIONS = ("pause", "resume", "stop", "start", "restart")

places = pytest.mark.parametrize("place", RUN)


def body(spec: dict[str, Any], status: str | None = None, name: str = "orders") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, **({"status": status} if status else {})}


@pytest.fixture(autouse=True)
def streams(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("SETTLE_S", "PROOF_S"):
        monkeypatch.setattr(
            f"penstock.control.documents.service.{patience}", 0.1
        )  # nothing that is started here runs
    assert client.post("/streams", json=stream("raw")).status_code == 201


@places
def test_what_runs_is_shown_with_its_flow(client: httpx.Client, place: str) -> None:
    created = client.post(f"/{place}", json=body(RUN[place], "paused")).json()
    assert (created["status"], created["phase"], created["worker"]) == ("paused", "idle", None)
    assert (created["error"], created["attempts"], created["ops"]["batches"]) == (None, [], 0)
    found = client.get(f"/{place}/orders").json()
    assert (found["kind"], found["referrers"], found["status"]) == (created["kind"], [], "paused")

    stopped = client.post(f"/{place}/orders/stop")
    assert (stopped.status_code, stopped.json()["status"]) == (200, "stopped"), stopped.text
    assert stopped.headers["etag"] == client.get(f"/{place}/orders").headers["etag"]
    refused = client.post(f"/{place}/orders/resume")
    assert (refused.status_code, codes(refused)) == (409, ["invalid_transition"])
    started = client.post(f"/{place}/orders/start").json()
    assert (started["status"], started["phase"]) == ("active", "waiting")

    progress = client.get(f"/{place}/orders/progress").json()
    assert (progress["name"], progress["status"], progress["input_events"]) == ("orders", "active", 0)
    assert client.get("/readyz").json()[place] == {"orders": "active"}
    assert client.delete(f"/{place}/orders").status_code == 204


def test_a_restart_starts_what_has_ended_and_leaves_what_is_paused(client: httpx.Client) -> None:
    client.post("/sinks", json=body(RUN["sinks"], "paused"))
    refused = client.post("/sinks/orders/restart")
    assert (refused.status_code, codes(refused)) == (409, ["invalid_transition"])
    assert refused.json()["hint"] == "use resume"
    client.post("/sinks/orders/stop")
    for _ in range(2):  # the second time it is active, and nobody runs it
        started = client.post("/sinks/orders/restart")
        assert (started.status_code, started.json()["phase"]) == (200, "waiting"), started.text


@places
def test_a_definition_has_no_status_and_cannot_be_started(client: httpx.Client, place: str) -> None:
    created = client.post(f"/{place}", json=body(DEFINED[place], "active"))
    assert created.status_code == 201, created.text
    info = created.json()
    assert {info[name] for name in ("status", "phase", "worker", "error", "ops")} == {None}
    assert info["attempts"] == []
    for action in ACTIONS:
        refused = client.post(f"/{place}/orders/{action}")
        assert (refused.status_code, codes(refused)) == (409, ["not_runnable"])
        assert ("spec.input" if place == "tasks" else "spec.stream") in refused.json()["hint"]
    assert codes(client.get(f"/{place}/orders/progress")) == ["not_runnable"]
    assert codes(client.post(f"/{place}/nobody/start")) == ["not_found"]


@places
def test_an_edit_makes_it_run_and_lets_it_be(client: httpx.Client, place: str) -> None:
    client.post(f"/{place}", json=body(DEFINED[place]))
    begun = client.put(f"/{place}/orders", json=body(RUN[place], "paused"))
    assert (begun.status_code, begun.json()["status"]) == (200, "paused"), begun.text
    ceased = client.put(f"/{place}/orders", json=body(DEFINED[place]))
    assert (ceased.status_code, ceased.json()["status"]) == (200, None), ceased.text
    again = client.post(f"/{place}/orders/rollback", json={"revision": 2}).json()
    assert (again["status"], again["phase"]) == ("active", "waiting")


@places
def test_a_list_can_be_filtered_and_sorted_by_status(client: httpx.Client, place: str) -> None:
    client.post(f"/{place}", json=body(DEFINED[place], name="a"))
    client.post(f"/{place}", json=body(RUN[place], "stopped", name="b"))
    client.post(f"/{place}", json=body(RUN[place], "paused", name="c"))

    def names(**query: str) -> list[str]:
        return [item["name"] for item in client.get(f"/{place}", params=query).json()["items"]]

    assert names(status="paused") == ["c"]
    assert names(status="active") == []
    assert sorted(names(sort="status")) == names() == ["a", "b", "c"]
    assert codes(client.get("/streams", params={"status": "active"})) == ["unknown_parameter"]


@places
def test_what_rests_may_be_invalid_and_a_definition_may_not(client: httpx.Client, place: str) -> None:
    kept = client.post(f"/{place}", json=body({**RUN[place], "batch": {"max_ms": -1}}, "paused"))
    assert kept.status_code == 201, kept.text
    assert kept.json()["error"]["path"] == "spec.batch.max_ms"
    assert codes(client.post(f"/{place}/orders/resume")) == ["invalid_value"]
    for refused in (
        client.post(f"/{place}", json=body({**DEFINED[place], "batch": {"max_ms": -1}}, "paused", "other")),
        client.post(f"/{place}", json=body({**RUN[place], "batch": {"max_ms": -1}}, name="other")),
        client.put(f"/{place}/orders", json=body({**DEFINED[place], "batch": {"max_ms": -1}})),
    ):
        assert (refused.status_code, codes(refused)) == (422, ["invalid_value"])


def test_a_source_has_its_stream_made(client: httpx.Client) -> None:
    spec = {"type": "generate", "auto_create_stream": True}
    created = client.post("/sources", json=body(spec, "paused", "Main shop"))
    assert (created.status_code, created.json()["status"]) == (201, "paused"), created.text
    made = client.get("/streams/main_shop").json()
    assert (made["name"], made["spec"]) == ("Main shop", {})
    assert [(r["kind"], r["path"]) for r in made["referrers"]] == [("Source", "spec.auto_create_stream")]
    refused = client.delete("/streams/main_shop")
    assert (refused.status_code, codes(refused)) == (409, ["referenced"])
    assert client.put("/sources/main_shop", json=body(spec, name="Main shop")).json()["revision"] == 1


def test_a_bundle_shows_the_stream_that_it_makes(client: httpx.Client) -> None:
    source = {"kind": "Source", **body({"type": "generate", "auto_create_stream": True}, "paused")}
    judged = client.post("/validate", json=source).json()
    assert (judged["valid"], len(judged["documents"])) == (True, 1)
    sink = {"kind": "Sink", **body({"type": "drop", "stream": "orders"}, "paused")}
    preview = client.post("/bundle?dry_run=true", json=[source]).json()["changes"]
    assert [(c["action"], c["kind"]) for c in preview] == [("create", "Source"), ("create", "Stream")]
    assert client.get("/streams/orders").status_code == 404
    assert client.post("/bundle", json=[source]).status_code == 200
    assert client.get("/streams/orders").status_code == 200
    assert client.post("/bundle", json=[sink]).status_code == 200


def held(api: Api, kind: str) -> Record:
    """A document that a worker has taken."""
    service = api.service
    record = service.get(kind, "orders")
    assert assign(service.flows, record.uid, service.workers()[0].id)
    return record


def test_what_cannot_be_deleted_is_not_stopped(api: Api) -> None:
    api.client.post("/sinks", json=body(RUN["sinks"]))
    api.client.post("/pipelines", json=pipeline("p", sinks=[{"ref": "orders"}]))
    found = api.client.get("/sinks/orders").json()
    assert [referrer["name"] for referrer in found["referrers"]] == ["p"]
    held(api, "Sink")
    assert codes(api.client.delete("/sinks/orders")) == ["referenced"]
    assert api.client.get("/sinks/orders").json()["status"] == "active"


def test_what_ceases_to_run_is_stopped_first(api: Api) -> None:
    api.client.post("/sinks", json=body(RUN["sinks"]))
    held(api, "Sink")
    last = api.service.registry.last_event_id()
    renamed = api.client.put("/sinks/orders", json=body(DEFINED["sinks"], name="other"))
    assert codes(renamed) == ["id_changed"]
    assert api.client.get("/sinks/orders").json()["status"] == "active", "a refused edit stops nothing"

    assert api.client.put("/sinks/orders", json=body(DEFINED["sinks"])).json()["status"] is None
    events = api.service.registry.events_after(last)
    assert [(e.kind, e.type) for e in events] == [("Sink", "status"), ("Sink", "updated")]
    assert events[0].data["status"] == "stopped"


def test_a_reader_says_where_it_begins(client: httpx.Client) -> None:
    refused = client.post("/sinks", json=body({**RUN["sinks"], "position": "newest"}))
    assert (refused.status_code, refused.json()["path"]) == (422, "spec.position")
    assert client.post("/sinks", json=body({**RUN["sinks"], "position": "latest"}, "paused")).is_success
