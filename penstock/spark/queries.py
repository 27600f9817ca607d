"""The state of a streaming query beyond Spark's public interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.spark.driver import await_calls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LOOKING = "Getting offsets from"
WAITING = ("Waiting for data to arrive", "Waiting for next trigger")
"""The beginning of a status message of a query, and complete messages."""


def start_query(writer: DataStreamWriter, deliver: Callable[[DataFrame, int], None]) -> StreamingQuery:
    """Start a query that calls a function with each micro-batch and its number, as `foreachBatch` does.

    PySpark's wrapper of such a function creates a session object for each micro-batch, with a dozen calls to
    the JVM. All micro-batches of a query share a session, so one object is enough.
    """
    made: Any = writer
    gateway = made._spark._sc._gateway
    sources = gateway.jvm.org.apache.spark.sql.execution.streaming.sources
    sources.PythonForeachBatchHelper.callForeachBatch(made._jwrite, _BatchFunction(made._spark, deliver))
    await_calls(made._spark)
    return writer.start()


class _BatchFunction:
    """The function of a query that Spark calls, from Java, in the thread of the query."""

    def __init__(self, spark: SparkSession, deliver: Callable[[DataFrame, int], None]) -> None:
        self._spark, self._deliver = spark, deliver
        self._session: SparkSession | None = None

    def call(self, frame: Any, number: int) -> None:
        """Deliver a micro-batch."""
        from pyspark.sql import DataFrame, SparkSession

        if self._session is None:
            self._session = SparkSession(self._spark.sparkContext, frame.sparkSession())
        self._deliver(DataFrame(frame, self._session), number)

    class Java:
        """The interface, for py4j."""

        implements = ("org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction",)


def failure_in(query: Any) -> Any | None:
    """The Java exception that has ended a query, with its causes; None if there is none."""
    found = query._jsq.exception()
    return found.get() if found.isDefined() else None


def has_nothing_to_do(query: Any) -> bool:
    """Whether a query is waiting for events."""
    return query.status["message"] in WAITING


def is_between_batches(query: Any) -> bool:
    """Whether the last batch is committed and no other has begun. A source may take long to find the next."""
    status = query.status
    return not status["isTriggerActive"] or status["message"].startswith(LOOKING)


def progress_since(query: Any, seen: tuple[int, str] | None) -> Iterator[Mapping[str, Any]]:
    """The progress reports after the last one seen, the oldest first. Others are not read or parsed."""
    last = query._jsq.lastProgress()
    if last is None or _mark(last) == seen:  # most of the time
        return
    recent = query._jsq.recentProgress()
    first = len(recent)
    while first > 0 and (seen is None or _mark(recent[first - 1]) > seen):
        first -= 1
    for number in range(first, len(recent)):
        yield json.loads(recent[number].json())


def _mark(progress: Any) -> tuple[int, str]:
    return int(progress.batchId()), str(progress.timestamp())
