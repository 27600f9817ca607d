"""The current micro-batch of a streaming query, from internal classes of Spark's engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("java") / "MicroBatches.java"

QUERY_ID = "sql.streaming.queryId"
"""The local property that names the query in the thread of `foreachBatch`."""


class CurrentBatch:
    """The batch of the query that has called `foreachBatch` in this thread."""

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        self._spark, self._java = session._jsparkSession, java_class(spark, SOURCE)
        self.query = str(spark.sparkContext.getLocalProperty(QUERY_ID))
        """The id of the query, which its checkpoint keeps."""
        found = json.loads(self._java.describe(self._spark, self.query))
        self.committed, self.available = _offset(found, "committed"), _offset(found, "available")
        """The offsets of the first source between which the batch lies; empty if they are no JSON objects."""
        self.watermark_ms = int(found["watermark"])
        """The watermark; 0 until there is one."""

    def reset_metrics(self) -> None:
        """Reset the observed metrics, before the batch is computed."""
        self._java.reset(self._spark, self.query)

    def metrics(self) -> dict[str, Mapping[str, Any]]:
        """The observed metrics of the computed batch, by name. A NULL is left out."""
        found = json.loads(self._java.metrics(self._spark, self.query))
        return {name: json.loads(row) for name, row in found.items()}


def _offset(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = json.loads(found[name]) if name in found else None
    return value if isinstance(value, dict) else {}
