"""A machine that is too busy to start Spark's Python processes in time is no fault of the flow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.control.lifecycle import Keeper
from tests.flows import flow_of, pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


class Starved(Exception):
    """As py4j tells it: with the throwable of the JVM, as Spark makes it after ten seconds."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__("An error occurred while calling o1.start")
        jvm: Any = spark._jvm
        message = "Timed out while waiting for the Python worker to connect back"
        timeout = jvm.java.net.SocketTimeoutException(message)
        self.java_exception = jvm.java.lang.RuntimeException("Python worker failed to connect back.", timeout)


def starving(spark: SparkSession, home: Path, times: int, **options: Any) -> Keeper:
    """A flow with two attempts, on a machine that is too busy for the first few."""
    left = [Starved(spark)] * times

    def checkpoint(_: object) -> str:
        if left:
            raise left.pop()
        return str(home / "checkpoint")

    restart = {"max_attempts": 2, "backoff_ms": 1, **options.pop("restart", {})}
    raw = pipeline(restart=restart)
    return Keeper("test", lambda: flow_of(raw), spark, checkpoint, **options)


@pytest.mark.parametrize("trial", [False, True])
def test_it_is_tried_until_there_is_room(spark: SparkSession, tmp_path: Path, trial: bool) -> None:
    kept = starving(spark, tmp_path, 5, trial=trial)
    kept.start()
    kept.join(240)
    state = kept.state
    assert (state.outcome, state.rejected) == ("completed", False)
    codes = [each["code"] for each in state.attempts]
    assert codes == ["starved"] * max(5, len(codes))  # more, if this machine is that busy itself
    assert "too busy" in state.attempts[0]["message"]


def test_a_flow_that_is_never_tried_again_is_not(spark: SparkSession, tmp_path: Path) -> None:
    kept = starving(spark, tmp_path, 1, restart={"policy": "never"})
    kept.start()
    kept.join(240)
    assert kept.state.outcome == "failed"
    assert kept.state.error is not None
    assert kept.state.error["code"] == "starved"
