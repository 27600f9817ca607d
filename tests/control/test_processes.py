"""Worker processes as the server sees them while they start."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.control.fleet.assignments import Flows
from penstock.control.fleet.processes import WorkerProcesses, WorkerStart
from penstock.control.registry import Registry
from penstock.settings import load

LEASE_S = 600.0
PATIENCE_S = 60.0

# A worker that begins as a real one does, and then obeys a file: `phase` of its start, or `exit`.
WORKER = """\
import sys, time
from pathlib import Path
phase = Path(sys.argv[sys.argv.index("--phase-file") + 1])
order = phase.parent.parent / "order"
while True:
    given = order.read_text() if order.exists() else ""
    if given == "exit":
        print("Traceback", "error[spark_failed] Spark did not start: no master", "  hint: look", sep="\\n")
        sys.exit(1)
    if given == "vanish":
        sys.exit(7)
    if given:  # as a whole, as a real one does
        phase.with_suffix(".new").write_text(given)
        phase.with_suffix(".new").replace(phase)
    time.sleep(0.02)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def processes(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcesses]:
    """A worker process without Spark: Python runs `WORKER` in place of the command."""
    program = tmp_path / "program.py"
    program.write_text(WORKER)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" "{program}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("penstock.control.fleet.processes.sys.executable", str(python))
    settings = load({"home": home, "workers": 1}, env={}, cwd=tmp_path).settings
    processes = WorkerProcesses(settings, [])
    processes.start()
    yield processes
    for child in processes._children:
        child.process.kill()
    processes.stop()


def until(processes: WorkerProcesses, fits: Callable[[WorkerStart], bool]) -> WorkerStart:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        (start,) = processes.starts()
        if fits(start):
            return start
        time.sleep(0.02)
    raise AssertionError(start)


def test_a_start_is_told_phase_by_phase(processes: WorkerProcesses, home: Path) -> None:
    (start,) = processes.starts()
    assert (start.worker, start.phase, start.failures, start.error) == (1, "starting_spark", 0, None)
    assert start.log == str(home / "logs" / "worker-1.log")
    (home / "order").write_text("connecting")
    until(processes, lambda start: start.phase == "connecting")

    registry = Registry.open(f"sqlite:///{home}/registry.db")
    processes.flows = flows = Flows(registry)
    assert processes.starts()[0].phase == "connecting"
    pid = processes._children[0].process.pid
    flows.join("w", pid, "http://127.0.0.1:9", "token", LEASE_S, {})
    assert processes.starts()[0].phase == "ready"
    registry.close()


def test_a_worker_that_cannot_start_says_why_until_one_can(processes: WorkerProcesses, home: Path) -> None:
    (home / "order").write_text("exit")
    failed = until(processes, lambda start: start.failures > 0)
    assert failed.error == "error[spark_failed] Spark did not start: no master\n  hint: look"
    (home / "order").unlink()
    again = until(processes, lambda start: start.phase == "starting_spark")
    assert again.error == failed.error, "the next attempt has not succeeded yet"
    assert again.since > failed.since

    registry = Registry.open(f"sqlite:///{home}/registry.db")
    processes.flows = flows = Flows(registry)
    flows.join("w", processes._children[0].process.pid, "http://127.0.0.1:9", "token", LEASE_S, {})
    (ready,) = processes.starts()
    assert (ready.phase, ready.failures, ready.error) == ("ready", 0, None)
    registry.close()


def test_a_worker_that_ends_without_a_word(processes: WorkerProcesses, home: Path) -> None:
    (home / "order").write_text("vanish")
    failed = until(processes, lambda start: start.failures > 0)
    assert failed.error == "it ended with exit code 7 and an empty log"
