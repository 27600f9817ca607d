"""Files at `storage.url`: never half written, never replaced; clear errors if they cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.runtime.storage import MANAGER, require_storage, storage_properties
from penstock.errors import PenstockError, Problem
from penstock.settings import Settings, load
from penstock.spark.driver import hadoop_configuration
from penstock.spark.jars import use_jars
from penstock.spark.stored_files import StoredFiles, install_s3_manager
from tests.engine.faults import SCHEMA, from_stream, numbers, wait_for
from tests.flows import Streams, running
from tests.hdfs_server import Hdfs
from tests.s3_server import PASSWORD, S3, USER
from tests.servers import free_port

ACCESS, SECRET, ENDPOINT = "fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.endpoint"


def settings_of(url: str, **hadoop: str) -> Settings:
    properties = {f"spark.hadoop.{name}": value for name, value in hadoop.items()}
    return load({"storage.url": url, "spark": properties}, env={}).settings


@contextmanager
def session(spark: SparkSession, settings: Settings) -> Iterator[SparkSession]:
    """A session as a worker has it with these settings."""
    made, configuration = spark.newSession(), hadoop_configuration(spark)
    hadoop = {
        name.removeprefix("spark.hadoop."): value
        for name, value in {**storage_properties(settings), **settings.spark}.items()
        if name.startswith("spark.hadoop.")
    }
    # One file system is shared by all sessions with the same URL.
    hadoop |= {"fs.s3a.impl.disable.cache": "true", "ipc.client.connect.max.retries": "0"}
    before = {name: configuration.get(name) for name in hadoop}
    install_s3_manager(made)
    for name, value in hadoop.items():
        configuration.set(name, value)
    manager = storage_properties(settings).get(MANAGER)
    if manager is None:
        made.conf.unset(MANAGER)
    else:
        made.conf.set(MANAGER, manager)
    try:
        yield made
    finally:
        for name, value in before.items():
            configuration.set(name, value) if value is not None else configuration.unset(name)


def s3_settings(store: S3, bucket: str, **changes: str) -> Settings:
    hadoop = {ENDPOINT: store.url, ACCESS: USER, SECRET: PASSWORD, **changes}
    return settings_of(f"s3a://{bucket}/flows", **hadoop)


def check_files(made: SparkSession, url: str) -> None:
    """One of several writers of a file wins, and readers see all that it wrote."""
    files = StoredFiles(made, f"{url}/some")
    assert files.names() == []
    assert files.read("1") is None
    contents = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda content: files.add("1", content), contents))
    assert added.count(True) == 1, "the others were refused"
    assert files.read("1") == contents[added.index(True)]
    assert not files.add("1", b"later")
    assert files.add("2", b"")
    assert files.names() == ["1", "2"], "no file is left of those that were refused"
    files.remove("1")
    files.remove("1")
    assert files.names() == ["2"]


def test_a_file_in_s3_is_never_replaced(spark: SparkSession, object_store: S3) -> None:
    settings = s3_settings(object_store, object_store.bucket())
    with session(spark, settings) as made:
        require_storage(made, settings)
        check_files(made, settings.checkpoint_url)


def test_a_file_in_hdfs_is_never_replaced(spark: SparkSession, hdfs: Hdfs) -> None:
    settings = settings_of(hdfs.directory())
    with session(spark, settings) as made:
        require_storage(made, settings)
        check_files(made, settings.checkpoint_url)


def refusal(spark: SparkSession, settings: Settings) -> Problem:
    """The problem with which a worker ends."""
    with session(spark, settings) as made, pytest.raises(PenstockError) as raised:
        require_storage(made, settings)
    (problem,) = raised.value.problems
    assert problem.path == "storage.url"
    return problem


def test_storage_in_s3_that_cannot_be_used(spark: SparkSession, object_store: S3) -> None:
    bucket, away = object_store.bucket(), f"http://127.0.0.1:{free_port()}"
    cases: list[tuple[Settings, str]] = [
        (s3_settings(object_store, "no-such-bucket"), "bucket_not_found"),
        (s3_settings(object_store, bucket, **{SECRET: "wrong"}), "store_login"),
        (s3_settings(object_store, bucket, **{ACCESS: "nobody"}), "store_login"),
        (s3_settings(object_store, bucket, **{ENDPOINT: away}), "store_unreachable"),
    ]
    use_jars(spark, "s3")
    for settings, code in cases:
        problem = refusal(spark, settings)
        assert (problem.code, bool(problem.hint)) == (code, True), problem
        assert "wrong" not in str(problem)


def test_storage_in_hdfs_that_cannot_be_used(spark: SparkSession, hdfs: Hdfs) -> None:
    assert refusal(spark, settings_of(f"hdfs://127.0.0.1:{free_port()}/x")).code == "store_unreachable"


def test_a_flow_waits_while_its_storage_is_away(
    spark: SparkSession, object_store: S3, tmp_path: Path
) -> None:
    streams, settings = Streams(tmp_path), s3_settings(object_store, object_store.bucket())
    log = streams.make("in", schema=SCHEMA)
    restart = {"max_attempts": 2, "backoff_ms": 50, "max_backoff_ms": 100}
    flow = from_stream(tmp_path, streams, {"lake": {}}, restart=restart)
    with session(spark, settings) as made:
        require_storage(made, settings)
        checkpoint = f"{settings.checkpoint_url}/test/1234/key"
        kept = Keeper("test", lambda: flow.flow({}), made, lambda _: checkpoint)
        log.append(numbers(0, 10))
        with running(kept):
            wait_for("the first batch", lambda: len(flow.ids("lake")) == 10)
            object_store.kill()
            try:
                log.append(numbers(10, 10))
                wait_for("more attempts than a flow has", lambda: len(kept.state.attempts) > 3)
                error = kept.state.error
            finally:
                object_store.start()
            wait_for("the second batch", lambda: len(flow.ids("lake")) >= 20)
    assert error is not None
    assert (error["code"], error["path"]) == ("store_unreachable", "storage.url")
    assert flow.ids("lake") == list(range(20)), "each once"


@pytest.mark.slow
@pytest.mark.parametrize("url", ["s3://bucket/flows", "nothing://place/flows"])
def test_a_scheme_without_a_file_system(spark: SparkSession, url: str) -> None:
    problem = refusal(spark, settings_of(url))
    assert (problem.code, "s3a://" in str(problem.hint)) == ("no_file_system", True)


def test_the_manager_of_checkpoints_depends_on_the_scheme() -> None:
    def manager(url: str, **hadoop: str) -> Any:
        return storage_properties(settings_of(url, **hadoop))

    assert manager("/data/flows") == {MANAGER: manager("file:///data/flows")[MANAGER]}
    assert manager("hdfs://names/flows") == {}, "that of Spark, whose rename is atomic there"
    stored = manager("s3a://bucket/flows", **{ENDPOINT: "http://127.0.0.1:1"})
    assert stored[MANAGER] == "penstock.StoredCheckpoints"
    assert stored["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert "spark.hadoop.fs.s3a.path.style.access" not in manager("s3a://bucket/flows")
