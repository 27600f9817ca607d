"""The drill: flows with three sinks, dead letters and late events are killed at any moment, again and again.

`make nightly` kills ten flows at once, twenty times; `make test` two flows, once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.frames.logs import LOGS
from penstock.testing.faulty_sink import deliveries
from tests.crash.drill_flows import events, expected, flow_of, streams_of
from tests.flows import json_rows, letters
from tests.java import quick_environment
from tests.streams.kit import NIGHTLY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

ROOT = Path(__file__).parents[2]
KILLS, OF_EACH = (20, 5) if NIGHTLY else (1, 1)
NAMES = [f"{kind}-{i}" for kind in ("plain", "window") for i in range(OF_EACH)]


def start(root: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **quick_environment()}
    command = [sys.executable, "-m", "tests.crash.drill_child", str(root), ",".join(NAMES)]
    log = (root / "child.log").open("ab")
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)


def end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # its JVM too
    child.wait()


def progress(root: Path) -> int:
    """How many files the checkpoints of all flows have: it grows with each batch."""
    return sum(1 for name in NAMES for _ in (root / name / "ck" / "commits").glob("[0-9]*"))


def test_kills_at_any_moment_lose_and_repeat_nothing(tmp_path: Path) -> None:
    chance = random.Random(7)
    for name in NAMES:
        LOGS.log(streams_of(tmp_path / name).place("in").directory).append(events())
    for _ in range(KILLS):
        child, before = start(tmp_path), progress(tmp_path)
        deadline = time.monotonic() + 300
        while progress(tmp_path) < before + 2 and child.poll() is None:
            assert time.monotonic() < deadline, (tmp_path / "child.log").read_text()[-4000:]
            time.sleep(0.1)
        time.sleep(chance.uniform(0, 4))
        end(child)
    child = start(tmp_path)
    try:
        assert child.wait(1500) == 0, (tmp_path / "child.log").read_text()[-4000:]
    finally:
        end(child)
    for name in NAMES:
        check(tmp_path / name)


def check(root: Path) -> None:
    """Every sink, the letters and the late events have what they should: by name, and by how often."""
    flow, streams, wanted = flow_of(root), streams_of(root), expected(root)
    assert Counter(json.loads(each["event"])["id"] for each in letters(streams)) == Counter(wanted.bad)
    assert Counter(json.loads(row["value"])["id"] for row in rows(streams, "late")) == Counter(wanted.late)
    names = list(wanted.rows[0])
    for sink, got in (("stream", rows(streams, "out")), ("files", json_rows(root / "files"))):
        assert shown(got, names) == shown(wanted.rows, names), sink
    mirrored = [row for _, batch in deliveries(root / "mirror") for row in batch]
    assert set(shown(mirrored, names)) == set(shown(wanted.rows, names)), "it may get a batch twice"
    assert flow.standing("mirror").gaps == ()


def shown(got: list[dict[str, Any]], names: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in names) for row in got)


def rows(streams: Any, name: str) -> list[dict[str, Any]]:
    log = LOGS.log(streams.place(name).directory)
    return [row for chunk in log.read(0) if chunk.batch is not None for row in chunk.batch.to_pylist()]
