"""The worker processes of `penstock up`: started, watched, replaced and stopped."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import structlog

from penstock.control.flows import Flows
from penstock.settings import Settings

log = structlog.get_logger()

WATCH_S = 0.2
SHORT_LIFE_S, LONGEST_PAUSE_S = 20.0, 30.0


@dataclass
class _Child:
    number: int
    process: subprocess.Popen[bytes]
    started: float
    failures: int = 0
    next_start: float = 0.0


class WorkerProcesses:
    """Keeps `settings.workers` workers alive on this machine.

    A worker's standard input is a pipe from here: when this process dies, however it dies, the pipe
    closes and the worker ends in order.
    """

    def __init__(self, settings: Settings, flows: Flows, arguments: list[str]) -> None:
        self.settings, self.flows, self.arguments = settings, flows, arguments
        self._children: list[_Child] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="workers", daemon=True)

    def start(self) -> None:
        """Start every worker."""
        for number in range(1, self.settings.workers + 1):
            self._children.append(_Child(number, self._spawn(number), time.monotonic()))
        self._thread.start()

    def stop(self) -> None:
        """End every worker in order, and wait for it."""
        self._stop.set()
        self._thread.join()
        for child in self._children:
            _close(child.process.stdin)
        deadline = time.monotonic() + self.settings.worker.drain_ms / 1000 + 15
        for child in self._children:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("worker did not end in time", pid=child.process.pid)
                child.process.kill()
                child.process.wait()
                self._gone(child.process.pid)

    def log_path(self, number: int) -> Path:
        """Where a worker's output goes."""
        return self.settings.home / "logs" / f"worker-{number}.log"

    def _spawn(self, number: int) -> subprocess.Popen[bytes]:
        path = self.log_path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "penstock.cli.main", "worker", "--leash", *self.arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal is for this process, which then ends the workers in order.
                start_new_session=True,
                # Documents may say ${PENSTOCK_HOME}, wherever the home was set.
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PENSTOCK_HOME": str(self.settings.home)},
            )

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_S):
            for child in self._children:
                if child.next_start:
                    if time.monotonic() >= child.next_start:
                        child.process, child.started = self._spawn(child.number), time.monotonic()
                        child.next_start = 0.0
                elif child.process.poll() is not None:
                    self._died(child)

    def _died(self, child: _Child) -> None:
        lived = time.monotonic() - child.started
        child.failures = child.failures + 1 if lived < SHORT_LIFE_S else 0
        pause = min(0.5 * 2.0**child.failures, LONGEST_PAUSE_S) if child.failures else 0.0
        log.warning("worker ended", pid=child.process.pid, code=child.process.returncode, again_in_s=pause)
        _close(child.process.stdin)
        self._gone(child.process.pid)
        child.next_start = time.monotonic() + pause

    def _gone(self, pid: int) -> None:
        """Free the flows of a worker that has surely ended, without waiting for its lease."""
        try:
            for worker in self.flows.workers():
                if worker.pid == pid and worker.host == os.uname().nodename:
                    self.flows.leave(worker.id)
        except Exception as error:
            log.warning("registry out of reach", error=str(error))


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.close()
