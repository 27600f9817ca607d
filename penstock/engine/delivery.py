"""Delivery of a micro-batch to all sinks of a flow, under its commit policy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import structlog
from pyspark.sql import functions as f

from penstock.connectors.base import DeliveryId, Sink, SinkWriter
from penstock.engine.counters import Counters
from penstock.engine.failures import failure_of
from penstock.engine.flow import Flow, Part
from penstock.engine.notes import WATERMARK, observed, watermark_ms
from penstock.engine.settling import Settling
from penstock.processors.base import EVENT
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

log = structlog.get_logger()


class Drained(Exception):
    """Raised before a batch that must not begin, because the flow is stopping."""


def policy_met(flow: Flow, acknowledged: set[str]) -> bool:
    """Whether a batch that these sinks have acknowledged may be committed."""
    policy = flow.commit_policy
    if policy.mode == "quorum":
        return len(acknowledged) >= (policy.quorum or len(flow.sinks))
    return all(sink.id in acknowledged for sink in flow.sinks if policy.mode == "all" or sink.required)


class Delivery:
    """The function that Spark calls with each micro-batch; to return lets the checkpoint move on."""

    def __init__(self, flow: Flow, counters: Counters, permitted: Callable[[], None]) -> None:
        self.flow, self.counters, self.permitted = flow, counters, permitted
        self.draining = threading.Event()
        self.busy = False
        self.error: BaseException | None = None
        self.conditions: Mapping[str, Column] = {}
        """By sink: which events it gets. Others get all."""
        self.settling: Settling | None = None
        self.query_of: Callable[[str], StreamingQuery | None] | None = None
        self._cancelled = False
        self._writers: dict[str, SinkWriter] = {}

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        if self.draining.is_set():
            raise Drained
        self.busy = True
        try:
            self.permitted()  # invariant 6: who has lost the lease delivers nothing
            self._deliver(df, batch_id)
        except BaseException as error:
            self.error = error  # Spark passes on only its text
            raise
        finally:
            self.busy = False

    def cancel(self) -> None:
        """Let nothing be delivered any more, and nobody wait: the run ends."""
        self.draining.set()
        self._cancelled = True
        for writer in list(self._writers.values()):
            writer.cancel()

    def close(self) -> None:
        """Close every writer."""
        for writer in self._writers.values():
            writer.close()

    def _deliver(self, df: DataFrame, batch_id: int) -> None:
        lineage = str(df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        query = self.query_of(lineage) if self.query_of else None
        if query is not None:
            df.sparkSession.sparkContext.setLocalProperty(WATERMARK, str(watermark_ms(query)))
        sinks = self.flow.sinks
        if len(sinks) == 1:
            errors = [self._to(sinks[0], df, lineage, batch_id)]
        else:
            errors = self._to_all(df, lineage, batch_id)
        acknowledged = {sink.id for sink, error in zip(sinks, errors, strict=True) if error is None}
        if not policy_met(self.flow, acknowledged):  # invariant 3
            blocking = [e for s, e in zip(sinks, errors, strict=True) if e and s.required]
            raise (blocking or [e for e in errors if e])[0]
        for sink, error in zip(sinks, errors, strict=True):
            if error is not None:
                self.counters.missed(sink.id)  # invariant 5
        if self.settling is not None and query is not None:
            seen = observed(query)
            self.settling.notes(seen, DeliveryId(self.flow.id, "$notes", lineage, batch_id))

    def _to_all(self, df: DataFrame, lineage: str, batch_id: int) -> list[Exception | None]:
        from pyspark import inheritable_thread_target

        df.persist()  # or the source would be read once per sink
        try:
            with ThreadPoolExecutor(len(self.flow.sinks)) as pool:
                # Inherits the query's job group, so that stopping it reaches these jobs too.
                inherit = inheritable_thread_target(df.sparkSession)
                futures = [
                    pool.submit(inherit(self._to), sink, df, lineage, batch_id) for sink in self.flow.sinks
                ]
                return [future.result() for future in futures]
        finally:
            df.unpersist()

    def _to(self, sink: Part[Sink], df: DataFrame, lineage: str, batch_id: int) -> Exception | None:
        try:
            if sink.id in self.conditions:
                df = df.filter(self.conditions[sink.id])
            if EVENT in df.columns:
                chosen = f.col(quote(EVENT, "sinks"))
                df = df.filter(chosen.isNull() | f.array_contains(chosen, sink.id))
                if not sink.component.meta:
                    df = df.drop(EVENT)
            delivery = DeliveryId(self.flow.id, sink.id, lineage, batch_id)
            delivered = self._writer(sink).write(df, delivery)
            if self.settling is not None:
                self.settling.rejected(delivered.rejected, delivery)
            self.counters.acknowledged(sink.id, delivered.events)
        except Exception as error:
            message = failure_of(error).problem.message
            log.warning("delivery failed", pipeline=self.flow.id, sink=sink.id, batch=batch_id, error=message)
            self.counters.failed(sink.id, message)
            return error
        return None

    def _writer(self, sink: Part[Sink]) -> SinkWriter:
        if sink.id not in self._writers:
            self._writers[sink.id] = sink.component.open(self.flow.site)
            if self._cancelled:  # meanwhile
                self._writers[sink.id].cancel()
        return self._writers[sink.id]
