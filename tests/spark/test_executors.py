"""Executors that cannot run flows are named with the reason, and Penstock's own code is sent to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.spark.executors import GROUP, explained, facts, mismatch
from penstock.spark.shipped_code import make_archive


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"penstock": "0.0.9"}, "executor_version", "penstock 0.0.9"),
        ({"pyspark": "4.2.0"}, "executor_version", "pyspark 4.2.0"),
        ({"missing": ["pyarrow", "orjson"]}, "executor_python", "lacks pyarrow, orjson"),
    ],
)
def test_an_executor_that_differs(changes: dict[str, Any], code: str, words: str) -> None:
    assert mismatch(facts(), facts()) is None
    problem = mismatch(facts(), {**facts(), **changes})
    assert problem is not None
    assert (problem.code, problem.path) == (code, "spark.pyspark.python")
    assert words in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (f"Job 0 cancelled part of cancelled job group {GROUP}", "no_executor", "gave no executor"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has …", "executor_version", "is not Python 3."),
        ('java.io.IOException: Cannot run program "/x/python"', "executor_python", "have no /x/python"),
        ("ModuleNotFoundError: No module named 'pyarrow'\n", "executor_python", "lacks pyarrow"),
        ("java.lang.Error: something\nmore", "executor_failed", "java.lang.Error: something"),
    ],
)
def test_a_first_task_that_fails(text: str, code: str, words: str) -> None:
    problem = explained(text, "spark://somewhere:7077", "/x/python")
    assert problem.code == code
    assert words in problem.message


def test_the_archive_is_the_package(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "penstock.zip")
    program = (
        "import penstock, penstock.engine.plan.python_steps\n"
        "from penstock.processors.js.child import prelude\n"
        "print(penstock.__file__, penstock.__version__, len(prelude()) > 100)"
    )
    # Without site packages the checkout is not there; what Penstock depends on is.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    command = [sys.executable, "-S", "-P", "-c", program]
    env = {"PYTHONPATH": ":".join([str(archive), *libraries])}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [f"{archive}/penstock/__init__.py", penstock.__version__, "True"], (
        done.stderr
    )
