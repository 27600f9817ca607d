from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.runtime.session import configuration
from penstock.errors import PenstockError
from penstock.settings import load
from penstock.spark.java import require_java


def configured(tmp_path: Path, **overrides: Any) -> dict[str, str]:
    named = {name.replace("__", "."): value for name, value in overrides.items()}
    named |= {"home": tmp_path, "class_archive": False}
    return configuration(load(named, env={}, cwd=tmp_path).settings)


def test_what_the_user_sets_wins(tmp_path: Path) -> None:
    assert configured(tmp_path)["spark.driver.memory"] == "2g"
    assert configured(tmp_path, spark__driver__memory="5g")["spark.driver.memory"] == "5g"
    assert configured(tmp_path, spark__x__y=True)["spark.x.y"] == "true"


def test_the_quick_checkpoint_manager_is_for_local_checkpoints_only(tmp_path: Path) -> None:
    quick = "spark.sql.streaming.checkpointFileManagerClass"
    assert quick in configured(tmp_path)
    assert quick in configured(tmp_path, storage__url="file:///data/checkpoints")
    assert quick not in configured(tmp_path, storage__url="hdfs://name/checkpoints")


def test_local_files_are_copied_into_a_checkpoint_without_checksums(spark: Any, tmp_path: Path) -> None:
    """As RocksDB's snapshots are, without which a restart reads every change of the state since its begin."""
    (tmp_path / "snapshot").write_text("state")
    path = spark._jvm.org.apache.hadoop.fs.Path
    source, target = path(f"file://{tmp_path}/snapshot"), path(f"file://{tmp_path}/copy")
    target.getFileSystem(spark._jsc.hadoopConfiguration()).copyFromLocalFile(source, target)
    assert {file.name for file in tmp_path.iterdir()} == {"snapshot", "copy"}


def test_a_cluster_keeps_its_own_defaults(tmp_path: Path) -> None:
    cluster = configured(tmp_path, spark__master="spark://127.0.0.1:7077")
    assert cluster["spark.master"] == "spark://127.0.0.1:7077"
    assert "spark.driver.bindAddress" not in cluster
    assert "spark.sql.shuffle.partitions" not in cluster
    assert configured(tmp_path, spark__master="local[3]")["spark.sql.shuffle.partitions"] == "3"


def test_two_garbage_collectors_are_never_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    assert configured(tmp_path)["spark.driver.extraJavaOptions"] == "-XX:+UseParallelGC"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseZGC")
    assert configured(tmp_path)["spark.driver.extraJavaOptions"] == ""


def test_a_short_session_compiles_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    settings = load({"home": tmp_path, "class_archive": False}, env={}, cwd=tmp_path).settings
    options = configuration(settings, short=True)["spark.driver.extraJavaOptions"].split()
    assert options == ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    own = {"spark.driver.extraJavaOptions": "-XX:+UseZGC"}
    settings = load({"home": tmp_path, "class_archive": False, **own}, env={}, cwd=tmp_path).settings
    assert configuration(settings, short=True)["spark.driver.extraJavaOptions"] == "-XX:+UseZGC"


def test_the_version_of_java_is_read_without_starting_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="21.0.4"\n')
    require_java()
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_402"\n')
    with pytest.raises(PenstockError, match="found Java 8"):
        require_java()


def test_a_machine_without_java_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PenstockError) as caught:
        require_java()
    (problem,) = caught.value.problems
    assert problem.code == "no_java"
    for line in ("apt-get install openjdk-17-jre-headless", "brew install", "winget install"):
        assert line in (problem.hint or "")
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(PenstockError, match="found Java 11"):
        require_java()
