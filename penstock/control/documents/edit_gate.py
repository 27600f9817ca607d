"""The check of edits: effects on flows are computed first, and the user has to accept any loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.control.documents.edits import FlowPlan, Planner, require_accepted
from penstock.control.documents.judge import Judge
from penstock.control.documents.raw import of_kind, patched
from penstock.control.documents.sealing import Sealing
from penstock.control.registry.changes import require_same
from penstock.control.registry.content import as_json, differences, split_status
from penstock.control.registry.records import DiffEntry, Record
from penstock.control.streams.logs import Streams
from penstock.engine.plan.analysis import Analysis
from penstock.errors import Invalid, Problem
from penstock.specs.weakened import weakened


@dataclass(frozen=True)
class Reset:
    """The user's decision on an edit that would lose state or progress."""

    accepted: bool = False
    begin: str | None = None
    """The position at which the flow resumes; None: its current position."""


NO_RESET = Reset()


@dataclass(frozen=True)
class Planned:
    """The changes of a new revision of a document, and their effects on flows."""

    record: Record
    changes: list[DiffEntry]
    analysis: Analysis
    flows: Sequence[FlowPlan] = ()


class Gate:
    """Plans edits, and accepts or rejects them."""

    def __init__(self, judge: Judge, streams: Streams, sealing: Sealing) -> None:
        self._judge, self._registry, self._sealing = judge, judge.registry, sealing
        self._planner = Planner(judge.settings, judge.registry, streams)

    def plan(self, kind: str, name: str, raw: Any, *, merge: bool) -> Planned:
        """The changes and effects of a new revision of a document. With `merge`, `raw` is a patch."""
        record = self._registry.get(kind, name)
        raw = self._sealing.sealed(patched(record, raw) if merge else of_kind(kind, raw))
        (analysis,) = self._judge.all([raw])
        if not analysis.valid:
            return Planned(record, [], analysis)
        document = analysis.document or raw
        require_same(record, document)
        weaker = weakened(record.document, document, self._judge.settings.defaults.model_dump())
        analysis = analysis.model_copy(update={"warnings": [*analysis.warnings, *weaker]})
        changes = list(differences(record.document, split_status(as_json(document))[0]))
        return Planned(record, changes, analysis, self._plans([document]))

    def require_accepted(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Conflict if saving these documents would lose state or progress."""
        require_accepted(self._plans(documents))

    def pass_edit(self, record: Record, document: Mapping[str, Any], reset: Reset) -> None:
        """Conflict if an edit would lose state or progress and the user has not accepted the loss.

        Invalid if a start position is given, but the edit does not reset the flow.
        """
        if reset.accepted and reset.begin is None:
            return
        plans = self._plans([document])
        if not reset.accepted:
            require_accepted(plans)
        own = [plan for plan in plans if (plan.kind, plan.id) == (record.kind, record.id)]
        if reset.begin is not None and not any(plan.resets for plan in own):
            message = "'from' is only for edits that reset the flow, and this edit doesn't"
            hint = "to deliver old events again, use replay"
            raise Invalid(Problem(code="no_reset", message=message, path="from", hint=hint))

    def begin_at(self, record: Record, document: Mapping[str, Any], position: str) -> None:
        """Set the start position of the next checkpoint of a flow that is not running."""
        self._planner.begin_at(record, document, position)

    def _plans(self, documents: Sequence[Mapping[str, Any]]) -> list[FlowPlan]:
        """The effects of documents on flows; without a worker, only those computable without Spark."""
        if self._judge.worker(wait_s=0.0) is not None:
            return self._judge.plans(documents)
        return self._planner.plans(documents)
