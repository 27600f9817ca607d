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
"""The pool of Spark's scheduler for interactive queries, see pools.xml."""

CANCEL_S = 0.2
"""Seconds between two checks whether to cancel jobs."""


@contextmanager
def limited(
    spark: SparkSession, seconds: float, what: str, stop: threading.Event | None = None
) -> Iterator[threading.Event]:
    """Cancel the jobs of this thread after `seconds`, or once `stop` is set.

    The yielded event is set when the jobs were cancelled.
    """
    context: Any = spark.sparkContext
    group, ended, over = uuid.uuid4().hex, threading.Event(), threading.Event()

    def watch() -> None:
        until = time.monotonic() + seconds
        while not ended.wait(min(CANCEL_S, max(0.01, until - time.monotonic()))):
            if time.monotonic() >= until or (stop is not None and stop.is_set()):
                over.set()
                context.cancelJobGroup(group)  # each time: a job may have started since the last call

    context.setJobGroup(group, what, True)
    context.setLocalProperty("spark.scheduler.pool", POOL)
    threading.Thread(target=watch, name=f"{what}-watch", daemon=True).start()
    try:
        yield over
    finally:
        ended.set()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool"):
            context.setLocalProperty(name, None)
