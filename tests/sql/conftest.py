from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.sql.helpers import EVENTS, SCHEMA, stream


@pytest.fixture(scope="session")
def streamed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    return stream(spark, tmp_path_factory.mktemp("events"), EVENTS, SCHEMA)


@pytest.fixture(scope="session")
def events(spark: SparkSession, streamed: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The same events as a static frame."""
    folder: Path = tmp_path_factory.mktemp("static")
    stream(spark, folder, EVENTS, SCHEMA)
    return spark.read.schema(SCHEMA).json(str(folder)).cache()
