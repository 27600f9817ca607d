from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.sql.helpers import stream

Frames = Callable[[list[dict[str, Any]], str], tuple[DataFrame, DataFrame]]


@pytest.fixture
def frames(spark: SparkSession, tmp_path: Path) -> Frames:
    """The same events as a static frame and as a stream."""

    def make(events: list[dict[str, Any]], schema: str) -> tuple[DataFrame, DataFrame]:
        streamed = stream(spark, tmp_path / "events", events, schema)
        return spark.read.schema(schema).json(str(tmp_path / "events")), streamed

    return make


@pytest.fixture
def empty(spark: SparkSession, tmp_path: Path) -> Callable[[str], DataFrame]:
    """A stream of nothing with a schema, as it is while a document is validated."""
    return lambda schema: stream(spark, tmp_path / "empty", [], schema)
