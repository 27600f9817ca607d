"""The executors of a session: a first Python task checks whether they can run flows."""

from __future__ import annotations

import importlib.util
import platform
import threading
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from penstock.errors import Invalid, Problem
from penstock.spark.driver import error_text, java_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 300.0
"""Seconds in which a cluster has to provide the first executor of the session."""

NEEDED = ("pyarrow", "numpy", "pandas", "pydantic", "orjson", "polars", "cachetools", "py_mini_racer")
"""Modules that Python steps import. Penstock itself is sent to the executors."""

GROUP = "penstock first task"


def facts() -> dict[str, Any]:
    """The versions of this Python process, and the missing modules."""
    return {
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "penstock": version("penstock"),
        "missing": [name for name in NEEDED if importlib.util.find_spec(name) is None],
    }


def require_able(spark: SparkSession, seconds: float = PATIENCE_S) -> None:
    """Run a Python task on an executor; raises `Invalid` if there is none, or it cannot run flows."""
    context = spark.sparkContext
    timer = threading.Timer(seconds, lambda: context.cancelJobGroup(GROUP))
    context.setJobGroup(GROUP, "whether executors can run flows", interruptOnCancel=False)
    timer.start()
    try:
        found = context.parallelize([0], 1).map(lambda _: facts()).collect()[0]
    except java_errors() as error:
        raise Invalid(explained(error_text(error), str(context.master), str(context.pythonExec))) from error
    finally:
        timer.cancel()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
    if problem := mismatch(facts(), found):
        raise Invalid(problem)


def mismatch(own: Mapping[str, Any], found: Mapping[str, Any]) -> Problem | None:
    """The reason why an executor with these facts cannot run flows of this process."""
    for name in ("penstock", "pyspark"):
        if own[name] != found[name]:
            message = f"the executors have {name} {found[name]}, and this process has {own[name]}"
            hint = f"install {name}=={own[name]} there, or remove {name}" if name == "penstock" else None
            return _problem("executor_version", message, hint or f"install pyspark=={own[name]} there")
    if found["missing"]:
        message = f"the Python of the executors lacks {', '.join(found['missing'])}"
        hint = "install the dependencies of Penstock there: pip install penstock"
        return _problem("executor_python", message, hint)
    return None


def explained(text: str, master: str, python: str) -> Problem:
    """The reason why the first task has failed, from the text of Spark's error."""
    if "cancelled" in text and GROUP in text:
        message = f"the cluster {master} gave no executor within {PATIENCE_S:.0f} seconds"
        return Problem(
            code="no_executor",
            message=message,
            path="spark.master",
            hint="check the cluster UI for free cores and memory; spark.executor.memory and spark.cores.max "
            "set the request",
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        message = (
            f"{python} of the executors is not Python {platform.python_version()}, the version of this "
            "process"
        )
        return _problem("executor_version", message, "use the same version")
    if "Cannot run program" in text:
        return _problem("executor_python", f"the executors have no {python}", "install Python there")
    missing = text.partition("No module named ")[2].split("\n")[0].strip("'\" ")
    if missing:
        message = f"the Python of the executors lacks {missing}"
        return _problem("executor_python", message, "install the dependencies of Penstock there")
    return _problem("executor_failed", f"the first task of the session failed: {text.splitlines()[0]}", None)


def _problem(code: str, message: str, hint: str | None) -> Problem:
    return Problem(code=code, message=message, path="spark.pyspark.python", hint=hint)
