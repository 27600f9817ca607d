"""The history of metrics outlives the process of the server."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.commands import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow


def test_charts_go_on_after_a_restart(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_S) as client:
        server = serve(tmp_path, port, client)
        client.post("/streams", json={"metadata": {"name": "raw"}, "spec": {}}).raise_for_status()
        client.post("/streams/raw/events", json={"id": 1}).raise_for_status()
        wait_for("a sample", lambda: 1 in history(client, "/streams/raw/history")["series"].get("events", []))
        before = history(client, "/streams/raw/history")
        end(server)
        server = serve(tmp_path, port, client)
        try:
            wait_for("a new sample", lambda: history(client, "/history")["at"][-1] > before["at"][-1])
            after = history(client, "/streams/raw/history")
            assert set(before["at"]) <= set(after["at"])
            at = dict(zip(after["at"], after["series"]["events"], strict=True))
            assert [at[each] for each in before["at"]] == before["series"]["events"]
            assert set(before["at"]) <= set(history(client, "/history?minutes=1440")["at"])
        finally:
            end(server)


def history(client: httpx.Client, path: str) -> dict[str, Any]:
    return dict(client.get(path).raise_for_status().json())


def serve(home: Path, port: int, client: httpx.Client) -> subprocess.Popen[bytes]:
    """A server without workers that answers."""
    options = ["up", "--workers", "0", "--home", str(home), "--port", str(port)]
    command = [sys.executable, "-m", "penstock.cli.main", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("the server", lambda: answers(client))
    return process


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    assert server.wait(PATIENCE_S) is not None
