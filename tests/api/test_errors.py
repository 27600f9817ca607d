from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import structlog
from sqlalchemy.exc import OperationalError

from penstock.control.documents.service import Service
from penstock.errors import Problem, Unavailable
from tests.api.kit import DAY_S, Api, codes, judging, pipeline, running, stream


@pytest.mark.parametrize("path", ["/nothing", "/pipelines/a/b/c", "/", "/streams/"])
def test_an_unknown_route(client: httpx.Client, path: str) -> None:
    refused = client.get(path)
    assert (refused.status_code, codes(refused)) == (404, ["not_found"])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/pipelines", "GET, POST"),
        ("POST", "/streams/orders", "GET, PUT, PATCH, DELETE"),
        ("GET", "/validate", "POST"),
        ("HEAD", "/healthz", "GET"),
    ],
)
def test_a_method_that_is_not_allowed(client: httpx.Client, method: str, path: str, allowed: str) -> None:
    refused = client.request(method, path)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert codes(refused) == ["method_not_allowed"]


def test_what_nobody_foresaw_has_an_id_and_no_trace(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(api.service, "get", fail)
    with structlog.testing.capture_logs() as logs:
        refused = api.client.get("/streams/orders")
    assert (refused.status_code, codes(refused)) == (500, ["internal_error"])
    assert "secret" not in refused.text
    assert logs[0]["id"] in refused.json()["message"]
    assert api.client.get("/streams").status_code == 200


def test_a_registry_that_does_not_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception("database is locked"))

    monkeypatch.setattr(api.service, "get", fail)
    refused = api.client.get("/streams/orders")
    assert (refused.status_code, codes(refused)) == (503, ["registry_down"])
    assert "retry-after" in refused.headers
    assert "secret" not in refused.text


def test_no_worker(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.control.documents.judge.WORKER_WAIT_S", 0.1)
    with running(service) as api:
        for path in ("/validate", "/pipelines", "/bundle"):
            refused = api.client.post(path, json=pipeline("orders", "active"))
            assert (refused.status_code, codes(refused)) == (503, ["no_worker"])
            assert int(refused.headers["retry-after"]) > 0


def test_a_worker_that_was_just_killed(service: Service) -> None:
    """Its lease lasts, nobody is there: the question goes to another one, or waits for it."""
    service.flows.join("gone", 1, "http://127.0.0.1:1", "token", DAY_S, {})
    with running(service) as api, ThreadPoolExecutor() as pool:
        answer = pool.submit(api.client.post, "/pipelines", json=pipeline("orders", "active"))
        time.sleep(0.2)
        assert not answer.done()
        with judging(service):
            assert answer.result().status_code == 201
            assert api.client.post("/validate", json=pipeline("bills")).status_code == 200


def test_health_is_answered_while_every_thread_waits(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, waiting = threading.Event(), threading.Semaphore(0)

    def wait(*_: object) -> None:
        waiting.release()
        go_on.wait(120)
        raise Unavailable(Problem(code="test", message="done"))

    monkeypatch.setattr(api.service, "get", wait)
    limits = httpx.Limits(max_connections=200)
    with httpx.Client(base_url=api.url, limits=limits, timeout=60, trust_env=False) as crowd:
        threads = [threading.Thread(target=crowd.get, args=("/streams/orders",)) for _ in range(120)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(100):  # as many as there are threads
                assert waiting.acquire(timeout=60)
            assert api.client.get("/healthz", timeout=60).json() == {"status": "ok"}
        finally:
            go_on.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:9999"},
    ],
)
def test_pages_of_other_sites_change_nothing(client: httpx.Client, headers: dict[str, str]) -> None:
    refused = client.post("/streams", json=stream("orders"), headers=headers)
    assert (refused.status_code, codes(refused)) == (403, ["foreign_origin"])
    assert client.get("/streams", headers=headers).json()["total"] == 0


def test_pages_of_this_server_do(api: Api) -> None:
    same = {"Origin": api.url, "Sec-Fetch-Site": "same-origin"}
    assert api.client.post("/streams", json=stream("a"), headers=same).status_code == 201
    assert api.client.post("/streams", json=stream("b"), headers={"Origin": api.url}).status_code == 201
