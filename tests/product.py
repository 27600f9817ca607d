"""The whole product in real processes: `penstock up`, its workers, and a client."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.cli.commands import PATIENCE_S, Penstock, family_of, wait_for


@dataclass
class Product:
    """Penstock on a home directory; can be killed and started again."""

    directory: Path
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    client: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=PATIENCE_S))

    def __post_init__(self) -> None:
        self.runner = Penstock(self.directory)
        # The JVM for questions costs 15 seconds of processor time: only tests about it have one.
        # Tests share a product, and name files of their own directories, which are beside its home.
        self.runner.env |= {
            "PENSTOCK_QUESTIONS_PROCESS": "false",
            "PENSTOCK_POLICY_PATHS": str(self.directory.parent),
            **self.env,
        }

    def up(self) -> None:
        """Start and wait until it is ready."""
        self.listen()
        wait_for("a ready worker", lambda: self.client.get("/readyz").status_code == 200)

    def listen(self) -> str:
        """Start and wait until it listens, which is long before a worker is ready; its URL."""
        self.process = self.runner.start("up", "--port", "0", *self.options)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + (self.process.stderr.read() if self.process.stderr else "")
        self.client.base_url = httpx.URL(found.group())
        return found.group()

    def down(self) -> int:
        """Stop in order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode

    def kill_all(self) -> None:
        """Kill -9 of every process at once."""
        assert self.process is not None
        for member in family_of(self.process.pid):
            _kill(member.pid)
        self.process.wait()

    def kill_server(self) -> None:
        """Kill -9 of the server alone; its workers have to notice."""
        assert self.process is not None
        family = family_of(self.process.pid)[1:]
        _kill(self.process.pid)
        self.process.wait()
        psutil.wait_procs(family, timeout=PATIENCE_S)

    def kill_worker(self, number: int = 0) -> int:
        """Kill -9 of a worker's Python process."""
        pid = int(self.client.get("/workers").json()[number]["pid"])
        _kill(pid)
        return pid

    def kill_jvm(self) -> None:
        """Kill -9 of the JVM of a worker, as the kernel does when memory runs out."""
        worker = psutil.Process(int(self.client.get("/workers").json()[0]["pid"]))
        (jvm,) = [child for child in worker.children(recursive=True) if child.name() == "java"]
        _kill(jvm.pid)

    def get(self, name: str) -> dict[str, Any]:
        answer = self.client.get(f"/pipelines/{name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def create(self, document: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post("/pipelines", json=document)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def act(self, name: str, action: str) -> dict[str, Any]:
        answer = self.client.post(f"/pipelines/{name}/{action}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def wait_for_status(self, name: str, status: str, seconds: float = PATIENCE_S) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (info := self.get(name))["status"] != status and time.monotonic() < deadline:
            time.sleep(0.1)
        assert info["status"] == status, info
        return info

    def wait_for_batches(self, name: str, more: int = 1) -> int:
        """Wait until the pipeline has committed more batches than it has now."""
        before = int(self.get(name)["ops"].get("batches", 0))
        return int(
            wait_for(
                f"{more} more batches of {name}",
                lambda: (n := self.get(name)["ops"].get("batches", 0)) >= before + more and n,
            )
        )

    def close(self) -> None:
        self.client.close()
        self.runner.kill_everything()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
