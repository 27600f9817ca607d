"""The `file` connectors in an object store: what readers see, crashes, older epochs, and clear errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pytest
from hypothesis import given
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.connectors.base import DeliveryId
from penstock.connectors.file.sink import FileSink
from penstock.connectors.file.source import FileSource
from penstock.connectors.file.storage import ObjectStorage
from penstock.connectors.file.store import Store, explained
from penstock.connectors.probe import Probe
from penstock.engine.delivery.events import FrameEvents as computed
from penstock.engine.plan.connections import ConnectorRole, probe_connector
from penstock.errors import Invalid, Retryable
from penstock.spark.java_classes import CACHE
from penstock.specs.policies import Batch
from penstock.testing.flows import Bench, files
from tests.connectors.test_file_lossless import FLAT, rows, several, source_rows, spark_schema, tables
from tests.flows import NO_STREAMS
from tests.s3_server import PASSWORD, REGION, S3, USER

NO_UPLOADS = {"options": {"fs.s3a.multipart.uploads.enabled": "false"}}
"""A store that has no uploads in parts."""


class Lake:
    """A bucket for one test."""

    def __init__(self, store: S3, **access: Any) -> None:
        self.store, self.bucket = store, store.bucket()
        self.url, self.path = f"s3a://{self.bucket}/lake", store.path(self.bucket) / "lake"
        self.access = {**store.access, **access}

    def sink(self, format: str = "json", **fields: Any) -> FileSink:
        return FileSink(path=self.url, format=format, store=Store(**self.access), **fields)  # type: ignore[arg-type]

    def objects(self) -> list[str]:
        """The names of all objects."""
        root = self.store.path(self.bucket)
        return sorted(str(file.relative_to(root)) for file in root.rglob("*") if _is_object(file, root))

    def uploads(self) -> list[Path]:
        """The uploads that are not complete: the server keeps each in a directory."""
        return [file for file in self.store.path(self.bucket).glob(".sgwtmp/multipart/*/*") if file.is_dir()]


def _is_object(file: Path, root: Path) -> bool:
    return file.is_file() and not file.relative_to(root).parts[0].startswith(".")


def events(spark: SparkSession, count: int = 100) -> DataFrame:
    return spark.range(0, count, 1, 4).selectExpr("id", "concat('event ', id) AS name")


def delivery(batch: int) -> DeliveryId:
    return DeliveryId("orders", "lake", "life", batch)


def test_a_pipeline_to_an_object_store_and_back(bench: Bench, object_store: S3) -> None:
    lake, out = Lake(object_store), bench.root / "out"
    source = {"type": "generate", "count": 40, "row": {"id": "seq", "name": "concat('event ', seq)"}}
    place = {"type": "file", "path": lake.url, "format": "parquet", "store": lake.access}
    state = bench.run(source, place, batch={"max_events": 20, "max_inflight": 1})
    assert state.outcome == "completed", state.error
    assert [name.split("/")[2] for name in lake.objects()] == ["part.snappy.parquet"] * 2
    assert lake.uploads() == []
    state = bench.part("back").run(
        {**place, "finite": True}, {"type": "file", "path": str(out), "format": "json"}
    )
    assert state.outcome == "completed", state.error
    found = sorted(files(out), key=lambda event: event["id"])
    assert found == [{"id": number, "name": f"event {number}"} for number in range(40)]


def test_plain_readers_see_one_table(spark: SparkSession, object_store: S3) -> None:
    lake = Lake(object_store)
    writer = lake.sink("parquet").open(NO_STREAMS)
    for batch in range(2):
        assert writer.write(computed(events(spark)), delivery(batch)).events == 100
    s3 = pa.fs.S3FileSystem(
        access_key=USER, secret_key=PASSWORD, endpoint_override=object_store.url, region=REGION
    )
    seen = pa.dataset.dataset(f"{lake.bucket}/lake", filesystem=s3, partitioning="hive").to_table()
    assert sorted(seen["id"].to_pylist()) == sorted([*range(100)] * 2)
    assert len(set(seen["penstock_batch"].to_pylist())) == 2
    with duckdb.connect() as db:  # by the files of the server: its module for S3 has to be downloaded
        found = db.sql(f"SELECT count(*), count(DISTINCT penstock_batch) FROM '{lake.path}/**/*.parquet'")
        assert found.fetchall() == [(200, 2)]
    assert len(lake.objects()) == 2, "nothing else is left"


@pytest.mark.parametrize("access", [{}, NO_UPLOADS], ids=["uploads", "copies"])
def test_nothing_is_visible_before_the_commit_and_all_of_it_after(
    spark: SparkSession, object_store: S3, access: dict[str, Any]
) -> None:
    lake = Lake(object_store, **access)
    writer, seen = lake.sink().open(NO_STREAMS), []

    def look() -> None:
        seen.append([name for name in lake.objects() if "_staging/" not in name])
        assert bool(lake.uploads()) == (not access)

    writer.permitted = look  # type: ignore[method-assign]
    assert writer.write(computed(events(spark)), delivery(0)).events == 100
    (name,) = lake.objects()
    assert name.endswith("-0000000000/part.json")
    assert len((object_store.path(lake.bucket) / name).read_text().splitlines()) == 100
    assert seen == [[]]
    assert lake.uploads() == []
    # Repeated, even with other events, it is recognized.
    assert lake.sink().open(NO_STREAMS).write(computed(events(spark, 30)), delivery(0)).events == 100
    assert lake.objects() == [name]
    # A batch without events leaves nothing.
    assert writer.write(computed(events(spark, 0)), delivery(1)).events == 0
    assert (lake.objects(), lake.uploads()) == ([name], [])


def test_a_batch_of_several_parts(spark: SparkSession, object_store: S3) -> None:
    lake = Lake(object_store)
    big = spark.range(0, 40_000, 1, 2).selectExpr("id", "repeat(uuid(), 28) AS text")
    assert (
        lake.sink(options={"compression": "none"}).open(NO_STREAMS).write(computed(big), delivery(0)).events
        == 40_000
    )
    (name,) = lake.objects()
    file = object_store.path(lake.bucket) / name
    assert file.stat().st_size > 2 * 16 * 1024 * 1024
    assert sorted(json.loads(line)["id"] for line in file.open()) == [*range(40_000)]


def test_a_worker_that_has_lost_the_flow_changes_nothing(spark: SparkSession, object_store: S3) -> None:
    """It wakes up with its batch staged, after its successor has delivered the same one."""
    lake = Lake(object_store)
    old, new = (lake.sink().open(replace(NO_STREAMS, epoch=epoch)) for epoch in (1, 2))

    def successor() -> None:
        assert new.write(computed(events(spark, 10)), delivery(0)).events == 10

    def lost() -> None:
        successor()
        raise Retryable("the lease is lost")

    for permitted in (lost, lambda: None):  # the second time the old one does not even know that
        old.permitted = permitted  # type: ignore[method-assign]
        try:
            old.write(computed(events(spark, 100)), delivery(0))
        except Retryable:
            assert permitted is lost
        (name,) = lake.objects()
        assert len((object_store.path(lake.bucket) / name).read_text().splitlines()) == 10
    assert lake.uploads() == []


def test_an_upload_of_an_older_worker_cannot_be_completed(spark: SparkSession, object_store: S3) -> None:
    """The old worker is just between its last look at the batch and the request that publishes it."""
    lake = Lake(object_store)
    old: Any
    old, new = (lake.sink().open(replace(NO_STREAMS, epoch=epoch)) for epoch in (1, 2))

    class Late(ObjectStorage):
        def exists(self, path: str) -> bool:
            found = super().exists(path)
            if self.staged:
                assert new.write(computed(events(spark, 10)), delivery(0)).events == 10
            return found

        staged = False

    def permitted() -> None:
        old.storage.__class__, old.storage.staged = Late, True

    old.permitted = permitted
    with pytest.raises(Exception, match=r"pending|(?i:upload)"):
        old.write(computed(events(spark, 100)), delivery(0))
    (name,) = lake.objects()
    assert len((object_store.path(lake.bucket) / name).read_text().splitlines()) == 10
    assert lake.uploads() == []


CHILD = """
import json, sys, time
from pathlib import Path
from penstock.connectors.base import DeliveryId
from penstock.connectors.file.sink import FileSink
from penstock.connectors.file.source import FileSource
from penstock.engine.delivery.events import FrameEvents
from penstock.testing.session import spark_session
from tests.flows import NO_STREAMS

def staged():
    print("staged", flush=True)
    time.sleep(600)

with spark_session(Path(sys.argv[1]), cache=sys.argv[2]) as spark:
    writer = FileSink(**json.loads(sys.argv[3])).open(NO_STREAMS)
    writer.permitted = staged
    events = spark.range(100).selectExpr("id", "'old' AS name")
    writer.write(FrameEvents(events), DeliveryId("orders", "lake", "life", 0))
"""


def test_a_kill_between_writing_and_the_commit(spark: SparkSession, object_store: S3, tmp_path: Path) -> None:
    lake = Lake(object_store)
    spec = json.dumps({"path": lake.url, "format": "json", "store": lake.access})
    command = [sys.executable, "-c", CHILD, str(tmp_path / "home"), spark.conf.get(CACHE) or "", spec]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=Path(__file__).parents[2]
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "staged\n"
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert [name for name in lake.objects() if "_staging/" not in name] == []
    assert len(lake.uploads()) == 1
    writer = lake.sink().open(replace(NO_STREAMS, epoch=2))
    assert writer.write(computed(events(spark)), delivery(0)).events == 100
    (name,) = lake.objects()
    text = (object_store.path(lake.bucket) / name).read_text()
    assert len(text.splitlines()) == 100
    assert "old" not in text
    assert lake.uploads() == [], "what the killed process has uploaded is removed"


def test_nothing_is_lost_in_the_files(spark: SparkSession, object_store: S3, tmp_path: Path) -> None:
    @several
    @given(table=tables(FLAT))
    def check(table: pa.Table) -> None:
        lake = Lake(object_store)
        frame = spark.createDataFrame(table, spark_schema(table))
        done = lake.sink("parquet").open(NO_STREAMS).write(computed(frame), delivery(0))
        assert (done.events, [*done.rejected]) == (len(table), [])
        (name,) = lake.objects()
        back = pa.parquet.read_table(object_store.path(lake.bucket) / name, partitioning=None)
        assert rows(back) == rows(table)
        found = source_rows(spark, lake.url, "parquet", table, tmp_path, store=Store(**lake.access))
        assert found == rows(table)

    check()


def test_the_connection_test_says_what_is_wrong(spark: SparkSession, object_store: S3) -> None:
    lake = Lake(object_store)

    def codes(role: ConnectorRole = "sink", path: str = lake.url, **access: str) -> list[Any]:
        spec = {"type": "file", "path": path, "format": "json", "store": {**lake.access, **access}}
        if role == "source":
            spec["schema"] = "id BIGINT"
        found: Probe = probe_connector(role, spec, NO_STREAMS, spark, {})
        for problem in found.problems:
            assert problem.hint
            assert "Exception" not in problem.message
            assert PASSWORD[:-1] not in str(problem)
        return [(problem.code, problem.path) for problem in found.problems]

    assert codes() == []
    assert codes("source") == [("path_not_found", "path")]
    lake.sink().open(NO_STREAMS).write(computed(events(spark)), delivery(0))
    assert codes("source") == []
    # The bucket is in use by the right login, which must not be taken for another one.
    for role in ("source", "sink"):
        assert codes(role, secret_key=PASSWORD[:-1]) == [("store_login", "store")]
        assert codes(role, access_key="nobody") == [("store_login", "store")]
        assert codes(role, endpoint="http://127.0.0.1:9") == [("unreachable", "store.endpoint")]
        assert codes(role, endpoint="http://no-such-host.invalid") == [("unknown_host", "store.endpoint")]
        assert codes(role, path="s3a://no-such-bucket/lake") == [("bucket_not_found", "path")]


def checked(path: str, **fields: Any) -> list[tuple[str, str | None]]:
    sink = FileSink(path=path, format="json", **fields)
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    problems = list(sink.check(schema, NO_STREAMS))
    assert all(problem.hint for problem in problems)
    return [(problem.code, problem.path) for problem in problems]


def test_a_batch_of_several_objects_is_refused() -> None:
    assert checked("s3a://b/lake") == []
    assert checked("s3a://b/lake", partition_by=["name"]) == [("one_object", "partition_by")]
    assert checked("gs://b/lake", max_file_bytes=10) == [("one_object", "max_file_bytes")]
    assert checked("hdfs://host/lake", partition_by=["name"], max_file_bytes=10) == []


def test_settings_of_a_store_fit_the_path() -> None:
    assert checked("out", store=Store(region="x")) == [("not_an_object_store", "store")]
    assert checked("gs://b/lake", store=Store(region="x")) == [("not_an_object_store", "store.region")]
    assert checked("abfs://b/lake", store=Store(options={"fs.azure.x": "y"})) == []
    assert checked("s3://b/lake") == [("no_file_system", "path")]
    source = FileSource(path="in", format="text", store=Store(region="x"))
    with pytest.raises(Invalid, match="the path is local"):
        source.read(None, Batch(), NO_STREAMS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be set together"):
        Store(access_key="x")
    with pytest.raises(ValueError, match="needs access_key"):
        Store(session_token="x")


def test_a_file_system_that_is_not_there(spark: SparkSession) -> None:
    spec = {"type": "file", "path": "gs://bucket/lake", "format": "json", "store": {"options": {"a": "b"}}}
    (problem,) = probe_connector("sink", spec, NO_STREAMS, spark, {}).problems
    assert (problem.code, problem.path) == ("no_file_system", "path")
    assert "spark.jars" in (problem.hint or "")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("java.nio.file.AccessDeniedException: x", "store_login"),
        ("org.apache.hadoop.fs.s3a.UnknownStoreException: x", "bucket_not_found"),
        ("java.net.ConnectException: Connection refused", "store_unreachable"),
    ],
)
def test_errors_of_a_store(text: str, code: str) -> None:
    found = explained(f"java.io.IOException: x\n{text}", "s3a://b/lake", None)
    assert found is not None
    assert [problem.code for problem in found.problems] == [code]
    assert explained(text, "out/lake", None) is None
    assert explained("java.lang.ArithmeticException: x", "s3a://b/lake", None) is None
