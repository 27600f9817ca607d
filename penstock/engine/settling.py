"""Settling a batch: what its steps had to tell is kept, counted and said before the batch is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.base import DeliveryId, Rejected
from penstock.connectors.logs import LOGS
from penstock.engine.counters import Counters
from penstock.engine.flow_log import flow_log
from penstock.engine.letters import Letters
from penstock.engine.notes import Note, Observed
from penstock.engine.plan import Plan
from penstock.engine.reasons import explained
from penstock.processors.ticker import Clock
from penstock.streams.events import RAW
from penstock.streams.storage import Producer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Settling:
    """Does what is to be done with the notes of a flow's batches."""

    def __init__(self, plan: Plan, spark: SparkSession, counters: Counters) -> None:
        self._plan, self._spark, self._counters = plan, spark, counters
        self._letters, self._log = Letters(plan.flow), flow_log(plan.flow.site)
        self._open_ms = sum(part.component.open_ms() for part in plan.flow.processors)

    def notes(self, seen: Observed, delivery: DeliveryId) -> None:
        """Keep the letters and the late events of a batch, count its steps, and say what they said."""
        faults = [note for note in seen.notes if note.kind == "fault"]
        self._keep(explained(faults, self._plan, self._spark), delivery)
        self._keep_late([note for note in seen.notes if note.kind == "late"], delivery)
        for step, number in seen.late.items():
            self._say_late(step, number, delivery)
        for note in seen.notes:
            if note.kind == "log":
                self._log.said(note.step, note.message or "")
        self._count(seen, faults)
        if seen.latest and self._plan.flow.site.state is not None:
            clock = Clock(self._plan.flow.site.state)
            clock.saw(delivery.lineage, delivery.batch, seen.latest, self._open_ms)

    def rejected(self, events: Sequence[Rejected], delivery: DeliveryId) -> None:
        """Keep the events of a batch that a sink could not take."""
        refused = [
            Note("fault", delivery.sink, each.code, each.message, each.row, each.event or {})
            for each in events
        ]
        self._keep(refused, delivery)

    def _keep(self, faults: Sequence[Note], delivery: DeliveryId) -> None:
        written = self._letters.write(faults, delivery)
        self._counters.lettered(written)
        if not written:  # there are none, or they were kept before a crash
            return
        for (step, code), number in Counter((note.step, note.code) for note in faults).items():
            where = {"sink" if step == delivery.sink else "step": step}
            events = "1 event is a dead letter" if number == 1 else f"{number} events are dead letters"
            reason = next(note.message for note in faults if (note.step, note.code) == (step, code))
            self._log.warning(events, **where, code=code, letters=number, batch=delivery.batch, reason=reason)

    def _keep_late(self, late: list[Note], delivery: DeliveryId) -> None:
        site = self._plan.flow.site
        for part in self._plan.flow.processors:
            own = [note for note in late if note.step == part.id]
            stream = getattr(part.component, "late", None)
            self._say_late(part.id, len(own), delivery)
            if not own or stream is None:
                continue
            batch = pa.RecordBatch.from_arrays(
                [pa.array([(note.row or "").encode() for note in own], RAW.field(0).type)], schema=RAW
            )
            producer = Producer(f"{site.flow}/{part.id}/{delivery.lineage}", delivery.batch, site.epoch)
            LOGS.log(site.stream(stream).directory).append(batch, producer=producer)

    def _say_late(self, step: str, number: int, delivery: DeliveryId) -> None:
        if number:
            what = "1 event came" if number == 1 else f"{number} events came"
            self._log.info(f"{what} too late", step=step, late=number, batch=delivery.batch)

    def _count(self, seen: Observed, faults: list[Note]) -> None:
        """Events in, out, dropped and failed by each processor. Those in Python have said it themselves."""
        stats: dict[str, list[Note]] = {}
        for note in seen.notes:
            if note.kind == "stats":
                stats.setdefault(note.step, []).append(note)
        errors: dict[str, int] = {}
        for note in faults:
            errors[note.step] = errors.get(note.step, 0) + 1
        before = seen.taken
        if malformed := errors.get("source", 0):
            self._counters.stepped("source", before + malformed, before, malformed, None)
        for step in self._plan.steps:
            for part in step.parts:
                own = stats.get(part.id)
                if own is not None:
                    taken, given = sum(n.taken for n in own), sum(n.given for n in own)
                    ms = sum(n.ms for n in own)
                else:
                    taken, given, ms = before, seen.given.get(part.id, 0), None
                late = sum(note.kind == "late" and note.step == part.id for note in seen.notes)
                dropped = late + seen.late.get(part.id, 0) if part.component.folds else None
                self._counters.stepped(part.id, taken, given, errors.get(part.id, 0), ms, dropped)
            before = seen.given.get(step.id, 0)
