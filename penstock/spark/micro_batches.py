"""The current micro-batch of a streaming query, from internal classes of Spark's engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SOURCE = Path(__file__).with_name("java") / "MicroBatches.java"


INLINE = 256 * 1024
"""Maximum bytes of events that are passed in a call; larger results are passed in a file."""


class CurrentBatch:
    """The batch of the query that is calling `foreachBatch` in this thread."""

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        self._spark, self._java = session._jsparkSession, java_class(spark, SOURCE)
        found = json.loads(self._java.describe(self._spark))
        self.query, self.run = str(found["query"]), str(found["run"])
        """The id of the query, which is stored in its checkpoint, and the id of its run."""
        self.committed, self.available = _offset(found, "committed"), _offset(found, "available")
        """The start and end offsets of the batch in the first source; empty if they are not JSON objects."""
        self.watermark_ms = int(found["watermark"])
        """The watermark in milliseconds; 0 until there is one."""

    def begin(self, properties: Mapping[str, str]) -> None:
        """Set local properties for the computation of the batch, and reset its observed metrics."""
        self._java.begin(self._spark, self.query, json.dumps(properties))

    def collect(self, df: DataFrame, schema: pa.Schema, directory: Path, *, whole: bool = False) -> pa.Table:
        """All rows of a frame with columns of this schema; `whole`: it is the frame of the batch.

        Many rows pass through a file in the directory, which is unlinked at once but stays readable. This
        takes one call to the JVM where `toArrow` takes over twenty, which matters for small batches.
        """
        import pyarrow as pa

        file = directory / "rows.arrow"
        dataset: Any = df._jdf
        query = self.query if whole else None
        message = schema.serialize().to_pybytes()
        found = self._java.collect(self._spark, query, dataset, message, str(file), INLINE)
        if found:
            return pa.ipc.open_stream(found).read_all()
        with pa.memory_map(str(file)) as rows:
            file.unlink()
            return pa.ipc.open_stream(rows).read_all()

    def write(self, df: DataFrame, writer: Any, *, whole: bool = False) -> list[bytes]:
        """Compute a frame like `collect`, but a Java function writes its rows in the tasks; its results."""
        dataset: Any = df._jdf
        found = self._java.write(self._spark, self.query if whole else None, dataset, writer)
        answers, at = [], 0
        while at < len(found):
            size = int.from_bytes(found[at : at + 4], "big")
            answers.append(bytes(found[at + 4 : at + 4 + size]))
            at += 4 + size
        return answers

    @property
    def shuffles(self) -> bool:
        """Whether the batch is shuffled: if computed again, Spark skips the steps before the shuffle."""
        return bool(self._java.shuffles(self._spark, self.query))

    def end(self) -> dict[str, Mapping[str, Any]]:
        """The observed metrics of the computed batch by name, without NULLs.

        Jobs of this query keep the local properties except the spool, to which nothing more is written.
        """
        found = json.loads(self._java.end(self._spark, self.query))
        return {name: json.loads(row) for name, row in found.items()}


def _offset(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = json.loads(found[name]) if name in found else None
    return value if isinstance(value, dict) else {}
