"""The worker processes of `penstock up`: starting, monitoring, replacing and stopping them.

Has few imports: the workers are started before the server itself is loaded, since Spark takes longest.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import structlog

from penstock.settings import Settings
from penstock.spark.guard import ENDING_S, end_session

if TYPE_CHECKING:
    from penstock.control.fleet.assignments import Flows

log = structlog.get_logger()

WATCH_S = 0.2
SHORT_LIFE_S, LONGEST_PAUSE_S = 20.0, 30.0

LONGEST_DELAY_S, SETTLING_S = 20.0, 3.0
"""Starting Spark keeps two cores busy for about ten seconds. A worker that has ended is restarted once its
flows have run elsewhere for SETTLING_S, and after LONGEST_DELAY_S in any case."""

STOPPING_S = 15.0
"""Seconds beyond the drain timeout that a worker may take to end before it is killed."""

TAIL_BYTES, TAIL_LINES = 16 * 1024, 8
"""Maximum size of the part of a worker's log that is shown if it failed to start."""

UP = ("ready", "standby")
"""The states of a worker whose start is complete."""

Phase = Literal["starting_spark", "connecting", "ready", "failed"]


@dataclass(frozen=True)
class WorkerStart:
    """The start-up state of a worker on this machine."""

    worker: int
    phase: Phase
    since: datetime
    failures: int
    error: str | None
    log: str


@dataclass
class _Child:
    number: int
    process: subprocess.Popen[bytes]
    log_begins: int
    """The size of the worker's log before this process started."""
    worker: str
    """The id under which this process registers."""
    started: float = field(default_factory=time.monotonic)
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    ready: bool = False
    failures: int = 0
    error: str | None = None
    """Why the last process failed to start; None after a successful start."""
    next_start: float = 0.0
    latest_start: float = 0.0
    """The latest start of the next process, which waits for this one's flows to run on other workers."""
    standby: bool = False


class WorkerProcesses:
    """Keeps `settings.workers` workers and `settings.standby` standby workers alive on this machine.

    When a worker ends, a standby worker takes over, and the new process becomes the standby worker.

    A worker's standard input is a pipe from this process: when this process dies in any way, the pipe
    closes and the worker shuts down cleanly.
    """

    def __init__(self, settings: Settings, arguments: list[str]) -> None:
        self.settings, self.arguments = settings, arguments
        self.flows: Flows | None = None
        """The registry's view of workers, once the registry is open."""
        self.on_gone: Callable[[], None] = lambda: None
        """Called when the flows of a worker that has ended are released."""
        self._children: list[_Child] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="workers", daemon=True)

    def start(self) -> None:
        """Start every worker."""
        settings = self.settings
        for number in range(1, settings.workers + settings.standby + 1):
            standby = number > settings.workers
            self._children.append(_Child(number, *self._spawn(number, standby), standby=standby))
        self._thread.start()

    def stop(self) -> None:
        """Shut down every worker cleanly, and wait until it has ended."""
        self._stop.set()
        self._thread.join()
        for child in self._children:
            close_leash(child.process)
        deadline = time.monotonic() + self.settings.worker.drain_ms / 1000 + STOPPING_S
        for child in self._children:
            if not await_end(child.process, deadline):
                log.warning("worker did not end in time", pid=child.process.pid)
                self._gone(child)

    def starts(self) -> list[WorkerStart]:
        """The start-up state of each worker; `Phase` is `ready` once the worker is up."""
        with self._lock:
            self._notice_ready()
            return [
                WorkerStart(
                    child.number,
                    self._phase(child),
                    child.since,
                    child.failures,
                    child.error,
                    str(self.log_path(child.number)),
                )
                for child in self._children
            ]

    def log_path(self, number: int) -> Path:
        """The file with a worker's output."""
        return self.settings.home / "logs" / f"worker-{number}.log"

    def _phase_path(self, number: int) -> Path:
        """The file to which a worker writes its start-up phase."""
        return self.settings.home / "run" / f"worker-{number}.phase"

    def _spawn(self, number: int, standby: bool) -> tuple[subprocess.Popen[bytes], int, str]:
        """A new process, the previous size of its log, and the id under which it registers."""
        path, phase = self.log_path(number), self._phase_path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        phase.parent.mkdir(parents=True, exist_ok=True)
        phase.unlink(missing_ok=True)
        worker = str(uuid.uuid4())
        options = ["--phase-file", str(phase.resolve()), "--id", worker, *self.arguments]
        options += ["--standby"] if standby else []
        log_begins = path.stat().st_size if path.exists() else 0
        return spawn(self.settings, path, options), log_begins, worker

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_S):
            with self._lock:
                self._notice_ready()
                for child in self._children:
                    if child.next_start:
                        if self._may_start(child):
                            self._start_again(child)
                    elif child.process.poll() is not None:
                        self._died(child)

    def _may_start(self, child: _Child) -> bool:
        """Whether to start the next process now; delayed while flows start on other workers."""
        now = time.monotonic()
        if now < child.latest_start and self.flows is not None:
            with contextlib.suppress(Exception):  # the registry may be temporarily unreachable
                if self.flows.settling():
                    child.next_start = max(child.next_start, now + SETTLING_S)
        return now >= child.next_start

    def _start_again(self, child: _Child) -> None:
        child.process, child.log_begins, child.worker = self._spawn(child.number, child.standby)
        child.started, child.since = time.monotonic(), datetime.now(UTC)
        child.ready, child.next_start = False, 0.0

    def _notice_ready(self) -> None:
        """Check the registry for new workers: a worker registers when it is ready."""
        starting = {child.worker: child for child in self._children if not child.ready}
        if self.flows is None or not starting:
            return
        try:
            known = self.flows.workers()
        except Exception:  # the registry may be temporarily unreachable
            return
        for worker in known:
            if (child := starting.get(worker.id)) is not None and worker.alive and worker.state in UP:
                child.ready, child.failures, child.error = True, 0, None

    def _phase(self, child: _Child) -> Phase:
        if child.next_start or child.process.poll() is not None:
            return "failed" if child.failures or not child.next_start else "starting_spark"
        if child.ready:
            return "ready"
        try:
            written = self._phase_path(child.number).read_text(encoding="utf-8")
        except OSError:  # the worker has not written it yet
            return "starting_spark"
        return "connecting" if written == "connecting" else "starting_spark"

    def _died(self, child: _Child) -> None:
        heir = next((each for each in self._children if each.standby and each.ready), None)
        if child.ready and not child.standby and heir is not None:  # the coordinator promotes it
            child.standby, heir.standby = True, False
        lived = time.monotonic() - child.started
        early = lived < SHORT_LIFE_S or not child.ready
        child.failures = child.failures + 1 if early else 0
        child.error = None if child.ready else self._reason(child)
        pause = min(0.5 * 2.0**child.failures, LONGEST_PAUSE_S) if child.failures else 0.0
        log.warning("worker ended", pid=child.process.pid, code=child.process.returncode, again_in_s=pause)
        self._gone(child)
        now, others = time.monotonic(), [each for each in self._children if each is not child and each.ready]
        gives_way = child.ready and any(each.process.poll() is None for each in others)
        child.next_start = now + (max(pause, SETTLING_S) if gives_way else pause)
        child.latest_start = now + LONGEST_DELAY_S if gives_way else 0.0

    def _reason(self, child: _Child) -> str:
        """Why a worker failed to start: the error at the end of its log, or else the last lines."""
        try:
            with self.log_path(child.number).open("rb") as written:
                size = written.seek(0, os.SEEK_END)
                written.seek(max(child.log_begins, size - TAIL_BYTES))
                text = written.read().decode("utf-8", "replace")
        except OSError:
            text = ""
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        errors = [number for number, line in enumerate(lines) if line.startswith("error[")]
        shown = lines[errors[-1] :][:TAIL_LINES] if errors else lines[-TAIL_LINES:]
        return "\n".join(shown) or f"exited with code {child.process.returncode} and an empty log"

    def _gone(self, child: _Child) -> None:
        """Release the flows of a worker that has ended, without waiting for its lease to expire.

        This is safe since no process is left that could write for the worker: its own process has ended, and
        its JVM, which could still write a checkpoint, is killed first, as are all processes of its session.
        The id of the registration was given to exactly this process, and each flow gets a new epoch with its
        next worker.
        """
        close_leash(child.process)
        if not end_session(child.process.pid):
            log.warning("processes of a worker do not end: its lease does", pid=child.process.pid)
            return
        if self.flows is None:
            return
        try:
            self.flows.leave(child.worker)
            self.on_gone()
        except Exception as error:
            log.warning("registry out of reach", error=str(error))


def spawn(settings: Settings, log_file: Path, options: list[str]) -> subprocess.Popen[bytes]:
    """Start `penstock worker` with a leash, in its own session, with its output in a file."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "penstock.cli.main", "worker", "--leash", *options],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal is for this process, which then shuts the workers down.
            start_new_session=True,
            # Documents may use ${PENSTOCK_HOME}, regardless of where the home was set.
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PENSTOCK_HOME": str(settings.home)},
        )


def await_end(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait for a worker that was asked to end; false if it missed the deadline and was killed.

    Processes that the worker has left behind, such as a JVM that hangs, are killed in either case.
    """
    try:
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        end_session(process.pid)
        process.wait()
        return False
    end_session(process.pid, ENDING_S)
    return True


def close_leash(process: subprocess.Popen[bytes]) -> None:
    """Ask a worker to shut down."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
