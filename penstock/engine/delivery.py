"""Delivery of a micro-batch to all sinks of a flow, under its commit policy."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.connectors.cursors import oldest_age_ms
from penstock.connectors.logs import LOGS
from penstock.engine.counters import Counters
from penstock.engine.flow import Flow
from penstock.engine.flow_log import flow_log
from penstock.engine.frame import Frame
from penstock.engine.lanes import Lane, Yard
from penstock.engine.ledger import NOTES, Ledger, Span
from penstock.engine.missed import Missed, rereader_of
from penstock.engine.notes import observed, reset, span, watermark_ms
from penstock.engine.plan import Plan
from penstock.engine.round import Round
from penstock.engine.settling import Settling
from penstock.processors.event_time import LATEST, LATEST_SO_FAR
from penstock.processors.ticker import Clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BEHIND = "behind"
"""The directory of what sinks have missed, beside the ledger."""

LOOK_S = 0.1
"""How often to look for sinks that are past their deadline."""


class Drained(Exception):
    """Raised before a batch that must not begin, because the flow is stopping."""


class Delivery:
    """The function that Spark calls with each micro-batch; to return lets the checkpoint move on."""

    def __init__(self, flow: Flow, counters: Counters, permitted: Callable[[], None]) -> None:
        self.flow, self.counters, self.permitted = flow, counters, permitted
        self.draining = threading.Event()
        self.busy = False
        self.error: BaseException | None = None
        self._cancelled = False
        self._lanes: dict[str, Lane] = {}

    def open(self, plan: Plan, spark: SparkSession) -> None:
        """Be ready for batches; what sinks have missed before is caught up from now on."""
        flow, site = self.flow, self.flow.site
        assert site.state is not None
        ids = [sink.id for sink in flow.sinks]
        self._spark, self._chosen = spark, plan.chosen
        place = flow.source.component.reads(site)
        self._source = LOGS.log(place.directory) if place else None
        self._ledger = Ledger(site.state)
        self._ledger.retain(ids)
        log = flow_log(site)
        self._missed = Missed(self._ledger, site.state / BEHIND, flow.position_key, site.behind_bytes, log)
        self._missed.rereader = rereader_of(plan, spark)
        self._missed.tidy(ids)
        self._settling = Settling(plan, spark, self.counters)
        self._yard = Yard(
            flow,
            spark,
            self._ledger,
            self._missed,
            self.counters,
            self.permitted,
            self._settling.rejected,
            self._chosen,
            log,
        )
        self._lanes = {sink.id: Lane(sink, self._yard) for sink in flow.sinks}
        threading.Thread(target=self._supervise, name=f"sinks of {flow.id}", daemon=True).start()

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

    def catch_up(self, sink: str) -> None:
        """Let a sink that is behind try again now."""
        with self._yard.changed:
            self._lanes[sink].hurry()

    def rest(self, seconds: float) -> None:
        """Let what is under way end, and begin nothing else."""
        until = time.monotonic() + seconds
        for lane in self._lanes.values():
            lane.rest(until)

    def finish(self) -> None:
        """No batch will come any more: let sinks that are behind catch up, as long as they get on."""
        with self._yard.changed:
            for lane in self._lanes.values():
                lane.hurry()
            while any(lane.hurrying for lane in self._lanes.values()) and not self._cancelled:
                self._yard.changed.wait(LOOK_S)

    def cancel(self) -> None:
        """Let nothing be delivered any more, and nobody wait: the run ends."""
        self.draining.set()
        self._cancelled = True
        for lane in self._lanes.values():
            lane.cancel()

    def close(self) -> None:
        """Let go of every sink."""
        self.cancel()
        for lane in self._lanes.values():
            lane.close()
        if self._lanes:
            self._ledger.close()

    def _deliver(self, df: DataFrame, batch_id: int) -> None:
        context = df.sparkSession.sparkContext
        lineage = str(context.getLocalProperty("sql.streaming.queryId"))
        query = self._spark.streams.get(lineage)
        assert query is not None
        read = Span(*span(query))
        if read.empty and not self.flow.remembering:
            return  # Spark begins with such a batch where nothing is to be read yet
        if self.flow.remembering:
            context.setLocalProperty(LATEST_SO_FAR, json.dumps(self._latest_so_far(query, lineage, batch_id)))
        done = self._ledger.begin(lineage, batch_id)
        frame = Frame(df, lambda: reset(query), shared=len(self.flow.sinks) > 1)
        batch = Round(
            self.flow,
            self._lanes,
            lineage,
            batch_id,
            read,
            frame,
            lambda: self._cancelled,
        )
        try:
            batch.deliver(done)
            self._note_age(batch)
            self._leave_behind(batch)
            if not batch.computed and (NOTES not in done or self.flow.remembering):
                # All sinks had it before a crash; its notes, or what steps remember of it, are still needed.
                frame.begin()
                frame.df.write.format("noop").mode("overwrite").save()
            if NOTES not in done:
                self._settle(batch, query)
        finally:
            with self._yard.changed:
                frame.release()

    def _latest_so_far(self, query: StreamingQuery, lineage: str, batch: int) -> dict[str, int]:
        """The latest time of all events before a batch, by input. Ticks of the clock count too."""
        assert self.flow.site.state is not None
        latest = {**Clock(self.flow.site.state).before(lineage, batch)}
        if watermark := watermark_ms(query):
            ticked = watermark + self.flow.delay_ms
            latest = {name: max(ms, ticked) for name, ms in ({LATEST: ticked} | latest).items()}
        return latest

    def _note_age(self, batch: Round) -> None:
        """Tell how long the oldest event of a stream has taken to get here."""
        if self._source is None:
            return
        first, next, age = batch.span.first, batch.span.next, None
        with contextlib.suppress(OSError, ValueError):  # a number for people: no reason to fail
            if first is not None and next is not None:
                age = oldest_age_ms(self._source, first, next)
        self.counters.aged(batch.batch, age)

    def _leave_behind(self, batch: Round) -> None:
        """Note which sinks the batch is committed without, and keep it for them (invariant 5)."""
        known = self._ledger.missing(batch.lineage, batch.batch)
        for id, lane in self._lanes.items():
            if id in batch.acknowledged:
                continue
            if id not in known:
                df = self._chosen(batch.frame.df, lane.sink)
                if not self._missed.miss(df, batch.delivery(id), batch.span):
                    continue
                self.counters.missed(id)
            with self._yard.changed:
                lane.fall_behind()

    def _settle(self, batch: Round, query: StreamingQuery) -> None:
        """Deal with what the batch had to tell beside its events."""
        self._settling.notes(observed(query), batch.delivery(NOTES))
        self._ledger.settled(batch.lineage, batch.batch)

    def _supervise(self) -> None:
        """End attempts that are past their deadline."""
        while not self._cancelled:
            with self._yard.changed:
                busy = [lane for lane in self._lanes.values() if lane.attempts is not None]
                self._yard.changed.wait(LOOK_S if busy else None)
            for lane in busy:
                lane.look()
