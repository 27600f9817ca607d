"""The session, the filter and the trigger that all hand-written PySpark jobs share."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.data import COLUMNS, WHERE


def session(options: Mapping[str, str] | None = None) -> SparkSession:
    """A session as a data engineer would configure it, with additional options."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # otherwise workers use the first Python on the PATH
    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
    )
    for name, value in (options or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def good_orders(events: DataFrame) -> DataFrame:
    """The job itself."""
    return events.where(WHERE).selectExpr(*COLUMNS)


def run_to_end(writer: DataStreamWriter, checkpoint: str) -> None:
    """Run a streaming query over all available data."""
    options = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    options.start().awaitTermination()
