"""Worker processes as the server sees them while they start."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from penstock.control.fleet import processes as processes_module
from penstock.control.fleet.assignments import Flows, Report
from penstock.control.fleet.processes import WorkerProcesses, WorkerStart
from penstock.control.registry import Registry
from penstock.settings import load
from tests.cli.commands import wait_for
from tests.flows import assign, pipeline

LEASE_S = 600.0
PATIENCE_S = 60.0

# A worker that begins as a real one does, and then obeys a file: `phase` of its start, or `exit`.
WORKER = """\
import subprocess, sys, time
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
    if given.startswith("spark "):  # as its JVM, a process that outlives it
        child = subprocess.Popen(["sleep", "600"])
        Path(given[6:]).write_text(str(child.pid))
        order.unlink()
        continue
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
    flows.join(processes._children[0].worker, pid, "http://127.0.0.1:9", "token", LEASE_S, {})
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
    (child,) = processes._children
    flows.join(child.worker, child.process.pid, "http://127.0.0.1:9", "token", LEASE_S, {})
    (ready,) = processes.starts()
    assert (ready.phase, ready.failures, ready.error) == ("ready", 0, None)
    registry.close()


def test_a_worker_that_ends_without_a_word(processes: WorkerProcesses, home: Path) -> None:
    (home / "order").write_text("vanish")
    failed = until(processes, lambda start: start.failures > 0)
    assert failed.error == "exited with code 7 and an empty log"


@pytest.fixture
def flows(home: Path) -> Iterator[Flows]:
    home.mkdir(exist_ok=True)
    registry = Registry.open(f"sqlite:///{home}/registry.db")
    yield Flows(registry)
    registry.close()


def killed(processes: WorkerProcesses, flows: Flows) -> int:
    """Register the worker, and kill it; its process id."""
    (child,) = processes._children[:1]
    flows.join(child.worker, child.process.pid, "http://127.0.0.1:9", "token", LEASE_S, {})
    processes.flows = flows
    assert processes.starts()[0].phase == "ready"
    child.started -= 60  # it has lived for long, so that its end is no failed start
    os.kill(child.process.pid, signal.SIGKILL)
    return child.process.pid


def test_the_flows_of_a_killed_worker_are_free_once_its_jvm_is_dead_too(
    processes: WorkerProcesses, home: Path, tmp_path: Path, flows: Flows
) -> None:
    (home / "order").write_text(f"spark {tmp_path / 'jvm'}")
    wait_for("the JVM", lambda: (tmp_path / "jvm").exists() and (tmp_path / "jvm").read_text())
    jvm = psutil.Process(int((tmp_path / "jvm").read_text()))
    (child,) = processes._children
    worker, freed = child.worker, []
    processes.on_gone = lambda: freed.append(_ended(jvm))
    record = flows.registry.create(pipeline("numbers"))
    pid = killed(processes, flows)
    flows.join("other", pid, "http://127.0.0.1:9", "token", LEASE_S, {})
    assert assign(flows, record.uid, "other"), "a worker elsewhere that has the same process id"
    wait_for("its end", lambda: worker not in [each.id for each in flows.workers()])
    wait_for("the notice", lambda: freed)
    assert freed == [True]
    held = flows.registry.get("Pipeline", "numbers").flow
    assert held is not None
    assert held.worker == "other", "only the registration of the process that has ended is removed"


def _ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_worker_is_started_again_after_its_flows_run_elsewhere(
    processes: WorkerProcesses, flows: Flows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes_module, "SETTLING_S", 0.5)
    (child,) = processes._children
    process, begins, worker = processes._spawn(2, standby=True)
    processes._children.append(processes_module._Child(2, process, begins, worker, standby=True))
    flows.join(worker, process.pid, "http://127.0.0.1:9", "token", LEASE_S, {}, standby=True)
    record = flows.registry.create(pipeline("numbers"))
    before = killed(processes, flows)
    wait_for("its end", lambda: child.next_start)
    time.sleep(2)
    assert child.process.pid == before, "the flow waits for a worker, which needs the machine to start it"
    assert processes.starts()[0].phase == "starting_spark", "that is no failure"
    assert assign(flows, record.uid, worker)
    time.sleep(1)
    assert child.process.pid == before, "the flow starts"
    flows.report(worker, [Report(record.uid, 1, record.revision, "running")])
    wait_for("the next process", lambda: child.process.pid != before, 10)


def test_a_worker_without_another_is_started_again_at_once(processes: WorkerProcesses, flows: Flows) -> None:
    flows.registry.create(pipeline("numbers"))
    before = killed(processes, flows)
    wait_for("the next process", lambda: processes._children[0].process.pid != before, 2)
