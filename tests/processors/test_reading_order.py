"""The reading order of events, which all tasks behind a shuffle know."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from penstock.processors.support.event_time import LATEST_SO_FAR, NEVER, in_order
from penstock.processors.support.reading_order import shuffled_in_order
from penstock.spark.spool import ORDER

Event = tuple[int, int | None, int | None]
"""Its partition, offset and time."""


def nothing() -> Any:
    return f.lit(None).cast("bigint")


@pytest.fixture
def order(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The directory of the order, with 50 as the latest time before."""
    context: Any = spark.sparkContext
    (tmp_path / "order").mkdir()
    context.setLocalProperty(ORDER, str(tmp_path / "order"))
    context.setLocalProperty(LATEST_SO_FAR, json.dumps({"$latest": 50}))
    yield tmp_path / "order"
    for name in (ORDER, LATEST_SO_FAR):
        context.setLocalProperty(name, None)


def in_turn(number: int) -> Event:
    return number // 10, number, number * 7 % 100


def moved(number: int) -> Event:
    return number % 3, (number * 11) % 30, number * 7 % 100


def unknown(number: int) -> Event:
    return number // 10, None, None if number % 4 == 0 else number * 7 % 100


@pytest.mark.parametrize("made", [in_turn, moved, unknown])
def test_every_task_knows_the_place_of_its_events_and_the_latest_time_before(
    spark: SparkSession, order: Path, made: Any
) -> None:
    events = [made(number) for number in range(30)]
    random.Random(1).shuffle(events)  # those of a partition come as they are here
    partitions = [[event for event in events if event[0] == each] for each in range(3)]
    read = spark.sparkContext.parallelize(partitions, 3).flatMap(lambda rows: rows)
    df = spark.createDataFrame(read, "partition INT, offset BIGINT, time BIGINT")
    offset, time = f.col("offset"), f.col("time")
    shuffled, place, latest = shuffled_in_order(df, offset, nothing(), time, "$latest", ["time"])
    rows = shuffled.select("partition", "offset", "time", place.alias("place"), latest.alias("latest"))
    flat = [event for each in partitions for event in each]
    columns = [np.array([NEVER if n is None else n for n in column]) for column in zip(*flat, strict=True)]
    places, times = in_order(columns[1], columns[0], columns[2], 50)
    expected = [(*event, *judged) for event, *judged in zip(flat, places, times, strict=True)]
    assert sorted(rows.collect(), key=lambda row: row.place) == sorted(expected, key=lambda row: row[3])


def test_partitions_of_a_log_are_merged_by_time_and_stay_in_their_own_order(
    spark: SparkSession, order: Path
) -> None:
    """One partition has few events, and one event of the other is older than those before it."""
    partitions = [[(0, n, t) for n, t in enumerate([10, 20, 5, 30, 40])], [(1, 0, 15), (1, 1, 35)]]
    read = spark.sparkContext.parallelize(partitions, 2).flatMap(lambda rows: rows)
    df = spark.createDataFrame(read, "partition INT, offset BIGINT, time BIGINT")
    time = f.col("time")
    shuffled, place, _ = shuffled_in_order(df, f.col("offset"), time, time, "$latest", ["time"])
    rows = shuffled.select("time", place.alias("place")).collect()
    assert [row.time for row in sorted(rows, key=lambda row: row.place)] == [10, 15, 20, 5, 30, 35, 40]


def test_files_are_read_by_time_however_a_task_has_them(spark: SparkSession, order: Path) -> None:
    df = spark.createDataFrame([(3, 1), (3, 2), (1, 3), (2, 4)], "changed BIGINT, time BIGINT").coalesce(1)
    shuffled, place, _ = shuffled_in_order(
        df, nothing(), f.col("changed"), f.col("time"), "$latest", ["time"]
    )
    rows = shuffled.select("time", place.alias("place")).collect()
    assert [row.time for row in sorted(rows, key=lambda row: row.place)] == [3, 4, 1, 2]


def test_inputs_are_told_apart(spark: SparkSession, order: Path) -> None:
    df = spark.range(2).select(f.col("id").alias("time"))
    one, place, latest = shuffled_in_order(df, nothing(), nothing(), f.col("time"), "$latest.j", ())
    rows = one.select(place.alias("place"), latest.alias("latest")).collect()
    assert sorted(rows, key=lambda row: row.place) == [(0, None), (1, 0)]
    assert all(file.name.startswith("$latest.j-") for file in order.iterdir())
