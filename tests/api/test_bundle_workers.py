"""Bundles and workers: none is needed without flows to run, and a busy one is not called missing."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from penstock.control.documents.service import Service
from penstock.control.questions import rpc
from tests.api.kit import DAY_S, Api, codes, judging, open_service, pipeline, running, stream


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Api]:
    """A server that has no worker, and starts none."""
    with open_service(tmp_path, workers=0) as service, running(service) as found:  # type: ignore[arg-type]
        yield found


def test_no_worker_is_needed_for_what_has_nothing_to_analyse(alone: Api) -> None:
    sink = {"kind": "Sink", "metadata": {"name": "lake"}, "spec": {"type": "drop"}}
    documents = [stream("orders"), sink, pipeline("paused"), pipeline("stopped", "stopped")]
    saved = alone.client.post("/bundle", json={"documents": documents})
    assert saved.status_code == 200, saved.text
    assert alone.client.post("/streams", json=stream("more")).status_code == 201
    assert alone.client.post("/validate", json=[stream("orders"), sink]).json()["valid"] is True


def test_an_active_flow_needs_one(alone: Api) -> None:
    refused = alone.client.post("/bundle", json={"documents": [stream("x"), pipeline("runs", "active")]})
    assert (refused.status_code, codes(refused)) == (503, ["no_worker"])
    assert alone.client.get("/streams").json()["total"] == 0


def test_a_busy_worker_is_not_a_missing_one(alone: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone.service.rpc, "_patience_s", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as busy:  # takes the question, and does not answer
        url = f"http://127.0.0.1:{busy.getsockname()[1]}"
        alone.service.flows.join(str(uuid.uuid4()), 1, url, "token", DAY_S, {"version": "test"})
        refused = alone.client.post("/bundle", json={"documents": [pipeline("runs", "active")]})
    assert (refused.status_code, codes(refused)) == (503, ["worker_busy"])
    assert int(refused.headers["retry-after"]) == 30


def test_problems_name_the_document(alone: Api) -> None:
    broken = [stream("fine"), stream("orders", bad=1), pipeline("orders", sinks=3), {"kind": "Nothing"}]
    refused = alone.client.post(
        "/bundle", json={"documents": [*broken[:2], {**broken[2], "status": "active"}]}
    )
    told = [(problem["path"], problem["message"].partition(":")[0]) for problem in refused.json()["errors"]]
    assert told == [
        ("documents[1].spec.bad", "stream 'orders'"),
        ("documents[2].spec.sinks", "pipeline 'orders'"),
    ]


def test_a_document_without_a_name_is_told_by_its_number(alone: Api) -> None:
    refused = alone.client.post("/bundle", json={"documents": [stream("fine"), {"kind": "Nothing"}]})
    assert refused.json()["message"].startswith("document 2: ")


def test_the_progress_of_an_import_is_known_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, seen = threading.Event(), threading.Event(), []
    analyse = rpc.analyse

    def slow(raw: Any, *given: Any, **named: Any) -> Any:
        seen.append(raw)
        if len(seen) == 3:
            reached.set()
            assert go_on.wait(60)
        return analyse(raw, *given, **named)

    monkeypatch.setattr(rpc, "analyse", slow)
    documents = [stream("s"), *(pipeline(f"p{number}", "active") for number in range(4))]
    with open_service(tmp_path) as service, judging(service), running(service) as api:
        assert api.client.get("/bundle/progress/mine").json() is None
        answers: list[httpx.Response] = []
        order = {"url": "/bundle?id=mine", "json": {"documents": documents}}
        thread = threading.Thread(target=lambda: answers.append(api.client.post(**order)))  # type: ignore[arg-type]
        thread.start()
        assert reached.wait(60)
        assert api.client.get("/bundle/progress/mine").json() == {"checked": 3, "total": 5}
        again = api.client.post("/bundle?id=mine", json={"documents": []})
        assert (again.status_code, codes(again)) == (409, ["import_exists"])
        go_on.set()
        thread.join(60)
        assert answers[0].status_code == 200, answers[0].text
        assert api.client.get("/bundle/progress/mine").json() is None


@pytest.mark.slow
def test_many_pipelines_are_one_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    with open_service(tmp_path) as service, judging(service), running(service) as api:
        _count_questions(service, asked, monkeypatch)
        several = [pipeline(f"p{number}") for number in range(500)]
        several += [pipeline(f"a{number}", "active") for number in range(50)]
        saved = api.client.post("/bundle", json={"documents": several}, timeout=300)
        assert saved.status_code == 200, saved.text
    assert asked == [50]


def test_transactions_do_not_grow_with_a_bundle(tmp_path: Path) -> None:
    with open_service(tmp_path) as service, judging(service), running(service) as api:
        commits: list[int] = []
        event.listen(service.registry.engine, "commit", lambda _: commits.append(1))
        counts = []
        for size in (5, 50):
            several = [stream(f"s{size}-{number}") for number in range(size)]
            several += [pipeline(f"p{size}-{number}", "active") for number in range(size)]
            commits.clear()
            saved = api.client.post("/bundle", json={"documents": several})
            assert saved.status_code == 200, saved.text
            counts.append(len(commits))
            entries = api.client.get("/audit", params={"limit": 1000}).json()["entries"]
            assert sum(f"/{kind}{size}-" in each["target"] for each in entries for kind in "sp") == 2 * size
    assert counts[1] <= counts[0] + 5, "a heartbeat or two may come in between"


def test_what_has_not_changed_is_not_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[object] = []
    with open_service(tmp_path) as service, judging(service), running(service) as api:
        plan = service.rpc.plan
        monkeypatch.setattr(service.rpc, "plan", lambda *given: planned.append(given[1]) or plan(*given))
        several = [stream("s"), *(pipeline(f"p{number}") for number in range(5))]
        for expected in ("create", "unchanged"):
            changes = api.client.post("/bundle", json={"documents": several}).json()["changes"]
            assert {each["action"] for each in changes} == {expected}
        assert planned == []
        changed = pipeline("p3", sinks=[{"type": "drop", "id": "other"}])
        assert api.client.post("/bundle", json={"documents": [*several[:3], changed]}).status_code == 200
    assert [[raw["metadata"]["name"] for raw in documents] for documents in planned] == [["p3"]]  # type: ignore[attr-defined]


def _count_questions(service: Service, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    analyse = service.rpc.analyse

    def counted(*given: object, only: list[int], **named: object) -> object:
        asked.append(len(only))
        return analyse(*given, only=only, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(service.rpc, "analyse", counted)
