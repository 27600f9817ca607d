"""The `stream` sink: events appended to a stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Events, Rejected, Sink, SinkWriter
from penstock.connectors.probe import Probe
from penstock.connectors.stream.check import probe_stream
from penstock.errors import Backpressure, Invalid, Problem, Retryable
from penstock.frames.faults import Fault
from penstock.frames.logs import LOGS, place_of
from penstock.frames.site import Site
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.streams.committer import Pending
    from penstock.streams.frames import Body
    from penstock.streams.log import Log
    from penstock.streams.storage import Appended, Producer

LOOK_S = 0.1
"""Seconds between two checks whether a write that waits for room was cancelled."""


class StreamSink(Sink):
    """Appends each batch to a stream.

    Delivery is exactly-once: a batch is appended atomically, and a batch that is repeated after a crash is
    recognized by its number and not appended again. A typed stream accepts its columns by name; their types
    may be narrower, and missing columns are null. An event that lacks a NOT NULL column goes to the dead
    letters. A raw stream accepts a `value`, with optional `key` and `headers`; without a `value`, the whole
    event as a JSON object. In both, `_key` and `_headers` become the key and the headers of the event;
    without them it keeps its original ones. A full stream makes the pipeline wait, or drops and counts
    events, according to the stream's own settings.
    """

    type: Literal["stream"] = "stream"
    stream: str = Field(min_length=1, description="Id of the Stream.")

    guarantee: ClassVar = "exactly-once"
    tested: ClassVar = "local streams"
    meta: ClassVar = True
    takes: ClassVar = "table"
    example: ClassVar = "type: stream\nstream: orders_clean\n"

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        from penstock.connectors.stream.form import demands, form_of

        ddl = place_of(site, self.stream, field="stream").spec.schema_
        return form_of(df.schema, ddl).select(df, event=bool(demands(ddl)))

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        from penstock.connectors.stream.form import misfits

        try:
            place = place_of(site, self.stream, field="stream")
        except Invalid as error:
            yield from error.problems
            return
        yield from misfits(schema, place.spec.schema_)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_stream(site, self.stream)

    def task_writer(self, spark: SparkSession, columns: pa.Schema, site: Site) -> Any:
        from penstock.connectors.stream.in_tasks import appender

        return appender(spark, columns, place_of(site, self.stream, field="stream"))

    def written_events(self, answer: bytes) -> int:
        from penstock.connectors.stream.in_tasks import events_of

        return events_of(answer)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(site, place_of(site, self.stream, field="stream"))


class _Writer(SinkWriter):
    """Appends on the driver, as one producer with numbered batches.

    The events of a stream in Kafka are mostly written by the tasks, and only added to the journal here.
    """

    def __init__(self, site: Site, place: StreamPlace) -> None:
        self.site, self.ddl = site, place.spec.schema_
        self.log: Log = LOGS.log(place.directory)
        self._cancelled = threading.Event()

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        from penstock.streams.committer import Dropped
        from penstock.streams.storage import Producer, Refusal

        if (answers := events.written()) is not None:
            from penstock.connectors.stream.in_tasks import bodies_of

            bodies, rejected = bodies_of(answers, self.ddl), list[Rejected]()
        else:
            bodies, rejected = self._encoded(events.table())
        if not bodies:
            return Delivered(0, rejected)
        # Includes the checkpoint's lineage: a pipeline that restarts from the beginning counts from zero.
        producer = f"{self.site.flow}/{delivery.sink}/{delivery.lineage}"
        try:
            done = self._append(bodies, Producer(producer, delivery.batch, self.site.epoch))
        except Dropped:
            return Delivered(0, rejected)  # according to the stream's settings; the stream has counted it
        except Refusal as error:
            raise Fault(error.code, str(error)) from None
        return Delivered(done.next - done.first, rejected)

    def cancel(self) -> None:
        self._cancelled.set()

    def _encoded(self, table: pa.Table) -> tuple[list[Body], list[Rejected]]:
        """The events in stored form, in the order of the partitions, and those that cannot be stored.

        They are encoded here and not in the tasks: a second Python step would cost each task more than the
        driver needs for the whole batch.
        """
        from penstock.connectors.stream.form import encode, sift

        wal = self.log.storage.spec.wal
        bodies: list[Body] = []
        rejected: list[Rejected] = []
        for batch in table.combine_chunks().to_batches():
            fitting, bad = sift(batch, self.ddl)
            bodies += encode(fitting, self.ddl, wal.compression, wal.batch.max_events, wal.batch.max_bytes)
            rejected += bad
        return bodies, rejected

    def _append(self, bodies: list[Body], producer: Producer) -> Appended:
        """Append, and wait for the result until the run ends."""
        try:
            pending = self._enter(bodies, producer)
            while True:
                try:
                    return pending.future.result(LOOK_S)
                except NotYet:
                    self.waiting = self.log.fill["full"] is not None
                    if self._cancelled.is_set() and self.log.withdraw(pending):
                        raise Retryable("the run ended while the stream was full") from None
        finally:
            self.waiting = False

    def _enter(self, bodies: list[Body], producer: Producer) -> Pending:
        while not self._cancelled.is_set():
            # In the other modes the log itself stops waiting, and has to count dropped events.
            wait_s = LOOK_S if self.log.storage.spec.buffer.mode == "block" else None
            try:
                return self.log.submit_bodies(bodies, producer=producer, wait_s=wait_s)
            except Backpressure:
                self.waiting = True
        raise Retryable("the run ended while the stream was full")
