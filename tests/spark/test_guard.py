"""The process that ends what a worker has left, with processes that stand for a worker and its JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from penstock.spark.guard import end_session, members
from tests.cli.commands import wait_for

WORKER = """\
import os, subprocess, sys, time
from penstock.spark import guard
guard.ENDING_S = guard.STOPPING_S = 0.2
guard.start_guard(float(sys.argv[1]))
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "600"], process_group=0)
print("ready", flush=True)
time.sleep(600)
"""

Worker = subprocess.Popen[str]


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A leader of a session with children, one of them in a process group of its own, and a guard."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, "0.2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(members(process.pid)) == 4
    yield process
    end_session(process.pid)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def test_processes_of_a_killed_worker_are_ended(worker: Worker) -> None:
    worker.kill()
    wait_for("the end", lambda: not members(worker.pid), 10)


@pytest.mark.slow
def test_a_worker_that_hangs_is_ended_after_the_end_of_its_parent(worker: Worker) -> None:
    os.killpg(worker.pid, signal.SIGSTOP)  # as a drill freezes a worker
    assert worker.stdin is not None
    worker.stdin.close()
    wait_for("the end", lambda: not members(worker.pid), 60)
    assert worker.wait() == -signal.SIGKILL


def test_a_session_ends_as_a_whole(worker: Worker) -> None:
    for pid in members(worker.pid):
        os.kill(pid, signal.SIGSTOP)
    assert end_session(worker.pid)
    assert members(worker.pid) == []
    assert psutil.pid_exists(os.getpid())
