"""The events of a batch: computed by one Spark action, held, and read by the sinks.

Several sinks, or one that writes in Spark's tasks, read a frame that Spark has cached. If the only sink
accepts a table in the driver, the action returns that table in the shape of the sink, and nothing is cached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.connectors.base import Events, Sink
from penstock.engine.plan.flow import Part
from penstock.spark.tables import frame_of, table_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Shaped = Callable[["DataFrame", Part[Sink]], "DataFrame"]
"""Returns the rows of a frame that are routed to a sink, in the shape of the sink."""


class ComputedEvents:
    """The events of a batch for some sinks; with `made`, they are already computed."""

    def __init__(
        self,
        df: DataFrame | None,
        sinks: Sequence[Part[Sink]],
        shaped: Shaped,
        made: Events | None = None,
    ) -> None:
        self._df, self._sinks, self._shaped = df, sinks, shaped
        self._made, self._cached = made, False
        self._users, self._guard = 1, threading.Lock()

    def compute(
        self,
        collect: Callable[[DataFrame], pa.Table | list[bytes]],
        verify: Callable[[], None] = lambda: None,
    ) -> None:
        """Compute the events: a table by `collect`, or the results of the sink's writer in the tasks.

        If that or `verify` fails, no events stay cached.
        """
        only = self._sinks[0] if len(self._sinks) == 1 else None
        if only is not None and only.component.takes == "table":
            found = collect(self._shaped(self._frame, only))
            verify()
            if isinstance(found, list):
                self._made = WrittenEvents(found, sum(map(only.component.written_events, found)))
            else:
                self._made = TableEvents(found, self._frame.sparkSession)
            return
        cached = self._frame.persist()
        try:
            cached.write.format("noop").mode("overwrite").save()
            verify()
        except BaseException:
            cached.unpersist()
            raise
        self._df, self._cached = cached, True

    @property
    def rows(self) -> int:
        """The number of events, if the only sink accepts a table."""
        if isinstance(self._made, WrittenEvents):
            return self._made.rows
        assert isinstance(self._made, TableEvents)
        return int(self._made.made.num_rows)

    @property
    def in_memory(self) -> bool:
        """Whether all sinks read their events without a Spark job."""
        return self._made is not None and all(sink.component.takes == "table" for sink in self._sinks)

    def of(self, sink: Part[Sink]) -> Events:
        """The events for a sink, in its shape."""
        return self._made if self._made is not None else FrameEvents(self._shaped(self._frame, sink))

    def hold(self) -> None:
        """Add a reader of the events."""
        with self._guard:
            self._users += 1

    def release(self) -> None:
        """Remove a reader of the events; the last one frees them."""
        with self._guard:
            self._users -= 1
            if self._users:
                return
        self._made = None
        if self._cached:
            self._frame.unpersist()

    @property
    def _frame(self) -> DataFrame:
        assert self._df is not None
        return self._df


@dataclass(frozen=True)
class FrameEvents(Events):
    """Events that Spark has cached, or has in memory."""

    df: DataFrame

    def frame(self) -> DataFrame:
        return self.df

    def table(self) -> pa.Table:
        return table_of(self.df)


@dataclass(frozen=True)
class TableEvents(Events):
    """Events in this process."""

    made: pa.Table
    spark: SparkSession

    def frame(self) -> DataFrame:
        return frame_of(self.spark, self.made)

    def table(self) -> pa.Table:
        return self.made


@dataclass(frozen=True)
class WrittenEvents(Events):
    """Events that the sink's writer has written in the tasks, and that are not visible yet."""

    answers: list[bytes]
    rows: int

    def frame(self) -> DataFrame:
        raise TypeError("tasks have already written these events: use `written`")

    def table(self) -> pa.Table:
        raise TypeError("tasks have already written these events: use `written`")

    def written(self) -> list[bytes]:
        return self.answers
