from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.connectors.base import DeliveryId
from penstock.connectors.file.sink import FileSink
from penstock.connectors.file.storage import HadoopStorage, LocalStorage, Storage
from penstock.engine.delivery.events import FrameEvents as computed
from penstock.errors import Retryable
from tests.flows import NO_STREAMS, json_rows

COLUMNS = "id BIGINT, country STRING, tags ARRAY<STRING>"


def events(spark: SparkSession, count: int = 100) -> DataFrame:
    return spark.range(count).selectExpr(
        "id", "element_at(array('DE','FR'), int(id % 2) + 1) AS country", "array('x') AS tags"
    )


def sink(path: Path, **fields: Any) -> FileSink:
    return FileSink(path=str(path), format=fields.pop("format", "json"), **fields)


def delivery(batch: int, lineage: str = "life", name: str = "lake") -> DeliveryId:
    return DeliveryId("orders", name, lineage, batch)


def problems(path: Path, ddl: str, **fields: Any) -> list[tuple[str, str | None]]:
    return [(p.code, p.path) for p in sink(path, **fields).check(StructType.fromDDL(ddl), NO_STREAMS)]


def test_a_batch_is_a_directory_and_nothing_else_is_left(spark: SparkSession, tmp_path: Path) -> None:
    assert sink(tmp_path / "out").open(NO_STREAMS).write(computed(events(spark)), delivery(7)).events == 100
    (directory,) = (tmp_path / "out").iterdir()
    assert directory.name.startswith("penstock_batch=")
    assert directory.name.endswith("-0000000007")
    assert len(json_rows(tmp_path / "out")) == 100
    assert {file.suffix for file in directory.iterdir()} == {".json"}


def test_a_repeated_batch_is_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    for count in (100, 30):  # the second attempt would even see other events
        assert (
            sink(tmp_path / "out").open(NO_STREAMS).write(computed(events(spark, count)), delivery(0)).events
            == 100
        )
    assert len(json_rows(tmp_path / "out")) == 100


def test_another_life_or_another_sink_is_another_batch(spark: SparkSession, tmp_path: Path) -> None:
    for id in (delivery(0), delivery(0, lineage="second"), delivery(0, name="mirror")):
        sink(tmp_path / "out").open(NO_STREAMS).write(computed(events(spark, 10)), id)
    assert len(json_rows(tmp_path / "out")) == 30


def test_what_a_crash_left_is_cleaned_and_never_seen(spark: SparkSession, tmp_path: Path) -> None:
    writer: Any = sink(tmp_path / "out").open(NO_STREAMS)
    writer.write(computed(events(spark, 10)), delivery(0))
    (name,) = (tmp_path / "out").iterdir()
    staging = Path(LocalStorage().staging(str(tmp_path / "out")))
    half = staging / name.name.removeprefix("penstock_batch=").replace("0000000000", "0000000001")
    half.mkdir(parents=True)
    (half / "part-00000.json").write_text('{"id": 1, "cou')
    assert len(json_rows(tmp_path / "out")) == 10
    sink(tmp_path / "out").open(NO_STREAMS).write(computed(events(spark, 5)), delivery(2))
    assert not half.exists()
    assert len(json_rows(tmp_path / "out")) == 15


def test_a_worker_that_has_lost_the_flow_publishes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """It wakes up with its batch staged, after its successor has begun to stage the same one."""
    sites = [replace(NO_STREAMS, epoch=epoch) for epoch in (1, 2)]
    old, new = (sink(tmp_path / "out").open(site) for site in sites)
    staging = Path(LocalStorage().staging(str(tmp_path / "out")))
    seen: list[set[str]] = []

    def lost() -> None:
        """The old worker is about to publish: its successor delivers the batch, then the lease is checked."""
        seen.append({path.name.split("-")[1] for path in staging.iterdir()})
        assert new.write(computed(events(spark, 10)), delivery(0)).events == 10
        raise Retryable("the lease is lost")

    old.permitted = lost
    with pytest.raises(Retryable):
        old.write(computed(events(spark, 100)), delivery(0))
    assert seen == [{"e00000001"}], "each epoch has a directory of its own"
    assert len(json_rows(tmp_path / "out")) == 10
    third = sink(tmp_path / "out").open(replace(NO_STREAMS, epoch=3))
    third.write(computed(events(spark, 5)), delivery(1))
    assert not staging.exists() or not any(staging.iterdir()), "what the old one has staged is removed"
    assert len(json_rows(tmp_path / "out")) == 15


def test_an_empty_batch_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    assert sink(tmp_path / "out").open(NO_STREAMS).write(computed(events(spark, 0)), delivery(0)).events == 0
    assert list((tmp_path / "out").iterdir()) == []


def test_partitions_lie_below_the_batch_in_one_table(spark: SparkSession, tmp_path: Path) -> None:
    writer = sink(tmp_path / "out", format="parquet", partition_by=["country"]).open(NO_STREAMS)
    writer.write(computed(events(spark)), delivery(0))
    writer.write(computed(events(spark)), delivery(1))
    assert {p.name for p in (tmp_path / "out").glob("*/*")} == {"country=DE", "country=FR"}
    table = spark.read.parquet(str(tmp_path / "out"))
    assert table.count() == 200
    assert set(table.columns) == {"id", "tags", "country", "penstock_batch"}


@pytest.mark.parametrize("kind", ["json", "csv", "parquet", "orc"])
def test_files_roll_by_size(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    limit = 20_000
    frame = spark.range(0, 20_000, 1, 1).selectExpr("id", "uuid() AS text")
    writer = sink(tmp_path / "out", format=kind, max_file_bytes=limit).open(NO_STREAMS)
    for batch in range(2):
        assert writer.write(computed(frame), delivery(batch)).events == 20_000
    for directory in (tmp_path / "out").iterdir():
        sizes = [file.stat().st_size for file in directory.iterdir()]
        assert len(sizes) > 5
        assert max(sizes) < limit * 2
    back = spark.read.format(kind).option("header", "true").load(str(tmp_path / "out"))
    assert back.count() == 40_000
    assert back.select("id").distinct().count() == 20_000


def test_csv_and_text_can_be_read_back(spark: SparkSession, tmp_path: Path) -> None:
    sink(tmp_path / "csv", format="csv").open(NO_STREAMS).write(
        computed(events(spark, 3).drop("tags")), delivery(0)
    )
    (file,) = [f for f in (tmp_path / "csv").rglob("*.csv") if f.stat().st_size > 20][:1]
    assert file.read_text().startswith("id,country\n")
    sink(tmp_path / "txt", format="text").open(NO_STREAMS).write(
        computed(events(spark, 3).select("country")), delivery(0)
    )
    lines = [line for f in (tmp_path / "txt").rglob("*.txt") for line in f.read_text().split()]
    assert sorted(lines) == ["DE", "DE", "FR"]


def test_what_does_not_fit_is_told_before_anything_runs(tmp_path: Path) -> None:
    assert problems(tmp_path, COLUMNS) == []
    assert problems(tmp_path, COLUMNS, partition_by=["contry"]) == [("unknown_column", "partition_by[0]")]
    assert problems(tmp_path, "a INT", partition_by=["a"]) == [("no_columns", "partition_by")]
    assert problems(tmp_path, COLUMNS, format="csv") == [("unsupported_type", "format")]
    assert problems(tmp_path, COLUMNS, format="text") == [("unsupported_type", "format")]
    for kind in ("INTERVAL DAY TO SECOND", "INTERVAL YEAR TO MONTH", "VOID", "ARRAY<INTERVAL DAY>"):
        for format in ("json", "csv", "parquet", "orc"):
            assert problems(tmp_path, f"a INT, b {kind}", format=format) == [("unsupported_type", "format")]
    for kind in ("TIMESTAMP", "TIMESTAMP_NTZ", "MAP<STRING, INT>", "STRUCT<x: ARRAY<TIMESTAMP>>"):
        assert problems(tmp_path, f"a INT, b {kind}", format="orc") == [("unsupported_type", "format")]
    assert problems(tmp_path, "a INT, penstock_batch STRING") == [("reserved_column", "path")]


@pytest.fixture(params=["local", "hadoop"])
def storage(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Storage:
    return LocalStorage() if request.param == "local" else HadoopStorage(spark, tmp_path.as_uri())


def test_a_directory_is_published_once(storage: Storage, tmp_path: Path) -> None:
    target = tmp_path / "out" / "b"
    for text in ("first", "second"):
        source = tmp_path / text
        source.mkdir()
        (source / "file").write_text(text)
        (tmp_path / "out").mkdir(exist_ok=True)
        storage.publish(str(source), str(target))
        assert not storage.exists(str(source))
    assert [p.read_text() for p in target.iterdir()] == ["first"]
    assert storage.sizes(str(tmp_path / "out")) == [5]
    assert [json.loads(f'"{c}"').rsplit("/", 1)[-1] for c in storage.children(str(tmp_path / "out"))] == ["b"]
    storage.remove(str(target))
    assert storage.children(str(tmp_path / "out")) == []
    assert storage.children(str(tmp_path / "nothing")) == []
