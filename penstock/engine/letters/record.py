"""Stores, counts and logs the reports of a batch before the batch is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.base import DeliveryId, Rejected
from penstock.engine.letters.notes import Note, Report
from penstock.engine.letters.reasons import Reasons
from penstock.engine.letters.writer import Letters, chunk_name
from penstock.engine.plan.plan import Plan
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.flow_log import flow_log
from penstock.frames.logs import LOGS
from penstock.plurals import plural
from penstock.processors.support.ticker import Clock
from penstock.streams.events import RAW
from penstock.streams.storage import Producer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK_NOTES, CHUNK_BYTES = 10_000, 4 * 1024 * 1024
"""The maximum number of notes, and of bytes of their events, that are held in memory."""


class Recorder:
    """Records the reports of a flow's batches, and the events that its sinks reject."""

    def __init__(self, plan: Plan, spark: SparkSession, counters: Counters) -> None:
        self._plan, self._spark, self._counters = plan, spark, counters
        self._letters, self._log = Letters(plan.flow), flow_log(plan.flow.site)
        self._open_ms = sum(part.component.open_ms() for part in plan.flow.processors)

    def record(self, report: Report, delivery: DeliveryId) -> None:
        """Store the letters and the late events of a batch, count its steps, and write their log lines."""
        tally = _Tally()
        faults = self._faults(delivery, tally)
        late = {
            part.id: self._late(part.id, stream, delivery)
            for part in self._plan.flow.processors
            if (stream := getattr(part.component, "late", None))
        }
        for note in report.notes():
            tally.add(note)
            if note.kind == "fault":
                faults.add(note)
            elif note.kind == "late" and note.step in late:
                late[note.step].add(note)
            elif note.kind == "log":
                self._log.said(note.step, note.message or "")
        for chunks in (faults, *late.values()):
            chunks.close()
        self._log_letters(tally, delivery)
        for step, number in (tally.late + Counter(report.late)).items():
            events = plural(number, "event")
            self._log.info(f"{events} arrived too late", step=step, late=number, batch=delivery.batch)
        self._count(report, tally)
        self._count_lost(tally, delivery)
        if report.latest and self._plan.flow.site.state is not None:
            clock = Clock(self._plan.flow.site.state)
            clock.saw(delivery.lineage, delivery.batch, report.latest, self._open_ms)

    def rejected(self, events: Iterable[Rejected], delivery: DeliveryId) -> int:
        """Store the events of a batch that a sink has rejected as dead letters; returns their number."""
        tally = _Tally()
        faults = self._faults(delivery, tally)
        for each in events:
            note = Note("fault", delivery.sink, each.code, each.message, each.row, each.event or {})
            tally.add(note)
            faults.add(note)
        faults.close()
        self._log_letters(tally, delivery)
        return tally.errors[delivery.sink]

    def _faults(self, delivery: DeliveryId, tally: _Tally) -> _Chunks:
        reasons = Reasons(self._plan, self._spark)

        def write(notes: Sequence[Note], chunk: int) -> None:
            explained = reasons.explained(notes)
            written = self._letters.write(explained, delivery, chunk=chunk)
            self._counters.lettered(written)
            if written:  # otherwise they were stored before a crash
                tally.letter(explained)

        return _Chunks(write)

    def _late(self, step: str, stream: str, delivery: DeliveryId) -> _Chunks:
        site = self._plan.flow.site

        def write(notes: Sequence[Note], chunk: int) -> None:
            values = pa.array([(note.row or "").encode() for note in notes], RAW.field(0).type)
            batch = pa.RecordBatch.from_arrays([values], schema=RAW)
            name = chunk_name(f"{site.flow}/{step}/{delivery.lineage}", chunk)
            producer = Producer(name, delivery.batch, site.epoch)
            LOGS.log(site.stream(stream).directory).append(batch, producer=producer)

        return _Chunks(write)

    def _log_letters(self, tally: _Tally, delivery: DeliveryId) -> None:
        for (step, code), number in tally.letters.items():
            where = {"sink" if step == delivery.sink else "step": step}
            events = f"{plural(number, 'event')} could not be processed: moved to dead letters"
            reason = tally.reasons[step, code]
            self._log.warning(events, **where, code=code, letters=number, batch=delivery.batch, reason=reason)

    def _count_lost(self, tally: _Tally, delivery: DeliveryId) -> None:
        """Count the events of the source that could not be read (invariant 5)."""
        place = self._plan.flow.source.component.reads(self._plan.flow.site)
        if not tally.lost or place is None:
            return
        LOGS.log(place.directory).count(skipped_by_readers=tally.lost)
        events = plural(tally.lost, "event")
        reason = tally.reasons.get(("source", "lost"))
        self._log.warning(f"{events} could not be read: {reason}", code="gap", batch=delivery.batch)

    def _count(self, report: Report, tally: _Tally) -> None:
        """Count events in, out, dropped and failed by processor. Python steps report their own counts."""
        before = report.taken - tally.lost  # found while events were read
        if malformed := tally.errors["source"]:
            self._counters.stepped("source", before + malformed, before, malformed, None)
        for step in self._plan.steps:
            for part in step.parts:
                own = tally.stats.get(part.id)
                taken, given, ms = own or (before, report.given.get(part.id, 0), None)
                late = tally.late[part.id] + report.late.get(part.id, 0)
                dropped = late if part.component.folds else None
                self._counters.stepped(part.id, taken, given, tally.errors[part.id], ms, dropped)
            before = report.given.get(step.id, 0)


class _Tally:
    """The number of notes of a batch, by kind."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.lost = 0
        self.stats: dict[str, tuple[int, int, float]] = {}
        """Events in, events out and milliseconds, by Python step."""
        self.letters: Counter[tuple[str, str]] = Counter()
        """The number of stored letters, by step and code."""
        self.reasons: dict[tuple[str, str], str | None] = {}
        """The reason of the first letter, by step and code."""

    def add(self, note: Note) -> None:
        match note.kind:
            case "fault":
                self.errors[note.step] += 1
            case "late":
                self.late[note.step] += 1
            case "lost":
                self.lost += note.taken
                self.reasons.setdefault((note.step, "lost"), note.message)
            case "stats":
                taken, given, ms = self.stats.get(note.step, (0, 0, 0.0))
                self.stats[note.step] = taken + note.taken, given + note.given, ms + note.ms

    def letter(self, notes: Sequence[Note]) -> None:
        for note in notes:
            key = note.step, note.code or ""
            self.letters[key] += 1
            self.reasons.setdefault(key, note.message)


class _Chunks:
    """Notes, written in chunks: a batch may have more notes than fit in memory.

    A repeated batch is split at the same places, so each chunk is recognized by its number.
    """

    def __init__(self, write: Callable[[Sequence[Note], int], None]) -> None:
        self._write, self._notes, self._bytes, self._number = write, list[Note](), 0, 0

    def add(self, note: Note) -> None:
        self._notes.append(note)
        self._bytes += len(note.row or "")
        if len(self._notes) >= CHUNK_NOTES or self._bytes >= CHUNK_BYTES:
            self.close()

    def close(self) -> None:
        """Write the remaining notes."""
        if self._notes:
            self._write(self._notes, self._number)
            self._notes, self._bytes, self._number = [], 0, self._number + 1
