from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from penstock.api.app import create_app
from penstock.api.server import Server
from penstock.control.documents.service import Service
from penstock.errors import PenstockError

PROGRAM = """
import sys
from pathlib import Path
from penstock.api import server
from penstock.api.app import create_app
from penstock.control.registry import Registry
from penstock.control.documents.service import Service
from penstock.settings import load

server.GRACE_S = 100
loaded = load({"home": Path(sys.argv[1]), "port": 0}, env={}, cwd=Path(sys.argv[1]))
service = Service(loaded, Registry.open(loaded.settings.registry_url))
server.Server(create_app(service), loaded.settings, lambda url: print(url, flush=True)).run()
print("cleaned up", flush=True)
"""


def test_a_port_that_is_taken_is_named(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PenstockError) as caught:
            Server(create_app(service), service.settings.model_copy(update={"port": port}))
    (problem,) = caught.value.problems
    assert problem.code == "port_in_use"
    assert str(port) in problem.message
    assert "--port or PENSTOCK_PORT" in (problem.hint or "")


def test_a_host_that_does_not_exist_is_named(service: Service) -> None:
    with pytest.raises(PenstockError, match=r"nowhere\.invalid.*PENSTOCK_HOST"):
        Server(create_app(service), service.settings.model_copy(update={"host": "nowhere.invalid"}))


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("localhost", "localhost")]
)
def test_the_url_can_be_opened(service: Service, host: str, shown: str) -> None:
    server = Server(create_app(service), service.settings.model_copy(update={"host": host}))
    assert server.url.startswith(f"http://{shown}:")
    assert not server.url.endswith(":0")
    server._listener.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_and_in_order(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with httpx.stream("GET", f"{url}/events", timeout=60, trust_env=False) as watcher:
            assert next(watcher.iter_lines()) == ": connected"
            assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
            began = time.monotonic()
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        assert time.monotonic() - began < 60, "it waits for nobody"
        assert (process.returncode, out) == (0, "cleaned up\n")
        assert err == ""  # no access log, no complaint about who was still connected
    finally:
        process.kill()
        process.wait()
