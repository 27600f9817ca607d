"""A machine that is too busy to start Spark's Python processes in time is no fault of the flow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.delivery.attempts import Attempts
from penstock.engine.runtime.failures import FACTORY, failure_of
from penstock.specs.policies import Effort
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
        gateway: Any = spark.sparkContext._gateway
        stack = gateway.new_array(jvm.java.lang.StackTraceElement, 1)
        stack[0] = jvm.java.lang.StackTraceElement(
            FACTORY, "createSimpleWorker", "PythonWorkerFactory.scala", 1
        )
        timeout.setStackTrace(stack)
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


LATE = """#!/bin/sh
case "$*" in *python_streaming_source_runner*) [ -e {flag} ] && rm {flag} && sleep 15;; esac
exec {python} "$@"
"""


def test_a_process_that_really_comes_too_late(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own exception: the process of the source connects after fifteen seconds, the first time."""
    flag, late = tmp_path / "flag", tmp_path / "python"
    flag.touch()
    late.write_text(LATE.format(flag=flag, python=spark.sparkContext.pythonExec))
    late.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(late))
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": [1]}))
    source = {"type": "delta", "path": table, "schema": "id BIGINT", "finite": True}
    raw = pipeline(source=source, restart={"max_attempts": 1, "backoff_ms": 1})
    kept = Keeper("test", lambda: flow_of(raw), spark, lambda _: str(tmp_path / "checkpoint"))
    kept.start()
    kept.join(240)
    assert not flag.exists()
    assert kept.state.outcome == "completed", kept.state
    assert {each["code"] for each in kept.state.attempts} == {"starved"}


def test_it_is_no_failure_of_a_sink(spark: SparkSession) -> None:
    errors: list[Exception] = [Starved(spark)] * 5
    waits: list[float] = []

    def once() -> str:
        if errors:
            raise errors.pop()
        return "done"

    def pause(seconds: float) -> bool:
        waits.append(seconds)
        return False

    assert Attempts(Effort(retries=0, deadline_ms=1), pause).run(once) == "done"
    assert len(waits) == 5
    assert waits[-1] > waits[0], "with backoff"


def test_another_timeout_is_a_failure_of_the_flow(spark: SparkSession) -> None:
    error = Starved(spark)
    jvm: Any = spark._jvm
    error.java_exception = jvm.java.net.SocketTimeoutException("connect timed out")
    assert not failure_of(error).passing
