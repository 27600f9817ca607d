"""Replay of dead letters: through the steps of the current revision, to the sinks, once.

Letters are replayed in slices. A slice has a fixed name, under which each sink gets it: if an interrupted
slice is repeated, it is the same batch to an idempotent sink (invariant 4). An event that fails again becomes
a new letter before the old one counts as replayed (invariant 7).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, Field

from penstock.connectors.base import Delivered, DeliveryId, Rejected, Sink
from penstock.engine.delivery.attempts import Attempts
from penstock.engine.delivery.events import FrameEvents
from penstock.engine.delivery.ledger import NOTES
from penstock.engine.letters.notes import Note, Watch, notes_in
from penstock.engine.letters.reader import Letter, Letterbox
from penstock.engine.letters.reasons import Reasons
from penstock.engine.letters.replay_entry import START, Begin, Entries, Entry, Fitting, Unfit, identity
from penstock.engine.letters.states import Outcome, Slice
from penstock.engine.letters.writer import Letters
from penstock.engine.plan.flow import Flow, Part
from penstock.engine.plan.plan import Plan, plan_flow, plan_frame
from penstock.engine.runtime.failures import failure_of
from penstock.engine.runtime.flow_log import flow_log
from penstock.engine.runtime.limits import POOL
from penstock.errors import Problem
from penstock.spark.spool import spooling
from penstock.spark.tables import table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLICE = 1000
"""The maximum number of letters that are replayed together."""


class RefusedLetter(Problem):
    """A letter that cannot be replayed, with the reason."""

    offset: int = Field(description="Offset of the letter.")


class ReplayResult(BaseModel):
    """The result of a replay of letters."""

    request: str = Field(description="Id of this replay; its deliveries carry it.")
    dry_run: bool = Field(default=False, description="Nothing was replayed: the numbers show what would be.")
    replayed: int = Field(default=0, description="Letters delivered to the sinks.")
    failed_again: int = Field(default=0, description="Letters that failed again and became new letters.")
    refused: list[RefusedLetter] = Field(
        default_factory=list, description="Letters that can't be replayed and stay unchanged."
    )
    error: Problem | None = Field(
        default=None,
        description="Why the replay stopped early. Letters in progress have the state `replaying`: repeat "
        "the request to continue them.",
    )
    next: int | None = Field(
        default=None, description="There may be more letters: continue with this as `position`."
    )


@dataclass
class _Run:
    """The replay of one slice."""

    slice: Slice
    fitting: Fitting
    failed: set[int | None] = field(default_factory=set)
    """The events that failed in the replay, by `offset` in `$event`."""
    touched: bool = False
    """Whether a sink may have received events."""

    @property
    def letters(self) -> Iterator[Letter]:
        """The letters that match the columns of their entry."""
        return (letter for those in self.fitting.letters.values() for letter in those)


class Redelivery:
    """Replays letters of a flow. `permitted` raises if this process may no longer write."""

    def __init__(
        self, flow: Flow, spark: SparkSession, box: Letterbox, permitted: Callable[[], None] = lambda: None
    ) -> None:
        session = spark.newSession()
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(SLICE))
        self._plan = plan_flow(flow, session)
        self._flow, self._spark = self._plan.flow, session
        self._box, self._marks, self._permitted = box, box.marks, permitted
        self._entries = Entries(self._plan, session)
        self._letters, self._log = Letters(self._flow), flow_log(flow.site)

    def replay(self, letters: Sequence[Letter], begin: Begin, result: ReplayResult) -> None:
        """Replay letters, finish interrupted slices that contain them, and record both in the result."""
        context: Any = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", POOL)  # live batches come first
        try:
            self._replay_all(letters, begin, result)
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)

    def _replay_all(self, letters: Sequence[Letter], begin: Begin, result: ReplayResult) -> None:
        asked = {letter.offset for letter in letters}
        begun = [part for part in self._marks.unfinished() if asked & {*part.offsets}]
        under_way = {offset for part in begun for offset in part.offsets}
        new = self._slices([each for each in letters if each.offset not in under_way], begin, result)
        for part in (*begun, *new):
            try:
                self._check(part, result) if result.dry_run else self._replay(part, result)
            except Unfit as unfit:
                _refuse(result, part.offsets, unfit.problem)
            except Exception as error:
                result.error = failure_of(error).problem
                message = f"the replay of dead letters stopped: {result.error.message}"
                self._log.warning(message, request=part.request, code=result.error.code)
                break

    def _slices(self, letters: Sequence[Letter], begin: Begin, result: ReplayResult) -> Iterator[Slice]:
        """Group letters into slices by their entry."""
        groups: dict[str, list[Letter]] = {}
        for letter in letters:
            try:
                groups.setdefault(self._entries.entry(letter, begin).name, []).append(letter)
            except Unfit as unfit:
                _refuse(result, [letter.offset], unfit.problem)
        parts = ((name, part) for name, group in groups.items() for part in _parts(group, name == START))
        for number, (name, part) in enumerate(parts):
            yield Slice(result.request, number, name, tuple(sorted(letter.offset for letter in part)))

    def _check(self, part: Slice, result: ReplayResult) -> None:
        _, run = self._enter(part)
        for offset, problem in run.fitting.unfit.items():
            _refuse(result, [offset], problem)
        result.replayed += len(part.offsets) - len(run.fitting.unfit)

    def _replay(self, part: Slice, result: ReplayResult) -> None:
        self._permitted()
        fresh = part.request == result.request
        if fresh:
            self._marks.claim(part)
        run = None
        try:
            entry, run = self._enter(part)
            for offset, problem in run.fitting.unfit.items():
                _refuse(result, [offset], problem)
            self._marks.release(part, list(run.fitting.unfit))
            if run.fitting.letters:
                self._deliver(entry, run)
        except Exception:
            if fresh and not (run and run.touched):  # no sink has received anything
                self._marks.release(part, part.offsets)
            raise
        outcomes = self._outcomes(run)
        self._marks.finish(part, outcomes)
        again = sum(outcome == "failed_again" for outcome in outcomes.values())
        result.failed_again += again
        result.replayed += len(outcomes) - again

    def _enter(self, part: Slice) -> tuple[Entry, _Run]:
        entry = self._entries.named(part.target)
        letters = self._box.at(part.offsets)
        return entry, _Run(part, self._entries.table(entry, list(letters.values())))

    def _deliver(self, entry: Entry, run: _Run) -> None:
        """Run a slice through the steps, deliver it to the sinks, then store the events that failed."""
        plan = plan_frame(self._flow, self._entries.frame(run.fitting.table), Watch(), first=entry.first)
        with TemporaryDirectory(prefix="penstock-replay-") as directory:
            spool = Path(directory) / "spool"
            with spooling(self._spark, spool):
                output = table_of(plan.output)  # once, for all sinks
            notes = [*notes_in(spool)]
        for note in notes:
            if note.kind == "log":
                self._log.said(note.step, note.message or "")
        done = self._marks.acked(run.slice)
        for sink in self._flow.sinks:
            if sink.id not in done and entry.sink in (None, sink.id):
                self._to(sink, plan, output, run)
        faults = [note for note in notes if note.kind == "fault"]
        self._keep(Reasons(self._plan, self._spark).explained(faults), NOTES, run)

    def _to(self, sink: Part[Sink], plan: Plan, output: pa.Table, run: _Run) -> None:
        delivery = self._named(run.slice, sink.id)
        if output.num_rows:
            site = self._flow.site
            events = FrameEvents(plan.shaped(self._entries.frame(output), sink))
            site.policy.require(sink.component)
            writer = sink.component.open(site)
            writer.permitted = self._permitted

            def once() -> Delivered:
                self._permitted()
                run.touched = True
                return writer.write(events, delivery)

            try:
                delivered = Attempts(sink.effort, threading.Event().wait).run(once)
            finally:
                writer.close()
            self._keep([_fault(each, sink.id) for each in delivered.rejected], sink.id, run)
        self._marks.ack(run.slice, sink.id)

    def _keep(self, faults: Sequence[Note], owner: str, run: _Run) -> None:
        """Store events that failed again as new letters; `owner` is the step or sink that failed."""
        notes, told = [], []
        for note in faults:
            offset = note.event.get("offset")
            before = run.fitting.letters.get(offset, ()) if offset is not None else ()
            run.failed.add(offset)
            if before:
                first = before[0]
                known: int | None = first.source_offset
                told.append({"attempt": first.attempt + 1, "replay_of": first.offset})
            else:  # an event created by a step
                known = None
                told.append({"attempt": 1 + max(letter.attempt for letter in run.letters)})
            notes.append(replace(note, event={**note.event, "offset": known}))
        self._letters.write(notes, self._named(run.slice, owner), told)

    def _outcomes(self, run: _Run) -> dict[int, Outcome]:
        return {
            letter.offset: "failed_again" if number in run.failed else "delivered"
            for number, letters in run.fitting.letters.items()
            for letter in letters
        }

    def _named(self, part: Slice, sink: str) -> DeliveryId:
        return DeliveryId(self._flow.id, sink, f"letters-{part.request}", part.number)


def _parts(letters: Sequence[Letter], whole: bool) -> Iterator[list[Letter]]:
    """Split letters into slices: letters of one event share a slice only if the source is read again."""
    seen: dict[int, int] = {}
    parts: list[list[Letter]] = [[]]
    for letter in letters:
        event = identity(letter)
        if whole and event in seen:
            parts[seen[event]].append(letter)
            continue
        if len(parts[-1]) >= SLICE or seen.get(event) == len(parts) - 1:
            parts.append([])
        seen[event] = len(parts) - 1
        parts[-1].append(letter)
    return (part for part in parts if part)


def _fault(rejected: Rejected, sink: str) -> Note:
    return Note("fault", sink, rejected.code, rejected.message, rejected.row, rejected.event or {})


def _refuse(result: ReplayResult, offsets: Sequence[int], problem: Problem) -> None:
    result.refused += [RefusedLetter(offset=offset, **problem.model_dump()) for offset in offsets]
