"""Frames as tables and back, with structs that are NULL and have fields that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from penstock.spark.tables import frame_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = [
    {"id": 0, "s": None, "a": None, "m": None},
    {"id": 1, "s": {"x": 1, "y": {"z": 1}}, "a": [{"x": 1}], "m": [("k", {"x": 1})]},
]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    one, id = f.col("id") == 1, f.col("id")
    struct = f.struct(id.alias("x"), f.struct(id.alias("z")).alias("y"))
    inner = f.struct(id.alias("x"))
    return spark.range(2).select(
        "id",
        f.when(one, struct).alias("s"),
        f.when(one, f.array(inner)).alias("a"),
        f.when(one, f.create_map(f.lit("k"), inner)).alias("m"),
    )


def test_a_frame_is_a_table(frame: DataFrame) -> None:
    assert table_of(frame).to_pylist() == ROWS
    assert table_of(frame.limit(0)).num_rows == 0


def test_a_table_is_a_frame(spark: SparkSession, frame: DataFrame) -> None:
    assert table_of(frame_of(spark, table_of(frame))).to_pylist() == ROWS
