"""Shared code for sources that are Python Data Sources."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from penstock.spark.catalyst import Catalyst
from penstock.specs.policies import Batch

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

AUTO_EVENTS = 1_000_000
"""Events in a micro-batch with `max_inflight: auto`: enough to hide Spark's cost per micro-batch."""

AUTO_BYTES = 128 * 1024 * 1024
"""With `auto`, a micro-batch holds fewer large batches: it passes through the driver's memory."""

BEGIN = "begin"
"""Marks the offset at which a flow begins to read a stream: a batch that ends there is empty."""

UNENDED = "unended"
"""In an offset of a stream: transactions that did not end in time, as `count`, `id` and `first`."""

LONGEST_WAIT_S = 0.5
"""Maximum seconds that one poll may sleep: stopping a pipeline has to wait for it."""


_KNOWN: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The data sources of each session."""


def inflight(batch: Batch) -> int:
    """The number of batches that a micro-batch may hold."""
    return max(1, AUTO_EVENTS // batch.max_events) if batch.max_inflight == "auto" else batch.max_inflight


def inflight_bytes(batch: Batch) -> int | None:
    """The size in bytes that a micro-batch may have; None if only the number of batches is limited."""
    return AUTO_BYTES if batch.max_inflight == "auto" else None


def register(spark: Any, source: type[DataSource]) -> None:
    """Register a data source in a session, once: Spark would log a warning for each repetition."""
    from pyspark.errors import AnalysisException

    known = _KNOWN.setdefault(spark, set())
    if source.name() in known:
        return
    # Spark looks for an existing source in the session that is active in this thread, which may be another.
    Catalyst(spark).activate()
    try:
        spark.dataSource.register(source)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    known.add(source.name())


@cache
def settle() -> None:
    """Speed up small tasks in a Python process of Spark. Call it in that process.

    Spark collects garbage after each task, over all loaded modules, which takes several times as long as a
    batch itself. Objects that exist now are exempted.
    """
    gc.collect()
    gc.freeze()
