"""The clock of flows that keep state: rows that contain only a time, read in addition to the events.

Spark closes windows by the latest time that it has seen among the events, so without new events the last
windows would stay open forever. A tick advances that time: once a second for windows of system time, while
any window may be open and the flow is idle, and once past all windows when a finite input has ended. The
engine records the progress of the events in a file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.frames.streams.pieces import inline
from penstock.spark.planned_source import FORMAT, PLANNERS, Offset, Slice, options
from penstock.streams.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME = "time"

KIND = "ticker"

EVERY_MS = 1_000

IDLE_MS = 1_000
"""Milliseconds without a finished batch of events before there is a tick: events that wait to be read are
older than the clock, and would be late after the tick."""


@dataclass(frozen=True)
class Mark:
    """The progress of the events of a flow, in milliseconds."""

    lineage: str = ""
    """The checkpoint that the mark belongs to; a fresh start of the flow creates another."""
    batch: int = -1
    """The last batch with events."""
    latest: Mapping[str, int] = field(default_factory=dict)
    """The latest time among the events of each input, including that batch."""
    before: Mapping[str, int] = field(default_factory=dict)
    """The same without that batch, which may be computed again after a crash."""
    seen_at: int = 0
    """The system time at which the last batch with events was computed."""
    written_at: int = 0
    open_ms: int = 0
    """How long after an event a window, or other state, may still be open."""
    flush: int | None = None
    """The last time to which the clock was set because the input has ended."""

    @property
    def closed_at(self) -> int | None:
        """The time at which no window or other state is open anymore."""
        return max(self.latest.values()) + self.open_ms + 1 if self.latest else None


class Clock:
    """The mark of a flow, in a file next to its checkpoint."""

    def __init__(self, state: Path) -> None:
        self.path = state / "clock.json"

    def read(self) -> Mark:
        """The mark; empty if there is none or it can't be read, in which case the watermark decides."""
        try:
            return Mark(**json.loads(self.path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return Mark()

    def saw(self, lineage: str, batch: int, latest: Mapping[str, int], open_ms: int) -> None:
        """Record that a batch was computed; `latest` is the latest time of its events, by input."""
        mark, before = self.read(), self.before(lineage, batch)
        if mark.lineage != lineage:
            mark = Mark(lineage)
        names = before.keys() | latest.keys()
        after = {name: max(each[name] for each in (before, latest) if name in each) for name in names}
        self._write(
            replace(mark, batch=batch, latest=after, before=before, seen_at=_now_ms(), open_ms=open_ms)
        )

    def before(self, lineage: str, batch: int) -> Mapping[str, int]:
        """The latest event time of all batches before `batch`, by input."""
        mark = self.read()
        if mark.lineage != lineage:
            return {}
        return mark.before if mark.batch == batch else mark.latest

    def flush(self, lineage: str) -> bool:
        """Set the clock past all open windows and other state; False if it is already there."""
        mark = self.read()
        if mark.lineage != lineage or mark.closed_at is None or mark.closed_at <= (mark.flush or 0):
            return False
        self._write(replace(mark, flush=mark.closed_at))
        return True

    def _write(self, mark: Mark) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(replace(mark, written_at=_now_ms())))
        # Once a batch is committed, whether later events are late depends on this file alone.
        Files().replace(self.path, text.encode(), durable=True)


def ticks(spark: SparkSession, state: Path | None, *, system: bool, behind_ms: int = 0) -> DataFrame:
    """The stream of ticks of a flow. With `system`, it follows the machine's clock, `behind_ms` behind."""
    reading = {"kind": KIND, "state": str(state or ""), "system": system, "behind_ms": behind_ms}
    reader = spark.readStream.format(FORMAT).options(**options(spark, reading))
    return reader.schema(f"{TIME} TIMESTAMP").load()


class Ticker:
    """Plans ticks. An offset is `{ms}`: the time of the last tick."""

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self.clock = Clock(Path(reading["state"]))
        self.system, self.behind_ms = bool(reading["system"]), int(reading["behind_ms"])
        self.finite = False
        self.since = 0

    def initial(self) -> Offset:
        self.since = _now_ms()  # older marks belong to an earlier checkpoint
        return {"ms": 0}

    def available_now(self) -> None:
        self.finite = True

    def latest(self, start: Offset) -> Offset | None:
        mark, last = self.clock.read(), start["ms"]
        if mark.written_at < self.since:
            return None
        if mark.flush is not None and mark.flush > last:
            return {"ms": mark.flush}
        if not self.system or self.finite or mark.closed_at is None or last >= mark.closed_at:
            return None
        now = _now_ms()
        if now - mark.seen_at < IDLE_MS:
            return None
        tick = (now - self.behind_ms) // EVERY_MS * EVERY_MS
        return {"ms": tick} if tick > last else None

    def partitions(self, start: Offset, end: Offset) -> list[Slice]:
        if end["ms"] <= start["ms"]:
            return []
        times = pa.array([end["ms"] * 1000], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        return [inline(pa.record_batch([times], names=[TIME]))]

    def commit(self, end: Offset) -> None:
        """Nothing to clean up after a tick."""

    def stop(self) -> None:
        """Nothing to release."""


PLANNERS[KIND] = Ticker


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
