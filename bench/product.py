"""A separate Penstock for measurements through its API."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

TRIES = 5


@dataclass(frozen=True)
class Product:
    """A running `penstock up`."""

    client: httpx.Client
    url: str
    pid: int
    home: Path

    def create(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Save a document."""
        body = {"kind": kind, "metadata": {"name": name}, "spec": spec}
        answer = self.client.post(f"/{kind.lower()}s", json=body)
        if answer.is_error:
            raise SystemExit(f"{kind} {name}: {answer.text}")

    def next_offset(self, stream: str) -> int:
        """The number of events appended to a stream; retries while the broker does not respond."""
        for _ in range(TRIES):
            answer = self.client.get(f"/streams/{stream}/stats")
            if answer.status_code != 503:
                break
            print(f"stream {stream}: {answer.text}", file=sys.stderr)
        return int(answer.raise_for_status().json()["next"])

    def workers(self) -> list[int]:
        """The process ids of the workers that can run flows."""
        return [worker["pid"] for worker in self.client.get("/workers").json() if worker["state"] == "ready"]

    def cpu_s(self) -> float:
        """Processor time of the server process itself, without its workers."""
        return sum(psutil.Process(self.pid).cpu_times()[:2])


@contextlib.contextmanager
def product(home: Path, workers: int, env: Mapping[str, str] | None = None) -> Iterator[Product]:
    """Start Penstock with additional variables, wait until it is ready, and stop it at the end."""
    command = [sys.executable, "-m", "penstock.cli.main", "up", "--port", "0", "--home", str(home)]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        assert process.stdout is not None
        url = re.search(r"http://\S+", process.stdout.readline())
        assert url is not None
        with httpx.Client(base_url=url.group(), timeout=120, trust_env=False) as client:
            wanted = "/readyz" if workers else "/healthz"
            while client.get(wanted).status_code != 200:
                time.sleep(0.2)
            yield Product(client, url.group(), process.pid, home)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
