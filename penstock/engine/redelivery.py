"""Replaying dead letters: through the steps of the present revision, to the sinks, once.

Letters are replayed in slices. A slice has a name for good, under which each sink gets it: one that is
repeated, because it was cut off, is the same batch to a sink that can tell (invariant 4). What fails again is
a letter again before the old one counts as replayed (invariant 7).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, Field

from penstock.connectors.base import Delivered, DeliveryId, Rejected, Sink
from penstock.engine.attempts import Attempts
from penstock.engine.entries import START, Begin, Entries, Entry, Fitting, Unfit, identity
from penstock.engine.failures import failure_of
from penstock.engine.flow import Flow, Part
from penstock.engine.flow_log import flow_log
from penstock.engine.ledger import NOTES
from penstock.engine.letterbox import Letter, Letterbox
from penstock.engine.letters import Letters
from penstock.engine.limits import POOL
from penstock.engine.marks import Outcome, Slice
from penstock.engine.notes import Note, Watcher
from penstock.engine.plan import Plan, plan_flow, plan_frame
from penstock.engine.reasons import explained
from penstock.errors import Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLICE = 1000
"""Letters that are replayed together."""


class RefusedLetter(Problem):
    """A letter that cannot be replayed, and why."""

    offset: int = Field(description="Of the letter.")


class ReplayResult(BaseModel):
    """What has become of letters that were to be replayed."""

    request: str = Field(description="Names this replay; what it delivers is delivered under it.")
    dry_run: bool = Field(default=False, description="Nothing was done: the numbers tell what could be.")
    replayed: int = Field(default=0, description="Letters that went through to the sinks.")
    failed_again: int = Field(
        default=0, description="Letters of which something failed: it is a letter anew."
    )
    refused: list[RefusedLetter] = Field(default_factory=list, description="Letters that stay as they are.")
    error: Problem | None = Field(
        default=None,
        description="What has ended it early. Letters that were under way are `replaying`: the same request "
        "lets them go on.",
    )
    next: int | None = Field(
        default=None, description="There may be more letters: go on with this as `position`."
    )


@dataclass
class _Run:
    """One slice on its way."""

    slice: Slice
    fitting: Fitting
    failed: set[int | None] = field(default_factory=set)
    """By `offset` in `$event`: what failed again."""
    touched: bool = False
    """Whether a sink may have got something."""

    @property
    def letters(self) -> Iterator[Letter]:
        """Those that fit."""
        return (letter for those in self.fitting.letters.values() for letter in those)


class Redelivery:
    """Replays letters of a flow. `permitted` raises if this process must not write any more."""

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
        """Replay letters, go on with slices of theirs that were cut off, and say so in the result."""
        context: Any = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", POOL)  # live batches come first
        try:
            self._replay_all(letters, begin, result)
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)

    def _replay_all(self, letters: Sequence[Letter], begin: Begin, result: ReplayResult) -> None:
        asked = {letter.offset for letter in letters}
        begun = [slice for slice in self._marks.unfinished() if asked & {*slice.offsets}]
        under_way = {offset for slice in begun for offset in slice.offsets}
        new = self._slices([each for each in letters if each.offset not in under_way], begin, result)
        for slice in (*begun, *new):
            try:
                self._check(slice, result) if result.dry_run else self._replay(slice, result)
            except Unfit as unfit:
                _refuse(result, slice.offsets, unfit.problem)
            except Exception as error:
                result.error = failure_of(error).problem
                message = f"the replay of dead letters ended: {result.error.message}"
                self._log.warning(message, request=slice.request, code=result.error.code)
                break

    def _slices(self, letters: Sequence[Letter], begin: Begin, result: ReplayResult) -> Iterator[Slice]:
        """Letters by where they enter."""
        groups: dict[str, list[Letter]] = {}
        for letter in letters:
            try:
                groups.setdefault(self._entries.entry(letter, begin).name, []).append(letter)
            except Unfit as unfit:
                _refuse(result, [letter.offset], unfit.problem)
        parts = ((name, part) for name, group in groups.items() for part in _parts(group, name == START))
        for number, (name, part) in enumerate(parts):
            yield Slice(result.request, number, name, tuple(sorted(letter.offset for letter in part)))

    def _check(self, slice: Slice, result: ReplayResult) -> None:
        _, run = self._enter(slice)
        for offset, problem in run.fitting.unfit.items():
            _refuse(result, [offset], problem)
        result.replayed += len(slice.offsets) - len(run.fitting.unfit)

    def _replay(self, slice: Slice, result: ReplayResult) -> None:
        self._permitted()
        fresh = slice.request == result.request
        if fresh:
            self._marks.claim(slice)
        run = None
        try:
            entry, run = self._enter(slice)
            for offset, problem in run.fitting.unfit.items():
                _refuse(result, [offset], problem)
            self._marks.release(slice, list(run.fitting.unfit))
            if run.fitting.letters:
                self._deliver(entry, run)
        except Exception:
            if fresh and not (run and run.touched):  # no sink can have got anything
                self._marks.release(slice, slice.offsets)
            raise
        outcomes = self._outcomes(run)
        self._marks.finish(slice, outcomes)
        again = sum(outcome == "failed_again" for outcome in outcomes.values())
        result.failed_again += again
        result.replayed += len(outcomes) - again

    def _enter(self, slice: Slice) -> tuple[Entry, _Run]:
        entry = self._entries.named(slice.target)
        letters = self._box.at(slice.offsets)
        return entry, _Run(slice, self._entries.table(entry, list(letters.values())))

    def _deliver(self, entry: Entry, run: _Run) -> None:
        """Let a slice go through the steps and to the sinks, then keep what failed."""
        df, watcher = self._entries.frame(run.fitting.table), Watcher()
        plan = plan_frame(self._flow, df, watcher, first=entry.first)
        output = plan.output.toArrow()  # once, for all sinks
        notes = watcher.observed().notes
        for note in notes:
            if note.kind == "log":
                self._log.said(note.step, note.message or "")
        done = self._marks.acked(run.slice)
        for sink in self._flow.sinks:
            if sink.id not in done and entry.sink in (None, sink.id):
                self._to(sink, plan, output, run)
        faults = [note for note in notes if note.kind == "fault"]
        self._keep(explained(faults, self._plan, self._spark), NOTES, run)

    def _to(self, sink: Part[Sink], plan: Plan, output: pa.Table, run: _Run) -> None:
        delivery = self._named(run.slice, sink.id)
        if output.num_rows:
            df = plan.chosen(self._entries.frame(output), sink)
            writer = sink.component.open(self._flow.site)

            def once() -> Delivered:
                self._permitted()
                run.touched = True
                return writer.write(df, delivery)

            try:
                delivered = Attempts(sink.effort, threading.Event().wait).run(once)
            finally:
                writer.close()
            self._keep([_fault(each, sink.id) for each in delivered.rejected], sink.id, run)
        self._marks.ack(run.slice, sink.id)

    def _keep(self, faults: Sequence[Note], owner: str, run: _Run) -> None:
        """What failed again is a letter once more; `owner` names who could not take it."""
        notes, told = [], []
        for note in faults:
            offset = note.event.get("offset")
            before = run.fitting.letters.get(offset, ()) if offset is not None else ()
            run.failed.add(offset)
            if before:
                first = before[0]
                known: int | None = first.source_offset
                told.append({"attempt": first.attempt + 1, "replay_of": first.offset})
            else:  # a step has made another event of it
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

    def _named(self, slice: Slice, sink: str) -> DeliveryId:
        return DeliveryId(self._flow.id, sink, f"letters-{slice.request}", slice.number)


def _parts(letters: Sequence[Letter], whole: bool) -> Iterator[list[Letter]]:
    """Letters in slices: of one event all together if it comes whole from the source, else each apart."""
    seen: dict[int, int] = {}
    parts: list[list[Letter]] = [[]]
    for letter in letters:
        id = identity(letter)
        if whole and id in seen:
            parts[seen[id]].append(letter)
            continue
        if len(parts[-1]) >= SLICE or seen.get(id) == len(parts) - 1:
            parts.append([])
        seen[id] = len(parts) - 1
        parts[-1].append(letter)
    return (part for part in parts if part)


def _fault(rejected: Rejected, sink: str) -> Note:
    return Note("fault", sink, rejected.code, rejected.message, rejected.row, rejected.event or {})


def _refuse(result: ReplayResult, offsets: Sequence[int], problem: Problem) -> None:
    result.refused += [RefusedLetter(offset=offset, **problem.model_dump()) for offset in offsets]
