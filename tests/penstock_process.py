"""A Penstock of its own process without workers, as `penstock up` starts it, for tests of its limits."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    url: str
    process: psutil.Process
    client: httpx.Client

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def megabytes(self) -> float:
        """Its resident memory."""
        return float(self.process.memory_info().rss) / 1e6


@contextmanager
def penstock_up(home: Path, *, files: int | None = None, **settings: object) -> Iterator[Running]:
    """A server with settings such as `limits_followers=3`, and at most `files` descriptors."""
    variables = {f"PENSTOCK_{name.upper()}": str(value) for name, value in settings.items()}
    log = home.with_name(f"{home.name}.log")

    def limited() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli.main", "up", "--workers", "0", "--port", "0"],
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "300", "PENSTOCK_HOME": str(home), **variables},
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=home.parent,
            preexec_fn=limited,
        )
    try:
        url = _listening(process, log)
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            assert client.get("/clients").status_code == 200  # waits until all of the server is loaded
            yield Running(url, psutil.Process(process.pid), client)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert process.returncode == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def _listening(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"listens on (http://\S+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(log.read_text())
