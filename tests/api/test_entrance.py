"""The server while the API is still being loaded."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from penstock.api.app import create_app
from penstock.api.entrance import Entrance
from penstock.api.server import Server
from penstock.control.documents.service import Service
from tests.api.kit import judging, stream

HELD_S = 0.5
"""A request that is not answered by then is held."""


@dataclass
class Early:
    """A server that has no API yet."""

    entrance: Entrance
    server: Server
    client: httpx.Client


@contextmanager
def serving(service: Service, ui: Path) -> Iterator[Early]:
    ready = threading.Event()
    entrance = Entrance(ui)
    server = Server(entrance, service.settings, lambda _: ready.set())
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(60)
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
            yield Early(entrance, server, client)
    finally:
        server.stop()
        thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def early(service: Service, tmp_path: Path) -> Iterator[Early]:
    ui = tmp_path / "ui"
    (ui / "assets").mkdir(parents=True)
    (ui / "index.html").write_text("<title>Penstock</title>")
    (ui / "assets" / "app.js").write_text("start()")
    with serving(service, ui) as found:
        yield found


def test_the_page_and_the_probe_answer_before_the_api(early: Early) -> None:
    assert early.client.get("/healthz").json() == {"status": "ok"}
    for path in ("/ui", "/ui/", "/ui/pipelines/orders"):
        page = early.client.get(path)
        assert (page.status_code, page.text) == (200, "<title>Penstock</title>")
        assert "Content-Security-Policy" in page.headers
        assert page.headers["Cache-Control"] == "no-cache"
    script = early.client.get("/ui/assets/app.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in script.headers["Cache-Control"]
    home = early.client.get("/", headers={"Accept": "text/html"})
    assert (home.status_code, home.headers["Location"]) == (307, "/ui/")


def test_requests_to_the_api_wait_for_it(early: Early, service: Service) -> None:
    with ThreadPoolExecutor() as threads, judging(service):
        sent = threads.submit(early.client.post, "/streams", json=stream("raw"))
        with pytest.raises(TimeoutError):
            sent.result(HELD_S)
        early.entrance.open(create_app(service))
        assert sent.result(60).status_code == 201
        assert early.client.get("/streams/raw").json()["name"] == "raw"
        assert early.client.get("/overview").status_code == 200, "its lifespan has begun"


def test_an_end_lets_nobody_wait(early: Early) -> None:
    with ThreadPoolExecutor() as threads:
        sent = threads.submit(early.client.get, "/streams")
        with pytest.raises(TimeoutError):
            sent.result(HELD_S)
        early.server.stop()
        answer = sent.result(4)
    assert (answer.status_code, answer.json()["code"]) == (503, "shutting_down")
    assert answer.json()["errors"][0]["code"] == "shutting_down"


def test_listening_needs_none_of_the_heavy_modules() -> None:
    heavy = ["pyspark", "pyarrow", "pandas", "numpy", "polars", "sqlalchemy", "alembic", "fastapi", "sqlglot"]
    script = (
        "import sys, penstock.cli.up, penstock.api.server, penstock.control.fleet.processes\n"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    command = [sys.executable, "-c", script, *heavy]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "[]\n"
