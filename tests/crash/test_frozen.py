"""A worker is frozen (SIGSTOP) right before it writes, and wakes up when another one has its flow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from penstock.connectors.base import DeliveryId
from penstock.control.fleet.assignments import Flows
from penstock.control.registry import Registry
from penstock.engine.delivery.ledger import Ledger, Span
from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.storage import Cursor, Producer
from tests.cli.commands import PATIENCE_S, wait_for
from tests.crash.frozen_child import FLOW, WORKER
from tests.crash.frozen_commit_child import EVENTS, document, streams_of
from tests.engine.faults import numbers
from tests.flows import assign, json_rows, pipeline, run
from tests.java import quick_environment
from tests.streams.kit import events, make_stream, values


def test_a_frozen_worker_that_wakes_up_too_late_changes_nothing(tmp_path: Path) -> None:
    """Invariant 6, for each kind of write by itself: none of them asks for permission once more."""
    url, stream = f"sqlite:///{tmp_path / 'registry.db'}", make_stream(tmp_path / "stream")
    registry = Registry.open(url)
    flows, record = Flows(registry), registry.create(pipeline("numbers"))
    flows.join(WORKER, 1, "http://127.0.0.1:1", "token", 60.0, {})
    assert assign(flows, record.uid, WORKER)
    command = [sys.executable, "-m", "tests.crash.frozen_child", str(tmp_path), url, record.uid]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        process = psutil.Process(child.pid)
        wait_for("its freeze", lambda: process.status() == psutil.STATUS_STOPPED)
        wait_for("the end of its lease", lambda: flows.expire() == [WORKER])
        flows.join("new", 1, "http://127.0.0.1:1", "token", 600.0, {})
        assert assign(flows, record.uid, "new")
        log, ledger = Log(open_storage(stream)), Ledger(tmp_path / "state", 2)
        assert log.append(events(1), producer=Producer(FLOW, 0, 2)).duplicate, (
            "who takes over repeats a batch"
        )
        log.move_cursor(Cursor(FLOW, 0, 2))
        ledger.acked(DeliveryId(FLOW, "out", "life", 0), Span(0, 1))
        before = registry.get("Pipeline", "numbers"), ledger.standing("out"), log.storage.cursors()
        os.kill(child.pid, signal.SIGCONT)
        outcomes = json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.wait()
    assert outcomes == {
        "lease": "ended",
        "append": "Fenced",
        "cursor": "Fenced",
        "ledger": "Suspended",
        "rollback": "PreconditionFailed",
    }
    assert (registry.get("Pipeline", "numbers"), ledger.standing("out"), log.storage.cursors()) == before
    assert values(log) == [b"e0"]
    log.close()
    ledger.close()
    registry.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "refusal"),
    [
        (
            "sink",
            "epoch",
        ),  # the rename finds the batch of the other worker; then the ledger refuses to note it
        ("checkpoint", "oncurrent"),
    ],
)
def test_a_frozen_worker_commits_nothing_after_another_has_its_flow(
    place: str, refusal: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Invariant 6 for the commit of a file sink and of a checkpoint; the lease is not asked."""
    streams = streams_of(tmp_path)
    streams.make("in", schema="id BIGINT").append(numbers(0, EVENTS))
    command = [sys.executable, "-m", "tests.crash.frozen_commit_child", str(tmp_path), place]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, **quick_environment()},
    )
    assert child.stdout is not None
    try:
        process = psutil.Process(child.pid)
        wait_for("its freeze", lambda: process.status() == psutil.STATUS_STOPPED, PATIENCE_S)
        state = run(spark, document(tmp_path), tmp_path / "flow", streams.site(epoch=2))
        assert state.outcome == "completed", state.error
        before = written(tmp_path)
        os.killpg(child.pid, signal.SIGCONT)
        error = json.loads(child.stdout.readline())
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert error is not None, "it went on as if nothing had happened"
    assert refusal in error["message"], error
    assert written(tmp_path) == before
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == list(range(EVENTS))


def written(root: Path) -> dict[str, tuple[int, bytes]]:
    """The files of the sink and of the checkpoint's commits, with the time of their last change."""
    files = [*root.glob("out/**/*.json"), *root.glob("flow/*/commits/[0-9]*")]
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}
