"""Flows whose processes died at work: which start beside others, which wait, and which have failed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.control.fleet.start_turns import Turns
from penstock.engine.runtime.work_mark import FILE
from tests.cli.commands import wait_for
from tests.flows import keeper, pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("deaths", "attempts", "expected"),
    [
        (1, 5, "completed"),  # as after any kill of a worker: it does not wait for others
        (2, 5, "waits"),
        (3, 5, "fails"),
        (1, 2, "waits"),
        (2, 2, "fails"),
        (1, 1, "fails"),
    ],
)
def test_a_flow_is_a_suspect_from_its_second_death_on(
    spark: SparkSession, tmp_path: Path, deaths: int, attempts: int, expected: str
) -> None:
    raw = pipeline(restart={"max_attempts": attempts, "backoff_ms": 60_000, "max_backoff_ms": 60_000})
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE).write_bytes(b"d%05d another0\n" % (deaths - 1))
    suspects = Turns(1)
    another = suspects.ask()
    kept = keeper(spark, raw, tmp_path, suspects=suspects)
    kept.start()
    try:
        if expected == "waits":
            wait_for("the flow to queue", lambda: kept.state.phase == "waiting")
            another.end()
        if expected == "fails":
            wait_for("a failure", lambda: kept.state.error is not None)
            assert kept.state.error is not None
            assert kept.state.error["code"] == "worker_died"
        else:
            kept.join(120)
            assert (kept.state.outcome, kept.state.error) == ("completed", None)
    finally:
        kept.drain()
        kept.join(60)
