"""Rows that tasks take out of a frame lie in the spool: each once, whatever happens to tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from penstock.spark.catalyst import Catalyst, resolved
from penstock.spark.spool import DIRECTORY, lines, silent, spooled, spooling, unfinished

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sieved(df: DataFrame, number: int = 0) -> DataFrame:
    """The odd ids; the even ones go to the spool."""
    return spooled(df, f.col("id") % 2 == 0, f.concat(f.lit("é "), f.col("id").cast("string")), number)


def taken(directory: Path) -> list[int]:
    return [int(line.removeprefix("é ")) for line in lines(directory)]


def test_rows_are_kept_or_written_once(spark: SparkSession, tmp_path: Path) -> None:
    df = sieved(spark.range(0, 1000, 1, 4))
    for _ in range(2):  # what an earlier computation has left is gone
        with spooling(spark, tmp_path / "spool"):
            assert [row.id for row in df.collect()] == list(range(1, 1000, 2))
        assert taken(tmp_path / "spool") == list(range(0, 1000, 2))


def test_frames_after_one_another_have_files_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    first = sieved(spark.range(0, 100, 1, 2))
    both = sieved(first.selectExpr("id * 2 AS id").repartition(3), number=1)
    with spooling(spark, tmp_path / "spool"):
        assert both.count() == 0
    assert sorted(taken(tmp_path / "spool")) == sorted(
        [*range(0, 100, 2), *(2 * i for i in range(1, 100, 2))]
    )


def test_the_order_is_that_of_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    with spooling(spark, tmp_path / "spool"):
        sieved(spark.range(0, 50_000, 1, 3)).count()
    assert taken(tmp_path / "spool") == list(range(0, 50_000, 2))


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 999 in batch.column("id").to_pylist():
                raise RuntimeError("no")
            yield batch

    df = sieved(spark.range(0, 1000, 1, 2)).mapInArrow(broken, "id BIGINT")
    with spooling(spark, tmp_path / "spool"), pytest.raises(Exception, match="no"):
        df.collect()
    until = time.monotonic() + 60  # the task of the first partition was cancelled, and may still be ending
    while halves := list((tmp_path / "spool").glob("*.half")):
        assert time.monotonic() < until, halves
        time.sleep(0.05)
    assert set(taken(tmp_path / "spool")) <= set(range(0, 500, 2)), "the second partition has failed"


def test_files_that_no_task_has_finished(tmp_path: Path) -> None:
    names = ("0000-000003-000000", "0000-000003-000000.7.half", "0000-000003-000001.8.half")
    for name in names:
        (tmp_path / name).touch()
    assert unfinished(tmp_path) == ["0000-000003-000001"]


def test_a_closed_spool_takes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A job of a sink computes again what a lost executor had cached: its notes are there already."""
    df = sieved(spark.range(0, 100, 1, 2))
    with spooling(spark, tmp_path / "spool"):
        df.count()
        spark.sparkContext.setLocalProperty(DIRECTORY, "")
        assert df.count() == 50
    assert taken(tmp_path / "spool") == list(range(0, 100, 2))
    assert unfinished(tmp_path / "spool") == []


def test_a_silent_plan_leaves_out_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    df = sieved(spark.range(0, 100, 1, 2)).observe("passed", f.count(f.lit(1)).alias("rows"))
    quiet = Catalyst(spark).frame(silent(spark, resolved(df)))
    with spooling(spark, tmp_path / "spool"):
        assert [row.id for row in quiet.collect()] == list(range(1, 100, 2))
    assert taken(tmp_path / "spool") == []


def test_without_a_directory_it_fails(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"penstock\.spool"):
        sieved(spark.range(2)).collect()
