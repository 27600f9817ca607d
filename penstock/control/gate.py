"""The gate that edits pass: what they would do to flows is told before, and a loss needs the user's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.control.edits import FlowPlan, Planner, require_accepted
from penstock.control.judge import Judge
from penstock.control.raw import of_kind, patched
from penstock.control.registry.changes import require_same
from penstock.control.registry.content import as_json, differences, split_status
from penstock.control.registry.records import DiffEntry, Record
from penstock.control.streams import Streams
from penstock.engine.analysis import Analysis
from penstock.errors import Invalid, Problem


@dataclass(frozen=True)
class Reset:
    """What the user says to an edit that would lose something."""

    accepted: bool = False
    begin: str | None = None
    """The position at which to go on; None: where the flow is."""


NO_RESET = Reset()


@dataclass(frozen=True)
class Planned:
    """What a new revision of a document would change, and what that does to flows."""

    record: Record
    changes: list[DiffEntry]
    analysis: Analysis
    flows: Sequence[FlowPlan] = ()


class Gate:
    """Plans edits and lets them pass."""

    def __init__(self, judge: Judge, streams: Streams) -> None:
        self._judge, self._registry = judge, judge.registry
        self._planner = Planner(judge.settings, judge.registry, streams)

    def plan(self, kind: str, name: str, raw: Any, *, merge: bool) -> Planned:
        """What a new revision of a document would change. With `merge` it is a patch."""
        record = self._registry.get(kind, name)
        raw = patched(record, raw) if merge else of_kind(kind, raw)
        (analysis,) = self._judge.all([raw])
        if not analysis.valid:
            return Planned(record, [], analysis)
        document = analysis.document or raw
        require_same(record, document)
        changes = list(differences(record.document, split_status(as_json(document))[0]))
        return Planned(record, changes, analysis, self._plans([document]))

    def require_accepted(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Conflict if saving these documents would lose something."""
        require_accepted(self._plans(documents))

    def require_reset(self, record: Record, document: Mapping[str, Any]) -> None:
        """Invalid if an edit leaves a flow where it is, so that it cannot be told to begin elsewhere."""
        own = [p for p in self._plans([document]) if (p.kind, p.id) == (record.kind, record.id)]
        if not any(plan.resets for plan in own):
            message = "'from' is for an edit that resets the flow, and this one does not"
            hint = "to deliver old events again, use replay"
            raise Invalid(Problem(code="no_reset", message=message, path="from", hint=hint))

    def begin_at(self, record: Record, document: Mapping[str, Any], position: str) -> None:
        """Let a flow that rests go on at a position, once it begins a new checkpoint."""
        self._planner.begin_at(record, document, position)

    def _plans(self, documents: Sequence[Mapping[str, Any]]) -> list[FlowPlan]:
        """What would become of flows; without a worker as far as it can be told without Spark."""
        if self._judge.worker(wait_s=0.0) is not None:
            return self._judge.plans(documents)
        return self._planner.plans(documents)
