"""Where the events of a batch come from that a sink has missed.

They are read again where that gives the same events: from a stream that keeps them, through steps that
remember nothing. Else the batch is kept as an Arrow file, up to a size; what is beyond that is lost, and
counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.base import DeliveryId
from penstock.engine.flow_log import NO_LOG, FlowLog
from penstock.engine.ledger import Gap, Ledger, Span
from penstock.engine.plan import Plan, plan_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FULL = "no more room for what it missed"
GONE = "the stream does not have it any more"
OTHER = "the flow reads from another source now"


@dataclass(frozen=True)
class Rereader:
    """A source that can be asked for the events of a batch again."""

    first: Callable[[], int]
    """The oldest offset that it still has."""
    frame: Callable[[int, int], DataFrame]
    """What the flow makes of the events between two offsets."""


def rereader_of(plan: Plan, spark: SparkSession) -> Rereader | None:
    """The source of a flow, if its events stay where they are and no step remembers others."""
    flow = plan.flow
    source, site = flow.source.component, flow.site
    if source.oldest(site) is None or any(part.component.stateful for part in flow.processors):
        return None

    def frame(first: int, next: int) -> DataFrame:
        df = source.reread(spark, site, first, next)
        assert df is not None
        return plan_frame(flow, df, None).output

    return Rereader(lambda: source.oldest(site) or 0, frame)


class Lost(Exception):
    """The events of a missed batch cannot be had any more."""


class Missed:
    """Keeps what sinks have missed, and gives it back."""

    def __init__(
        self, ledger: Ledger, directory: Path, origin: str, most_bytes: int, log: FlowLog = NO_LOG
    ) -> None:
        self.ledger, self.directory, self._log = ledger, directory, log
        self.origin, self.most_bytes = origin, most_bytes
        self.rereader: Rereader | None = None

    def tidy(self, sinks: Collection[str]) -> None:
        """Remove files that nobody will ask for: of sinks that are gone, or written just before a crash."""
        wanted = {file for sink in sinks for file in self.ledger.kept(sink)[0]}
        for path in self.directory.glob("*/*"):
            if str(path.relative_to(self.directory)) not in wanted:
                path.unlink(missing_ok=True)

    def miss(self, df: DataFrame, delivery: DeliveryId, span: Span) -> bool:
        """Note that a sink misses a batch, whose events for it are `df`; false if it does not any more."""
        if self.rereader is not None and span.first is not None and span.next is not None:
            return self.ledger.missed(delivery, span, "stream", self.origin)
        try:
            table = df.toArrow()
            if not table.num_rows:
                return False
            file, size = self._write(table, delivery)
        except Exception as error:  # the others must not wait for what this one does not get
            message = f"a batch that it missed could not be kept: {error}"
            self._log.error(message, sink=delivery.sink, batch=delivery.batch)
            return self.ledger.missed(delivery, span, "lost", self.origin, why=str(error)[:200])
        events, used = table.num_rows, self.ledger.kept(delivery.sink)[1]
        if used + size > self.most_bytes:
            self.drop(file)
            return self.ledger.missed(delivery, span, "lost", self.origin, events=events, why=FULL)
        if self.ledger.missed(delivery, span, "file", self.origin, file=file, bytes=size, events=events):
            return True
        self.drop(file)
        return False

    def frame(self, gap: Gap, spark: SparkSession) -> tuple[DataFrame, bool]:
        """The events of a missed batch, and whether they are chosen for the sink already.

        Raises `Lost` if they are gone. If some of them are, they are counted, and the others are given.
        """
        if gap.file is not None:
            return self._read(gap.file, spark), True
        first, next = gap.span.first, gap.span.next
        if self.rereader is None or gap.origin != self.origin or first is None or next is None:
            raise Lost(OTHER)
        oldest = self.rereader.first()
        if oldest >= next > first:
            raise Lost(GONE)
        if oldest > first:
            self.ledger.lose(gap, GONE, up_to=oldest)
        return self.rereader.frame(max(first, oldest), next), False

    def drop(self, file: str | None) -> None:
        """A file is not needed any more."""
        if file is not None:
            with contextlib.suppress(OSError):
                (self.directory / file).unlink()

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
            os.fsync(out.fileno())  # the ledger will say that it is there
        half.rename(path)
        return str(path.relative_to(self.directory)), path.stat().st_size

    def _read(self, file: str, spark: SparkSession) -> DataFrame:
        try:
            with pa.OSFile(str(self.directory / file)) as source:
                return spark.createDataFrame(pa.ipc.open_file(source).read_all())
        except (OSError, pa.ArrowInvalid) as error:
            raise Lost(f"its file cannot be read: {error}") from None
