from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.settings import Settings, load
from penstock.spark import archive
from penstock.spark.archive import ClassArchive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings(tmp_path: Path, **overrides: object) -> Settings:
    return load({"cache": tmp_path / "cache", **overrides}, env={}, cwd=tmp_path).settings


def archive_of(tmp_path: Path, **overrides: object) -> ClassArchive:
    found = ClassArchive.of(settings(tmp_path, **overrides))
    assert found is not None
    return found


def test_an_archive_is_in_the_cache_directory_and_stays_the_same(tmp_path: Path) -> None:
    assert archive_of(tmp_path).path.parent == tmp_path / "cache"
    assert archive_of(tmp_path) == archive_of(tmp_path)


def test_another_java_needs_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive_of(tmp_path)
    monkeypatch.setattr(archive, "java_release", lambda: 'JAVA_VERSION="99"')
    assert archive_of(tmp_path) != before


def test_other_jars_need_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(jars.parent))
    found = set()
    for content in ("", "a", "ab"):
        (jars / "one.jar").write_text(content)
        found.add(archive_of(tmp_path))
    assert len(found) == 3


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    assert ClassArchive.of(settings(tmp_path, class_archive=False)) is None
    assert ClassArchive.of(load({}, env={"PENSTOCK_CLASS_ARCHIVE": "false"}, cwd=tmp_path).settings) is None


@pytest.mark.parametrize("name", ["a file", "with space/cache"])
def test_there_is_none_where_it_cannot_be_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").write_text("")
    place = tmp_path / name
    assert ClassArchive.of(load({"cache": place}, env={}, cwd=tmp_path).settings) is None


def test_there_is_none_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "java_release", lambda: None)
    assert ClassArchive.of(settings(tmp_path)) is None


def test_a_jvm_is_told_of_an_archive_only_when_it_is_there(tmp_path: Path) -> None:
    found = archive_of(tmp_path)
    assert found.options() == []
    found.path.touch()
    assert f"-XX:SharedArchiveFile={found.path}" in found.options()


def test_archives_that_no_jvm_uses_any_more_are_deleted(tmp_path: Path) -> None:
    found = archive_of(tmp_path)
    old, young, other = (found.path.parent / name for name in ("spark-1.jsa", "spark-2.jsa", "other.jsa"))
    for path in (found.path, old, young, other):
        path.touch()
    long_ago = time.time() - 40 * 86_400
    for path in (found.path, old, other):
        os.utime(path, (long_ago, long_ago))
    found.options()
    found.remove_unused()
    assert sorted(found.path.parent.iterdir()) == sorted((found.path, young, other))


@pytest.mark.slow
def test_the_jvm_has_its_classes_from_the_archive(spark: SparkSession) -> None:
    """The archive of these tests was made as every other one: by `penstock.engine.runtime.training`."""
    from tests.java import archive as made

    maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
    assert str(made().path) in maps


@pytest.mark.slow
def test_an_archive_that_is_damaged_is_ignored_in_silence(tmp_path: Path) -> None:
    import subprocess

    found = archive_of(tmp_path)
    found.path.write_bytes(b"no archive" * 1000)
    done = subprocess.run(["java", *found.options(), "-version"], capture_output=True, text=True, check=True)
    assert "arch" not in done.stdout + done.stderr.lower().replace("penstock", "")
