"""Bundles and workers: none is needed without flows to run, and a busy one is not called missing."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.documents.service import Service
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


def _count_questions(service: Service, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    analyse = service.rpc.analyse

    def counted(*given: object, only: list[int], **named: object) -> object:
        asked.append(len(only))
        return analyse(*given, only=only, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(service.rpc, "analyse", counted)
