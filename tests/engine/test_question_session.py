"""The settings of the Spark that answers questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.plan.reach import REACH
from penstock.engine.runtime.question_session import question_session
from penstock.engine.runtime.session import JAVA_OPTIONS, configuration
from penstock.settings import load


def test_it_is_small_and_local_and_judges_as_the_cluster_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    spark = {"spark.master": "spark://far:7077", "spark.driver.memory": "16g", "spark.hadoop.a": "b"}
    given = {"home": tmp_path, "class_archive": False, "questions": {"memory_mb": 4096}, "spark": spark}
    settings = load(given, env={}, cwd=tmp_path).settings
    found = configuration(question_session(settings))
    assert found["spark.master"] == "local[2]"
    assert found["spark.driver.memory"] == "2048m"
    assert found["spark.hadoop.a"] == "b"
    assert REACH in found
    assert "-XX:+UseSerialGC" in found[JAVA_OPTIONS]
    assert found[JAVA_OPTIONS].endswith("-XX:+ExitOnOutOfMemoryError")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC")
    assert "GC" not in configuration(question_session(settings))[JAVA_OPTIONS]
