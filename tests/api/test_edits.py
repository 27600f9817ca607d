"""Edits of flows that have begun: told before, and refused while they would lose something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.documents import service as service_module
from penstock.streams.storage import Cursor
from tests.api.kit import Api, begun, codes, pipeline, stream
from tests.cli.commands import wait_for

SCHEMA = "id BIGINT, at TIMESTAMP"


def window(size: str = "1m", **more: Any) -> dict[str, Any]:
    return {"id": "w", "type": "window", "time": "at", "size": size, "aggregates": {"n": "count(*)"}, **more}


def files(path: str) -> dict[str, Any]:
    return {"type": "file", "path": path, "format": "json", "schema": "id BIGINT"}


def effects(plan: dict[str, Any]) -> dict[str, str]:
    return {step["id"]: step["effect"] for step in plan["steps"] if step["part"] != "policy"}


@pytest.fixture
def orders(api: Api) -> httpx.Client:
    """A pipeline over a stream of two events, the first of which it has read."""
    client = api.client
    client.post("/streams", json=stream("raw", schema=SCHEMA))
    events = [{"id": 1, "at": "2026-01-01T00:00:00Z"}, {"id": 2, "at": "2026-01-01T00:00:01Z"}]
    assert client.post("/streams/raw/events", json=events).status_code == 200
    steps = [window(), {"id": "f", "type": "filter", "where": "n > 1"}]
    source = {"type": "stream", "stream": "raw"}
    created = client.post("/pipelines", json=pipeline("orders", source=source, processors=steps))
    assert created.status_code == 201, created.text
    api.service.streams.log("raw").move_cursor(Cursor(begun(api.service, "orders"), 1))
    return client


def test_what_has_not_begun_has_nothing_to_lose(client: httpx.Client) -> None:
    client.post("/pipelines", json=pipeline("orders", source=files("in")))
    plan = client.post("/pipelines/orders/plan", json={"source": {"path": "other"}}).json()
    assert (plan["resets"], plan["valid"], plan["errors"]) == (False, True, [])
    assert effects(plan) == {"source": "restarts", "drop": "keeps"}
    assert [(c["path"], c["before"], c["after"]) for c in plan["changes"]] == [
        ("spec.source.path", "in", "other")
    ]
    assert client.get("/pipelines/orders").json()["revision"] == 1, "nothing has changed"
    assert client.patch("/pipelines/orders", json={"source": {"path": "other"}}).status_code == 200


def test_another_source_has_to_be_accepted(api: Api) -> None:
    client = api.client
    client.post("/pipelines", json=pipeline("orders", source=files("in")))
    begun(api.service, "orders")
    moved = pipeline("orders", source=files("other"))
    plan = client.post("/pipelines/orders/plan", json=moved).json()
    (source,) = [step for step in plan["steps"] if step["effect"] == "resets"]
    assert (source["id"], source["path"], source["from"]) == ("source", "spec.source", "earliest")
    for refused in (
        client.put("/pipelines/orders", json=moved),
        client.patch("/pipelines/orders", json={"source": {"path": "other"}}),
        client.post("/bundle", json=[moved]),
    ):
        assert (refused.status_code, codes(refused)) == (409, ["would_reset"])
        assert "accept_reset" in refused.json()["hint"]
    assert client.put("/pipelines/orders?accept_reset=true", json=moved).status_code == 200
    back = client.post("/pipelines/orders/rollback", json={"revision": 1})
    assert back.status_code == 200, "where it was before it goes on"
    assert client.post("/bundle?accept_reset=true", json=[moved]).status_code == 200


def test_steps_that_remember_nothing_can_change_at_any_time(orders: httpx.Client) -> None:
    steps = [{"id": "more", "type": "filter", "where": "id > 0"}, window(allowed_lateness="5s")]
    plan = orders.post("/pipelines/orders/plan", json={"processors": steps}).json()
    assert effects(plan) == {
        "source": "keeps",
        "more": "restarts",
        "w": "restarts",
        "f": "restarts",
        "drop": "keeps",
    }
    assert not plan["resets"]
    assert orders.patch("/pipelines/orders", json={"processors": steps}).status_code == 200


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([window("2m")], {"source": "restarts", "w": "resets", "f": "restarts", "drop": "keeps"}),
        ([], {"source": "restarts", "w": "resets", "f": "restarts", "drop": "keeps"}),
        (
            [window(), {**window("1h", keys=["n"], time="window_end"), "id": "v"}],
            {"source": "restarts", "w": "resets", "v": "restarts", "f": "restarts", "drop": "keeps"},
        ),
    ],
)
def test_what_steps_remember_is_not_lost_by_accident(
    orders: httpx.Client, steps: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    plan = orders.post("/pipelines/orders/plan", json={"processors": steps}).json()
    assert effects(plan) == expected
    assert "offset:1" in plan["steps"][0]["why"], "the place in the stream is kept"
    (lost,) = [step for step in plan["steps"] if step["effect"] == "resets"]
    assert lost["from"].startswith("time:"), "what was open is not older"
    refused = orders.patch("/pipelines/orders", json={"processors": steps})
    assert (refused.status_code, codes(refused)) == (409, ["would_reset"])
    accepted = orders.patch("/pipelines/orders?accept_reset=true", json={"processors": steps})
    assert accepted.status_code == 200, accepted.text


def test_a_reset_can_begin_anywhere(orders: httpx.Client, api: Api) -> None:
    def cursor() -> int:
        return api.service.streams.log("raw").storage.cursors()[0].next

    def change(query: str, size: str) -> httpx.Response:
        return orders.patch(f"/pipelines/orders?{query}", json={"processors": [window(size)]})

    assert codes(change("from=earliest", "2m")) == ["would_reset"]
    assert codes(change("accept_reset=true&from=soon", "2m")) == ["invalid_parameter"]
    assert codes(change("accept_reset=true&from=latest", "1m")) == ["no_reset"]
    assert cursor() == 1
    assert change("accept_reset=true&from=earliest", "2m").status_code == 200
    assert cursor() == 0


def test_a_shared_document_tells_of_those_that_refer_to_it(api: Api) -> None:
    client = api.client
    client.post("/sources", json={"metadata": {"name": "inbox"}, "spec": files("in")})
    client.post("/pipelines", json=pipeline("orders", source={"ref": "inbox"}))
    begun(api.service, "orders")
    plan = client.post("/sources/inbox/plan", json={"path": "other"}).json()
    assert (plan["steps"], plan["resets"]) == ([], True)
    (dependent,) = plan["dependents"]
    assert (dependent["kind"], dependent["name"], dependent["resets"]) == ("Pipeline", "orders", True)
    refused = client.patch("/sources/inbox", json={"path": "other"})
    assert (refused.status_code, codes(refused)) == (409, ["would_reset"])
    assert "pipeline 'orders'" in refused.json()["message"]
    assert client.patch("/sources/inbox?accept_reset=true", json={"path": "other"}).status_code == 200


def test_an_edit_through_something_invalid_is_compared_with_what_ran(orders: httpx.Client) -> None:
    broken = orders.patch("/pipelines/orders", json={"processors": [{"type": "nonsense"}]})
    assert broken.status_code == 200, "it rests"
    refused = orders.patch("/pipelines/orders", json={"processors": [window("2m")]})
    assert codes(refused) == ["would_reset"]
    assert orders.patch("/pipelines/orders", json={"processors": [window()]}).status_code == 200


def test_a_plan_tells_what_is_wrong(orders: httpx.Client) -> None:
    plan = orders.post("/pipelines/orders/plan", json={"processors": [{"type": "nonsense"}]}).json()
    assert (plan["valid"], plan["steps"], plan["resets"]) == (False, [], False)
    assert [problem["path"] for problem in plan["errors"]] == ["spec.processors[0].type"]
    assert codes(orders.post("/pipelines/nobody/plan", json={})) == ["not_found"]


def test_tasks_are_planned_too(orders: httpx.Client, api: Api) -> None:
    orders.post("/streams", json=stream("other", schema=SCHEMA))
    spec = {
        "input": "raw",
        "processors": [{"type": "filter", "where": "true"}],
        "outputs": [{"stream": "raw"}],
    }
    created = orders.post("/tasks", json={"metadata": {"name": "t"}, "spec": spec, "status": "paused"})
    assert created.status_code == 201, created.text
    begun(api.service, "t", "Task")
    plan = orders.post("/tasks/t/plan", json={"input": "other"}).json()
    assert (effects(plan)["source"], plan["resets"]) == ("resets", True)
    assert codes(orders.patch("/tasks/t", json={"input": "other"})) == ["would_reset"]


@pytest.mark.slow
def test_an_edit_answers_before_it_has_shown_that_it_runs(
    live: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """202 with where to look; what does not start is rolled back later, and the command line follows it."""
    monkeypatch.setattr(service_module, "PROOF_S", 0.0)
    client, place = live.client, "/pipelines/Slow%20one"

    def now() -> dict[str, Any]:
        return dict(client.get(place).json())

    def penstock(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments, "--server", live.url])

    def apply(file: str, **spec: Any) -> Any:
        path = tmp_path / file
        path.write_text(yaml.safe_dump(pipeline("Slow one", "active", **spec)))
        return penstock("apply", str(path))

    client.post("/pipelines", json=pipeline("Slow one", "active")).raise_for_status()
    wait_for("it to run", lambda: now()["running_revision"] == 1)

    saved = client.patch(place, json={"batch": {"max_ms": 10}})
    assert (saved.status_code, saved.headers["location"]) == (202, place)
    assert saved.headers["etag"] == client.get(place).headers["etag"]
    assert (saved.json()["revision"], saved.json()["running_revision"]) == (2, 1)
    assert [each["code"] for each in saved.json()["warnings"]] == ["unproven"]
    wait_for("its proof", lambda: now()["running_revision"] == 2)
    assert client.patch(place, json={"batch": {"max_ms": 10}}).status_code == 200, "nothing is new"

    (tmp_path / "file").write_text("in the way")
    sink = {"type": "file", "path": str(tmp_path / "file"), "format": "json", "retries": 0}
    assert client.patch(place, json={"sinks": [sink]}).status_code == 202
    wait_for("the way back", lambda: now()["revision"] == 4)
    back = now()
    assert (back["error"]["code"], back["error"]["path"]) == ("rolled_back", "spec.sinks[0]")
    assert back["error"]["message"].startswith("revision 3 did not start; rolled back to revision 2")
    assert back["spec"]["sinks"] == [{"type": "drop"}]
    (newest, *_) = client.get(f"{place}/revisions").json()
    assert newest["origin"] == "rollback to 2: 3 did not start"
    wait_for("it to run", lambda: now()["running_revision"] == 4)
    told = [e.data for e in live.service.registry.events_after(0) if e.type == "status"]
    assert any((data.get("error") or {}).get("code") == "rolled_back" for data in told)

    good = apply("good.yaml", batch={"max_ms": 20})
    assert (good.exit_code, now()["running_revision"]) == (0, 5), good.output
    assert "waiting for 1 new revision to start" in good.stderr
    assert "updated" in good.stdout
    assert "unproven" not in good.output
    bad = apply("bad.yaml", sinks=[sink])
    assert (bad.exit_code, now()["revision"]) == (1, 7), bad.output
    assert "rolled_back" in bad.output
    older = penstock("rollback", "Slow one", "1")
    assert (older.exit_code, now()["running_revision"]) == (0, 8), older.output


def test_a_plan_tells_which_guarantee_gets_weaker(client: httpx.Client) -> None:
    assert client.post("/streams", json=stream("durable", wal={"sync": True})).status_code == 201
    plan = client.post("/streams/durable/plan", json={"wal": {"enabled": False}}).json()
    found = [(each["code"], each["path"]) for each in plan["warnings"]]
    assert found == [("no_effect", "spec.wal.sync"), ("weaker_guarantee", "spec.wal.enabled")]
    harmless = client.post("/streams/durable/plan", json={"wal": {"compression": "zstd"}})
    assert harmless.json()["warnings"] == []
