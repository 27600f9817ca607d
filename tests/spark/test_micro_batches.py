"""What the engine reads of Spark's own micro-batch, inside `foreachBatch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

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
            current.reset_metrics()
            batch.collect()
        offsets = current.committed, current.available
        seen.append((number, offsets, current.watermark_ms, current.metrics(), current.query))

    query = df.writeStream.foreachBatch(deliver).option("checkpointLocation", str(tmp_path / "ck"))
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    numbers, offsets, watermarks, metrics, queries = zip(*seen, strict=True)
    assert set(queries) == {str(started.id)}
    assert numbers[:2] == (0, 1)
    assert [(first.get("logOffset"), last["logOffset"]) for first, last in offsets[:2]] == [(None, 0), (0, 1)]
    assert watermarks[:2] == (0, 1767225600_000)  # ten seconds before the first event
    assert [each["passed"]["given"] for each in metrics[:2]] == [1, 1]
