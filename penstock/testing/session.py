"""A Spark session for tests of connectors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that runs only for seconds: optimized compilation is not worth its cost."""


@contextmanager
def spark_session(home: Path, **settings: Any) -> Iterator[SparkSession]:
    """The session of a worker on two cores, with additional settings of Penstock; stopped at the end.

    There is one per process. In `conftest.py`:

        @pytest.fixture(scope="session")
        def spark(tmp_path_factory):
            with spark_session(tmp_path_factory.mktemp("spark")) as session:
                yield session
    """
    from penstock.engine.runtime.session import open_session
    from penstock.settings import load

    os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK)
    chosen = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": 2, "spark.ui.enabled": False}
    session = open_session(load({"home": home, **chosen, **settings}, env={}, cwd=home).settings)
    try:
        yield session
    finally:
        session.stop()
