"""Kill -9 at each step of a delivery: nothing is lost, and nothing repeated that did not have to be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.delivery_flow import BAD, BATCH, EVENTS, faulty_flow, streams_of
from tests.engine.faults import Faulty, numbers
from tests.java import quick_environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]

KILLS = {
    "first": (
        "before:missed:1",  # the policy is met, and what a sink misses is not written down yet
        "after:acked:5",  # the ledger knows that a sink has the batch, and others do not have it yet
    ),
    "second": (
        "after:missed:1",  # what a sink misses is written down, and the batch is not committed
        "before:settled:1",  # all have it and the letters are written, and the ledger does not know
    ),
    "third": (
        "before:acked:4",  # a sink has the batch, and the ledger does not know
        "after:settled:2",  # the ledger knows that all have the batch, and the checkpoint does not
    ),
}
"""Where each flow is when its process dies, the first time and the second time."""


def run(root: Path, places: dict[str, str]) -> int:
    """Run the flows in a process of their own, which dies when each has come to its place; how it ended."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **quick_environment()}
    plan = json.dumps({"names": list(KILLS), "places": places})
    command = [sys.executable, "-m", "tests.crash.delivery_child", str(root), plan]
    with (root / "child.log").open("ab") as log:
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            return child.wait(300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # its JVM, if that is still there


def test_a_delivery_survives_kills_at_each_of_its_steps(tmp_path: Path) -> None:
    for name in KILLS:
        streams_of(tmp_path / name).log("in").append(numbers(0, EVENTS))
    for places in zip(*KILLS.values(), strict=True):
        killed = run(tmp_path, dict(zip(KILLS, places, strict=True)))
        assert killed == -signal.SIGKILL, (tmp_path / "child.log").read_text()[-4000:]
    assert run(tmp_path, {}) == 0, (tmp_path / "child.log").read_text()[-4000:]

    repeated = [check(faulty_flow(tmp_path / name)) for name in KILLS]
    # A sink that does not recognise repeated batches gets one only where no record says that it has it.
    assert sum(repeated) <= 2, repeated


def check(flow: Faulty) -> int:
    """Each sink has got all events; how often the one that cannot tell a repetition has got one."""
    streams, good = streams_of(flow.root), [i for i in range(EVENTS) if i != BAD]
    chunks = [chunk.batch for chunk in streams.log("out").read(0)]
    found = [i for batch in chunks if batch is not None for i in batch.column("id").to_pylist()]
    assert found == good, "exactly once, in order"

    batches = flow.batches("console")
    assert sorted(set(batches)) == list(range(EVENTS // BATCH))
    assert batches == sorted(batches)
    assert sorted(set(flow.ids("console"))) == good

    mirrored = flow.ids("mirror")
    assert sorted(set(mirrored)) == good
    assert list(dict.fromkeys(mirrored)) == good, "what was missed came in order"
    assert flow.standing("mirror").gaps == ()

    assert streams.log("test.dead").bounds().next == 1, "one letter, whatever was repeated"
    return len(batches) - len(set(batches))
