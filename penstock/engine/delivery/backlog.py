"""The backlog of a sink: the batches that were committed without it.

If the same events can be computed again, they are: from a stream that retains them, through stateless steps.
Otherwise a batch is stored as an Arrow file, in the shape of the sink, up to a total size; batches beyond it
are lost, and counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.base import DeliveryId, Events, Sink
from penstock.engine.delivery.copies import Copies
from penstock.engine.delivery.events import ComputedEvents, TableEvents
from penstock.engine.delivery.ledger import Gap, Ledger, Span
from penstock.engine.plan.flow import Part
from penstock.engine.plan.plan import Plan, plan_frame
from penstock.engine.runtime.flow_log import NO_LOG, FlowLog
from penstock.errors import Suspended
from penstock.spark.tables import table_of
from penstock.streams.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DIRECTORY = "behind"
"""The directory of the backlog files, next to the ledger."""

FULL = "the storage for missed batches is full"
GONE = "the events were removed from the stream"
OTHER = "the flow now reads from another source"


@dataclass(frozen=True)
class Rereader:
    """A source from which the events of a batch can be read again."""

    first: Callable[[], int]
    """The oldest offset that the source still has."""
    frame: Callable[[int, int], DataFrame]
    """The output of the flow for the events between two offsets."""


def rereader_of(plan: Plan, spark: SparkSession) -> Rereader | None:
    """The source of a flow, if it retains its events and all steps are stateless."""
    flow = plan.flow
    source, site = flow.source.component, flow.site
    if source.oldest(site) is None or any(part.component.stateful for part in flow.processors):
        return None

    def frame(first: int, end: int) -> DataFrame:
        df = source.reread(spark, site, first, end)
        assert df is not None
        return plan_frame(flow, df, None).output

    return Rereader(lambda: source.oldest(site) or 0, frame)


class Lost(Exception):
    """The events of a missed batch are no longer available."""


class Backlog:
    """Stores the batches that the sinks of a flow have missed, and returns their events."""

    def __init__(
        self,
        plan: Plan,
        spark: SparkSession,
        ledger: Ledger,
        log: FlowLog = NO_LOG,
        copies: Copies | None = None,
    ) -> None:
        self._plan, self._spark, self._ledger, self._log = plan, spark, ledger, log
        self._copies = copies
        site = plan.flow.site
        assert site.state is not None
        self.directory, self._most_bytes = site.state / DIRECTORY, site.behind_bytes
        self._origin = plan.flow.position_key
        self._rereader = rereader_of(plan, spark)

    def tidy(self) -> None:
        """Remove files that the ledger does not list: of removed sinks, or written just before a crash."""
        sinks = [sink.id for sink in self._plan.flow.sinks]
        wanted = {file for sink in sinks for file in self._ledger.kept(sink)[0]}
        for path in self.directory.glob("*/*"):
            if str(path.relative_to(self.directory)) not in wanted:
                path.unlink(missing_ok=True)
        if self._copies is not None:
            self._copies.tidy(wanted)

    def add(self, events: Events, delivery: DeliveryId, span: Span) -> bool:
        """Record that a sink missed a batch; false if the sink has acknowledged it since, or it is empty."""
        missed = partial(self._ledger.missed, delivery, span)
        if self._rereader is not None and span.first is not None and span.next is not None:
            return missed("stream", self._origin)
        try:
            table = events.table()
            if not table.num_rows:
                return False
            file, size = self._write(table, delivery)
        except Exception as error:  # one sink's backlog must not block the others
            message = f"a missed batch could not be kept: {error}"
            self._log.error(message, sink=delivery.sink, batch=delivery.batch)
            return missed("lost", self._origin, why=str(error)[:200])
        number, used = table.num_rows, self._ledger.kept(delivery.sink)[1]
        if used + size > self._most_bytes:
            self.drop(file)
            return missed("lost", self._origin, events=number, why=FULL)
        if self._copies is not None:
            self._copies.keep(file, (self.directory / file).read_bytes())
        if missed("file", self._origin, file=file, size=size, events=number):
            return True
        self.drop(file)
        return False

    def events(self, gap: Gap, sink: Part[Sink]) -> ComputedEvents:
        """The events of a missed batch, computed.

        Raises `Lost` if none of them are available. If only some are missing, they are counted as lost, and
        the others are returned.
        """
        if gap.file is not None:
            table = TableEvents(self._read(gap.file), self._spark)
            return ComputedEvents(None, [sink], self._plan.shaped, made=table)
        first, end = gap.span.first, gap.span.next
        if self._rereader is None or gap.origin != self._origin or first is None or end is None:
            raise Lost(OTHER)
        oldest = self._rereader.first()
        if oldest >= end > first:
            raise Lost(GONE)
        if oldest > first:
            self._ledger.lose(gap, GONE, up_to=oldest)
        frame = self._rereader.frame(max(first, oldest), end)
        events = ComputedEvents(frame, [sink], self._plan.shaped)
        events.compute(table_of)
        return events

    def settle(self, file: str | None) -> None:
        """After a missed batch was delivered or lost: let other machines know, then remove its file."""
        if self._copies is not None:
            try:
                self._copies.save(only_missed=True)
            except Suspended:
                raise
            except Exception as error:  # the next batch tries it again, and the next run removes the file
                self._log.warning(f"the ledger could not be copied: {error}")
                return
        self.drop(file)

    def drop(self, file: str | None) -> None:
        """Remove a file that is no longer needed."""
        if file is None:
            return
        with contextlib.suppress(OSError):
            (self.directory / file).unlink()
        if self._copies is not None:
            self._copies.drop(file)

    def _write(self, table: pa.Table, delivery: DeliveryId) -> tuple[str, int]:
        folder = hashlib.sha256(delivery.sink.encode()).hexdigest()[:12]
        path = self.directory / folder / f"{delivery.lineage}-{delivery.batch:010d}.arrow"
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        with half.open("wb") as out:
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_file(out, table.schema, options=options) as writer:
                writer.write_table(table)
            out.flush()
            os.fsync(out.fileno())
        half.rename(path)
        Files().sync_directory(path.parent)  # the ledger, which is synced, will refer to this file
        return str(path.relative_to(self.directory)), path.stat().st_size

    def _read(self, file: str) -> pa.Table:
        if self._copies is not None and not (self.directory / file).exists():
            content = self._copies.kept(file)
            if content is None:
                raise Lost("the file of the batch is gone")
            return pa.ipc.open_file(pa.py_buffer(content)).read_all()
        try:
            with pa.OSFile(str(self.directory / file)) as source:
                return pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise Lost(f"the file of the batch can't be read: {error}") from None
