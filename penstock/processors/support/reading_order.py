"""The order in which the events of a micro-batch were read, available to all tasks after a shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.spark.java_classes import called, java_class
from penstock.spark.spool import READING_ORDER
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NUMBER = "$number"


def shuffled_in_order(
    df: DataFrame, offset: Column, place: Column, time: Column, name: str, by: Sequence[str]
) -> tuple[DataFrame, Column, Column]:
    """A streaming frame partitioned by some columns; the place of each event, and the latest time before it.

    `offset` and `place` are those set by the source. `name` distinguishes the inputs of a flow. Without
    columns to partition by, events are distributed evenly.
    """
    from pyspark.sql import functions as f

    spark, made = df.sparkSession, java_class(df.sparkSession, READING_ORDER)
    read = df.withColumn(NUMBER, called(spark, made.number(name), offset, place, time))
    number = f.col(quote(NUMBER))
    shuffled = read.repartition(*map(quote, by or [NUMBER]))
    return shuffled, called(spark, made.place(name), number), called(spark, made.latest(name), number)
