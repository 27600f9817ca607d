"""Kill -9 at each step of a delivery: nothing is lost, and nothing repeated that did not have to be."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing.crash import VARIABLE
from tests.crash.delivery_flow import BAD, EVENTS, faulty_flow, streams_of
from tests.engine.faults import numbers
from tests.java import quick_environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]

KILLS = [
    "before:missed:1",  # the policy is met, and what a sink misses is not written down yet
    "after:missed:1",  # it is, and the batch is not committed
    "before:acked:4",  # a sink has the batch, and the ledger does not know
    "after:acked:5",  # it knows, and others do not have the batch yet
    "before:settled:1",  # all have it and the letters are written, and the ledger does not know
    "after:settled:2",  # it knows, and the checkpoint does not
]


def run(root: Path, kill: str = "") -> int:
    """Run the flow in a process of its own, which may die; how it ended."""
    env = {**os.environ, VARIABLE: kill, "PYTHONPATH": str(ROOT), **quick_environment()}
    command = [sys.executable, "-m", "tests.crash.delivery_child", str(root)]
    with (root / "child.log").open("ab") as log:
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            return child.wait(300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # its JVM, if that is still there


def test_a_delivery_survives_kills_at_each_of_its_steps(tmp_path: Path) -> None:
    streams = streams_of(tmp_path)
    streams.log("in").append(numbers(0, EVENTS))
    for kill in KILLS:
        assert run(tmp_path, kill) == -signal.SIGKILL, (tmp_path / "child.log").read_text()[-4000:]
    assert run(tmp_path) == 0, (tmp_path / "child.log").read_text()[-4000:]

    flow, good = faulty_flow(tmp_path, streams), [i for i in range(EVENTS) if i != BAD]
    chunks = [chunk.batch for chunk in streams.log("out").read(0)]
    found = [i for batch in chunks if batch is not None for i in batch.column("id").to_pylist()]
    assert found == good, "exactly once, in order"

    # A sink that cannot tell a repetition gets one only where nobody could know that it has the batch.
    batches = flow.batches("console")
    assert sorted(set(batches)) == list(range(EVENTS // 10))
    assert batches == sorted(batches)
    assert len(batches) - len(set(batches)) <= 2
    assert sorted(set(flow.ids("console"))) == good

    mirrored = flow.ids("mirror")
    assert sorted(set(mirrored)) == good
    assert list(dict.fromkeys(mirrored)) == good, "what was missed came in order"
    assert flow.standing("mirror").gaps == ()

    assert streams.log("test.dead").bounds().next == 1, "one letter, whatever was repeated"
