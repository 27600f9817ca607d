"""A small test run that warms up a new process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.trials.trial import Bench, try_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = {
    "kind": "Pipeline",
    "metadata": {"name": "warm-up"},
    "spec": {
        "source": {"type": "http", "schema": "id BIGINT"},
        "processors": [{"id": "map", "type": "map", "set": {"next": "id + 1"}}],
        "sinks": [{"type": "drop"}],
    },
}


def warm_up(spark: SparkSession) -> None:
    """Run a small document on one event."""
    try_out(Bench(spark, lambda kind, name: None, lambda kind: set()), DOCUMENT, [{"id": 1}])
