from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.testing.flows import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    """Where the flows of a test run."""
    return Bench(spark, tmp_path)
