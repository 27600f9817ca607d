"""Limits for interactive queries on the Spark of a worker: a separate scheduler pool, and a timeout."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POOL = "query"
"""The pool of Spark's scheduler in which they run, see pools.xml."""

CANCEL_S = 0.2
"""Seconds between two looks at whether jobs are to be cancelled."""


@contextmanager
def limited(
    spark: SparkSession, seconds: float, what: str, stop: threading.Event | None = None
) -> Iterator[threading.Event]:
    """Cancel the jobs of this thread after `seconds`, or once `stop` is set.

    The event that is yielded is set when that has happened.
    """
    context: Any = spark.sparkContext
    group, ended, over = uuid.uuid4().hex, threading.Event(), threading.Event()

    def watch() -> None:
        until = time.monotonic() + seconds
        while not ended.wait(min(CANCEL_S, max(0.01, until - time.monotonic()))):
            if time.monotonic() >= until or (stop is not None and stop.is_set()):
                over.set()
                context.cancelJobGroup(group)  # each time: a job may have begun since the last call

    context.setJobGroup(group, what, True)
    context.setLocalProperty("spark.scheduler.pool", POOL)
    threading.Thread(target=watch, name=f"{what}-watch", daemon=True).start()
    try:
        yield over
    finally:
        ended.set()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool"):
            context.setLocalProperty(name, None)
