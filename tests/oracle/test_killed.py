"""A query goes on after a kill -9 of its process and gives what DuckDB answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.engine.faults import wait_for
from tests.java import quick_environment
from tests.oracle import ways
from tests.oracle.events import NIGHTLY, generate
from tests.oracle.nexmark import QUERIES, ask
from tests.oracle.rows import rows_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

QUERY = "q5"
FIFTIES, MAX_EVENTS = 40 if NIGHTLY else 30, 230


@pytest.mark.parametrize("batches", range(1, 6) if NIGHTLY else [2])
def test_a_query_survives_kill_9(spark: SparkSession, tmp_path: Path, batches: int) -> None:
    """The process dies somewhere after its first batches; this one goes on from its checkpoint."""
    events = generate(FIFTIES)
    job = QUERIES[QUERY].job(tmp_path / "side_input.csv")
    _, columns = ways.as_test(spark, job, events.first(2).streams)
    live = ways.Live(spark, job, columns, tmp_path)
    live.append(events.streams)
    command = [
        sys.executable,
        "-m",
        "tests.oracle.killed_child",
        str(tmp_path),
        QUERY,
        columns,
        str(MAX_EVENTS),
    ]
    with (tmp_path / "child.log").open("w") as log:
        child = psutil.Popen(
            command, env={**os.environ, **quick_environment()}, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for("batches", lambda: _alive(child, tmp_path) and _commits(tmp_path) >= batches)
    finally:
        processes = [*child.children(recursive=True), child]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=30)
    assert _commits(tmp_path) < events.streams["bids"].num_rows // MAX_EVENTS, "it was killed too late"
    live.finish({"max_events": MAX_EVENTS, "max_ms": 10, "max_inflight": 4})
    answer = ask(QUERIES[QUERY], events.streams)
    ways.expect("killed", ways.Expected(answer.schema.names, rows_of(answer)), live.result())


def _alive(child: psutil.Popen, root: Path) -> bool:
    assert child.poll() is None, (root / "child.log").read_text()
    return True


def _commits(root: Path) -> int:
    return sum(file.name.isdigit() for file in root.glob("ck/*/commits/*"))
