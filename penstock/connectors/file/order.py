"""The order of events from files by modification time: Spark reads a micro-batch's largest file first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.file.form import ORDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def ordered(df: DataFrame) -> DataFrame:
    """The frame with the modification time of each event's file, in microseconds, as `$order`."""
    from pyspark.sql import functions as f

    changed = df.metadataColumn("_metadata").getField("file_modification_time")
    return df.withColumn(ORDER, f.unix_micros(changed))
