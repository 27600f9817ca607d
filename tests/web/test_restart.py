"""A page while the server starts, and while it is gone: it says so, and goes on by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.cli.commands import PATIENCE_S, wait_for
from tests.product import Product
from tests.servers import free_port
from tests.web.kit import axe

pytestmark = pytest.mark.slow

STREAM = {"kind": "Stream", "metadata": {"name": "late one"}, "spec": {}}


def test_a_page_outlives_a_killed_server(browser: Browser, built: None, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = serve(tmp_path, port, url)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    try:
        page.goto(f"{url}/ui/streams")
        expect(page.get_by_role("heading", level=1)).to_have_text("Streams")
        server.kill()
        server.wait()
        expect(page.get_by_text("The server isn't responding")).to_be_visible()
        server = serve(tmp_path, port, url)
        expect(page.get_by_text("The server isn't responding")).to_have_count(0, timeout=60_000)
        made = httpx.post(f"{url}/streams", json=STREAM, trust_env=False, timeout=PATIENCE_S)
        assert made.status_code == 201, made.text
        expect(page.get_by_text("late_one").first).to_be_visible()
    finally:
        page.close()
        server.kill()
        server.wait()


def java_behind_a_gate(directory: Path) -> tuple[Path, Path]:
    """A home of Java that starts once a file exists, and that file."""
    home, gate = directory / "java", directory / "gate"
    (home / "bin").mkdir(parents=True)
    given = os.environ.get("JAVA_HOME")
    java = f"{given}/bin/java" if given else shutil.which("java")
    wait = f'[ "$1" = -version ] || while [ ! -e {gate} ]; do sleep 0.1; done'
    (home / "bin" / "java").write_text(f'#!/bin/sh\n{wait}\nexec {java} "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    return home, gate


def test_a_page_shows_the_start_and_then_the_demo_runs(browser: Browser, built: None, tmp_path: Path) -> None:
    java, gate = java_behind_a_gate(tmp_path)
    env = {"JAVA_HOME": str(java), "PENSTOCK_CLASS_ARCHIVE": "false"}
    product = Product(tmp_path, ("--demo",), env)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    try:
        url = product.listen()
        page.goto(f"{url}/ui/pipelines")
        banner = page.get_by_role("status").filter(has_text="Penstock is starting")
        expect(banner.get_by_label("Server ready: done")).to_be_visible()
        expect(
            banner.get_by_label(re.compile("^(Starting Spark|Connecting).*: in progress$"))
        ).to_be_visible()
        expect(page.get_by_text("demo_orders").first).to_be_visible()
        axe(page)
        assert product.client.get("/readyz").status_code == 503, "all of this needs no worker"

        gate.touch()
        expect(banner).to_have_count(0, timeout=PATIENCE_S * 1000)
        wait_for("the demo", lambda: product.get("demo_visits")["status"] == "completed")
        wait_for("events", lambda: product.get("demo_orders")["ops"].get("input_events"))
        wait_for("the errors", lambda: product.get("demo_broken")["error"])
        broken = product.get("demo_broken")
        assert (broken["status"], broken["revision"]) == ("paused", 1)
        assert "amuont" in broken["error"]["message"]
        assert product.get("demo_visits")["revision"] == 1, "its schema is declared, so none was inferred"
        for stream in ("demo_slow_clicks", "demo_page_views"):
            wait_for(f"events in {stream}", lambda: stats(product, stream)["events"])  # noqa: B023
        wait_for("letters", lambda: stats(product, "demo_orders.dead")["events"] == 10)

        page.goto(f"{url}/ui/")
        page.get_by_role("button", name="Take the tour").click()
        tour = page.get_by_role("region", name="Tour")
        for step in range(1, 5):
            expect(tour).to_contain_text(f"Step {step} of 5")
            tour.get_by_role("button", name="Next").click()
            if step == 2:
                expect(page.get_by_role("row").filter(has_text="CAST").first).to_be_visible()
            axe(page)
        expect(page.get_by_role("button", name=re.compile("^CSV → Parquet"))).to_be_visible()
        tour.get_by_role("button", name="Done").click()
        expect(tour).to_have_count(0)
    finally:
        page.close()
        product.close()


def stats(product: Product, stream: str) -> dict[str, Any]:
    found = product.client.get(f"/streams/{stream}/stats")
    return found.json() if found.status_code == 200 else {"events": 0}


def test_a_page_says_why_no_worker_starts(browser: Browser, built: None, tmp_path: Path) -> None:
    product = Product(tmp_path, env={"PENSTOCK_SPARK_MASTER": "nowhere"})
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    try:
        page.goto(f"{product.listen()}/ui/")
        failed = page.get_by_role("alert").filter(has_text="The worker failed to start")
        expect(failed).to_contain_text("error[spark_failed]", timeout=PATIENCE_S * 1000)
        expect(failed).to_contain_text("worker-1.log")
        axe(page)
        (problem,) = product.client.get("/readyz").json()["problems"]
        assert problem["code"] == "worker_failed"
        assert "error[spark_failed]" in problem["message"]
    finally:
        page.close()
        product.close()


def serve(home: Path, port: int, url: str) -> subprocess.Popen[bytes]:
    """A server without workers that answers."""
    options = ["up", "--workers", "0", "--home", str(home), "--port", str(port)]
    command = [sys.executable, "-m", "penstock.cli.main", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("the server", lambda: _answers(url))
    return process


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False, timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False
