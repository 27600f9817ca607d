"""The `stream` sink: events appended to a stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from penstock.connectors.base import DeliveryId, Sink, SinkWriter, Site
from penstock.connectors.faults import Fault
from penstock.connectors.logs import LOGS, place_of
from penstock.connectors.python_source import settle
from penstock.connectors.stream_form import Form, encode, form_of, misfits
from penstock.errors import Backpressure, Invalid, Problem, Retryable
from penstock.streams.frames import Body
from penstock.streams.home import StreamPlace
from penstock.streams.log import Dropped, Log, Pending
from penstock.streams.storage import Appended, Fenced, Producer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

LOOK_S = 0.1
"""How often a write that waits for room looks whether it is still wanted."""

ENCODED = "data BINARY, count BIGINT, raw_bytes BIGINT"


class StreamSink(Sink):
    """Appends each batch to a stream.

    Delivery is exactly-once: a batch enters the stream whole, and one that is repeated after a crash is
    recognised by its number and not appended again. A typed stream takes the columns it has, by name; they
    may be narrower, and those that are missing are null. A raw stream takes a `value`, with `key` and
    `headers` if they are there; without a `value`, the whole event as a JSON object. In both, `_key` and
    `_headers` become the key and the headers of the event. A full stream makes the pipeline wait, or drops
    and counts, as the stream's own settings say.
    """

    type: Literal["stream"] = "stream"
    stream: str = Field(min_length=1, description="Id of the Stream.")

    guarantee: ClassVar = "exactly-once"
    example: ClassVar = "type: stream\nstream: orders_clean\n"

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        try:
            place = place_of(site, self.stream, field="stream")
        except Invalid as error:
            yield from error.problems
            return
        yield from misfits(schema, place.spec.schema_)

    def open(self, site: Site) -> SinkWriter:
        return _Writer(site, place_of(site, self.stream, field="stream"))


class _Writer(SinkWriter):
    """Encodes where the events are and appends on the driver, as one producer with numbered batches."""

    def __init__(self, site: Site, place: StreamPlace) -> None:
        self.site, self.ddl = site, place.spec.schema_
        self.log: Log = LOGS.log(place.directory)
        self._cancelled = threading.Event()

    def write(self, df: DataFrame, delivery: DeliveryId) -> int:
        form = form_of(df.schema, self.ddl)
        bodies = self._encoded(df, form)
        if not bodies:
            return 0
        # Named by the life of the checkpoint: a pipeline that starts anew counts its batches from zero.
        id = f"{self.site.flow}/{delivery.sink}/{delivery.lineage}"
        try:
            done = self._append(bodies, Producer(id, delivery.batch, self.site.epoch))
        except Dropped:
            return 0  # the stream was told to, and has counted it
        except Fenced as error:
            raise Fault("fenced", str(error)) from None
        return done.next - done.first

    def cancel(self) -> None:
        self._cancelled.set()

    def _encoded(self, df: DataFrame, form: Form) -> list[Body]:
        """The events as they are stored, made where they are; only that comes to the driver."""
        wal, ddl = self.log.storage.spec.wal, self.ddl
        compression, max_events, max_bytes = wal.compression, wal.batch.max_events, wal.batch.max_bytes

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            settle()
            for batch in batches:
                for body in encode(batch, ddl, compression, max_events, max_bytes):
                    yield _row_of(body)

        return _bodies_of(form.select(df).mapInArrow(run, ENCODED).toArrow())

    def _append(self, bodies: list[Body], producer: Producer) -> Appended:
        """Append, and wait for it as long as the run goes on."""
        pending = self._enter(bodies, producer)
        while True:
            try:
                return pending.future.result(LOOK_S)
            except NotYet:
                if self._cancelled.is_set() and self.log.withdraw(pending):
                    raise Retryable("the run ended while the stream was full") from None

    def _enter(self, bodies: list[Body], producer: Producer) -> Pending:
        while not self._cancelled.is_set():
            # In the other modes the log gives up by itself, and has to count what it dropped.
            wait_s = LOOK_S if self.log.storage.spec.buffer.mode == "block" else None
            try:
                return self.log.submit_bodies(bodies, producer=producer, wait_s=wait_s)
            except Backpressure:
                continue
        raise Retryable("the run ended while the stream was full")


def _row_of(body: Body) -> pa.RecordBatch:
    """A body as a row of `ENCODED`, not copied."""
    offsets = pa.array([0, len(body.data)], pa.int32()).buffers()[1]
    data = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(body.data)])
    columns = [data, pa.array([body.count]), pa.array([body.raw_bytes])]
    return pa.RecordBatch.from_arrays(columns, names=["data", "count", "raw_bytes"])


def _bodies_of(table: pa.Table) -> list[Body]:
    rows = zip(*(table.column(name) for name in ("data", "count", "raw_bytes")), strict=True)
    return [Body(data.as_buffer(), count.as_py(), raw.as_py()) for data, count, raw in rows]
