"""The processes of the hand-written contender of `bench.latency`."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from bench.processes import family


@dataclass(frozen=True)
class Twin:
    """An HTTP server that appends to one file, and a query that copies the events to another file."""

    server: psutil.Process
    query: psutil.Process
    url: str
    target: Path
    progress: Path
    """The file to which the query writes the stages of some micro-batches."""

    def stages(self) -> dict[str, list[float]]:
        """Milliseconds of some micro-batches, by stage."""
        found: dict[str, list[float]] = defaultdict(list)
        for line in self.progress.read_text().splitlines():
            for stage, took in json.loads(line).items():
                found[stage].append(took)
        return found

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        """Let the query run. Otherwise it is suspended, since it polls 100 times per second."""
        self._halt(False)
        try:
            yield
        finally:
            self._halt(True)

    def _halt(self, halted: bool) -> None:
        for member in family(self.query):
            with contextlib.suppress(psutil.Error):  # a Python worker may just have ended
                member.suspend() if halted else member.resume()


@contextlib.contextmanager
def twin(work: Path) -> Iterator[Twin]:
    """Start both processes, wait until the first event has arrived, and kill them at the end."""
    work.mkdir()
    source, target = work / "in", work / "out"
    source.touch()
    target.touch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    server = _job("http_append", str(source), str(port))
    progress = work / "progress"
    query = _job("pyspark_latency", str(source), str(target), str(work / "checkpoint"), str(progress))
    found = Twin(psutil.Process(server.pid), psutil.Process(query.pid), url, target, progress)
    try:
        while not target.stat().st_size:
            if query.poll() is not None or server.poll() is not None:
                raise SystemExit("the hand-written query has ended")
            with contextlib.suppress(httpx.TransportError):  # until the server listens
                httpx.post(url, content=b'{"sent": 0.0}', trust_env=False)
            time.sleep(0.5)
        found._halt(True)
        yield found
    finally:
        for process in (*family(found.query), *family(found.server)):
            with contextlib.suppress(psutil.Error):
                process.kill()
        query.wait()
        server.wait()


def _job(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", f"bench.jobs.{name}", *arguments], stdout=nothing, stderr=nothing
    )
