"""A page outlives the server: it says that it is gone, and goes on when it is back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.cli.commands import PATIENCE_S, wait_for
from tests.servers import free_port

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
        expect(page.get_by_text("The server does not answer")).to_be_visible()
        server = serve(tmp_path, port, url)
        expect(page.get_by_text("The server does not answer")).to_have_count(0, timeout=60_000)
        made = httpx.post(f"{url}/streams", json=STREAM, trust_env=False, timeout=PATIENCE_S)
        assert made.status_code == 201, made.text
        expect(page.get_by_text("late_one").first).to_be_visible()
    finally:
        page.close()
        server.kill()
        server.wait()


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
