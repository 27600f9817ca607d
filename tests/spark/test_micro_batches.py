"""What the engine reads of Spark's own micro-batch, inside `foreachBatch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.spark.micro_batches import CurrentBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_offsets_watermark_and_metrics_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, second in (("a", 10), ("b", 40)):
        row = f'{{"id": 1, "at": "2026-01-01T00:00:{second}Z"}}\n'
        (tmp_path / "in" / f"{name}.json").write_text(row * 3)
    read = spark.readStream.schema("id BIGINT, at TIMESTAMP").option("maxFilesPerTrigger", 1)
    df = read.json(str(tmp_path / "in")).withWatermark("at", "10 seconds").dropDuplicates(["id", "at"])
    df = df.observe("passed", f.count(f.lit(1)).alias("given"))
    seen: list[Any] = []

    def deliver(batch: DataFrame, number: int) -> None:
        current = CurrentBatch(spark)
        for _ in range(2):  # a batch that is computed again is counted once
            current.begin({"penstock.a": "1"})
            batch.collect()
        offsets = current.committed, current.available
        seen.append((number, offsets, current.watermark_ms, current.end(), current.query))

    query = df.writeStream.foreachBatch(deliver).option("checkpointLocation", str(tmp_path / "ck"))
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    numbers, offsets, watermarks, metrics, queries = zip(*seen, strict=True)
    assert set(queries) == {str(started.id)}
    assert numbers[:2] == (0, 1)
    assert [(first.get("logOffset"), last["logOffset"]) for first, last in offsets[:2]] == [(None, 0), (0, 1)]
    assert watermarks[:2] == (0, 1767225600_000)  # ten seconds before the first event
    assert [each["passed"]["given"] for each in metrics[:2]] == [1, 1]


def test_local_properties_stay_for_the_jobs_of_sinks_but_not_the_spool(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen: list[Any] = []

    def deliver(batch: DataFrame, number: int) -> None:
        current = CurrentBatch(spark)
        context = spark.sparkContext
        current.begin({"penstock.a": "x", "penstock.spool": "y"})
        seen.append([context.getLocalProperty(name) for name in ("penstock.a", "penstock.spool")])
        batch.collect()
        current.end()
        seen.append([context.getLocalProperty(name) for name in ("penstock.a", "penstock.spool")])

    run(spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load(), deliver, tmp_path)
    assert seen[:2] == [["x", "y"], ["x", ""]]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("rows", [0, 3, 40_000])
def test_rows_are_collected_with_their_types(
    spark: SparkSession, tmp_path: Path, rows: int, whole: bool
) -> None:
    """Few rows come in the answer of the call, many in a file that is gone at once."""
    columns = [
        f.col("value").alias("n"),
        f.col("timestamp").alias("at"),
        f.when(f.col("value") % 2 == 0, f.concat(f.lit("é"), f.col("value"))).alias("text"),
        f.create_map(f.lit("k"), f.col("value").cast("string")).alias("map"),
        f.col("value").cast("decimal(20, 3)").alias("amount"),
    ]
    found: list[tuple[pa.Table, pa.Table]] = []

    def deliver(batch: DataFrame, number: int) -> None:
        current = CurrentBatch(spark)
        current.begin({})
        table = current.collect(batch, to_arrow_schema(batch.schema, timezone="UTC"), tmp_path, whole=whole)
        current.end()
        found.append((table, batch.toArrow()))

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", max(rows, 1)).load()
    run(source.filter(f.lit(rows > 0)).select(*columns), deliver, tmp_path)
    for table, expected in found[:2]:
        assert table.num_rows == rows
        assert table.equals(expected)
    assert not list(tmp_path.glob("*.arrow"))


def run(df: DataFrame, deliver: Any, directory: Path) -> None:
    """Run two micro-batches or more."""
    batches = []

    def counted(batch: DataFrame, number: int) -> None:
        deliver(batch, number)
        batches.append(number)

    query = df.writeStream.foreachBatch(counted).option("checkpointLocation", str(directory / "ck")).start()
    while len(batches) < 2:
        assert query.isActive, str(query.exception())
        time.sleep(0.05)
    query.stop()
