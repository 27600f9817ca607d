"""The process of `penstock up` that answers questions separately from the flows, started on demand.

The process is a worker that never gets flows (`penstock worker --questions`). Test runs and queries run user
code, so the process has its own JVM and limits on memory and time, and is killed when it exceeds one of them.
"""

from __future__ import annotations

import subprocess
import threading
import time
import uuid
from typing import TYPE_CHECKING

import structlog

from penstock.control.fleet.processes import await_end, close_leash, spawn
from penstock.settings import Settings
from penstock.spark.guard import end_session

if TYPE_CHECKING:
    from penstock.control.fleet.assignments import Flows

log = structlog.get_logger()

WATCH_S = 0.2
STOP_S = 5.0
"""Seconds that the process may take to end before it is killed: it holds no state."""

SHORT_LIFE_S, LONGEST_PAUSE_S = 20.0, 30.0
"""A process that ends sooner failed to start; the pause before the next start doubles each time."""

LONGEST_DELAY_S = 30.0
"""Maximum seconds that a start is delayed while flows start, if no request is waiting for it."""


class QuestionProcess:
    """Runs at most one process for questions on this machine."""

    def __init__(self, settings: Settings, arguments: list[str]) -> None:
        self.settings, self.arguments = settings, arguments
        self.flows: Flows | None = None
        """The registry's view of workers, once the registry is open."""
        self.log_path = settings.home / "logs" / "questions.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._worker = ""
        self._wanted_at: float | None = None
        self._urgent = False
        self._started = self._next_start = 0.0
        self._failures = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="questions", daemon=True)

    def start(self) -> None:
        """Start waiting for questions."""
        self._thread.start()

    def want(self, *, urgent: bool) -> None:
        """Request a start of the process unless it runs. Without `urgent`, it waits while flows start."""
        with self._lock:
            if self._process is None:
                self._wanted_at = self._wanted_at or time.monotonic()
                self._urgent = self._urgent or urgent

    def kill(self, worker: str) -> None:
        """Kill the process, which isn't responding, if it has registered as `worker`."""
        with self._lock:
            if self._process is not None and self._worker == worker:
                log.warning("the process for questions isn't responding, and is killed")
                end_session(self._process.pid)
                self._ended(self._process)

    def stop(self) -> None:
        """Stop the process, and wait until it has ended."""
        self._stop.set()
        if self._thread.ident is not None:  # not started if the server failed to start
            self._thread.join()
        if self._process is not None:
            close_leash(self._process)
            await_end(self._process, time.monotonic() + STOP_S)

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_S):
            with self._lock:
                if self._process is not None and self._process.poll() is not None:
                    self._ended(self._process)
                if self._process is None and self._wanted_at is not None and self._may_start():
                    self._begin()

    def _may_start(self) -> bool:
        now = time.monotonic()
        if now < self._next_start or self.flows is None or self._wanted_at is None:
            return False
        if self._urgent or now - self._wanted_at > LONGEST_DELAY_S:
            return True
        try:
            ready = any(worker.takes_flows for worker in self.flows.workers())
            return ready and not self.flows.settling()
        except Exception:  # the registry may be temporarily unreachable
            return False

    def _begin(self) -> None:
        self._worker, self._started = str(uuid.uuid4()), time.monotonic()
        options = ["--questions", "--id", self._worker, *self.arguments]
        self._process = spawn(self.settings, self.log_path, options)
        self._wanted_at, self._urgent = None, False

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        """Clean up after a process that has ended: its leash, its session and its registration.

        An idle process ends on its own, and the next question starts a new one.
        """
        self._process = None
        close_leash(process)
        end_session(process.pid)
        process.wait()
        early = process.returncode != 0 and time.monotonic() - self._started < SHORT_LIFE_S
        self._failures = self._failures + 1 if early else 0
        pause = min(0.5 * 2.0**self._failures, LONGEST_PAUSE_S) if self._failures else 0.0
        self._next_start = time.monotonic() + pause
        if process.returncode != 0:
            log.warning("the process for questions has ended", pid=process.pid, code=process.returncode)
            self._wanted_at = time.monotonic()  # the client is about to retry its question
        if self.flows is not None:
            try:
                self.flows.leave(self._worker)
            except Exception as error:  # the lease expires on its own
                log.warning("registry out of reach", error=str(error))
