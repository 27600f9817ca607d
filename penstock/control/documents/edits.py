"""The effects of an edit on flows that have started, and the check that the user accepts losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from penstock.control.fleet.progress import checkpoints_of, site_of
from penstock.control.registry import content
from penstock.control.registry.documents import Documents
from penstock.control.registry.records import Record
from penstock.control.streams.logs import Streams
from penstock.engine.plan.edit_effects import StepEffect, plan_edit, same_steps
from penstock.engine.plan.flow import Flow, resolve_flow
from penstock.errors import Conflict, Invalid, Problem
from penstock.settings import Settings
from penstock.specs.documents import StreamDocument, runs
from penstock.specs.positions import parse_position
from penstock.specs.validation import parse
from penstock.streams.home import StreamPlace
from penstock.streams.storage import Cursor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EARLIER = 10
"""Earlier revisions to search for the last valid one, since invalid revisions did not run."""

Changed = Mapping[tuple[str, str], Mapping[str, Any]]
"""New content of documents, by kind and id."""

NONE: Changed = {}

HINT = (
    "accept it with accept_reset=true (`--accept-reset`), with `from` to read events again; or create a "
    "pipeline with another name"
)


class FlowPlan(BaseModel):
    """The effects of an edit on one flow: the flow of the document, or of a document that refers to it."""

    kind: str
    id: str
    name: str
    steps: list[StepEffect]

    @property
    def resets(self) -> bool:
        """Whether the flow loses state or progress."""
        return any(step.effect == "resets" for step in self.steps)


@dataclass(frozen=True)
class Planner:
    """Plans edits: in a worker with Spark, or in the server without Spark if no worker is ready."""

    settings: Settings
    registry: Documents
    streams: Streams
    spark: SparkSession | None = None

    def plans(self, documents: Sequence[Mapping[str, Any]]) -> list[FlowPlan]:
        """The effects of replacing documents on each flow, except flows that can't be resolved."""
        changed = {content.identity(dict(document))[:2]: document for document in documents}
        flows: dict[str, Record] = {}
        for kind, document_id in changed:
            if (record := self.registry.find(kind, document_id)) is None:
                continue
            itself = [record] if runs(changed[kind, document_id]) else []
            for each in (*itself, *self.registry.dependents(kind, document_id)):
                if each.flow is not None:
                    flows[each.uid] = each
        found = [self._plan(record, changed) for record in flows.values()]
        return [plan for plan in found if plan is not None]

    def resolve(self, record: Record, document: Mapping[str, Any] | None = None) -> Flow | None:
        """The flow of a document at its site; None if the document is not valid."""
        return self._resolve(record, document or record.document)

    def begin_at(self, record: Record, document: Mapping[str, Any], position: str) -> None:
        """Set the start position of the next checkpoint of a flow that is not running."""
        flow = self._resolve(record, document)
        place = flow.source.component.reads(flow.site) if flow else None
        if flow is None or place is None:
            message = "only a flow that reads a stream can start at a position"
            raise Invalid(Problem(code="no_position", message=message, path="from"))
        log = self.streams.log_at(place.directory)
        log.move_cursor(Cursor(flow.site.flow, log.resolve(parse_position(position)), flow.site.epoch))

    def _plan(self, record: Record, changed: Changed) -> FlowPlan | None:
        document = changed.get((record.kind, record.id))
        old = self._resolve(record, record.document) if document is None else self._last_valid(record)
        new = self._resolve(record, document or record.document, changed)
        if old is None or new is None:
            return None
        known = checkpoints_of(self.settings, record, self.spark)
        # If only the document of the flow itself changes, and none of its steps, the types don't change.
        alike = document is not None and len(changed) == 1 and same_steps(old, new)
        steps = plan_edit(old, new, None if alike else self.spark, known).steps
        return FlowPlan(kind=record.kind, id=record.id, name=record.name, steps=steps)

    def _last_valid(self, record: Record) -> Flow | None:
        for revision in self.registry.revisions(record.kind, record.id)[:EARLIER]:
            if (flow := self._resolve(record, revision.document)) is not None:
                return flow
        return None

    def _resolve(self, record: Record, document: Mapping[str, Any], changed: Changed = NONE) -> Flow | None:
        """The flow of a document, resolved against changed documents; None if the document is not valid."""
        defaults = self.settings.defaults.model_dump()

        def lookup(kind: str, name: str) -> Mapping[str, Any] | None:
            if (kind, name) in changed:
                return changed[kind, name]
            found = self.registry.find(kind, name)
            return found.document if found else None

        def stream(name: str) -> StreamPlace:
            place = self.streams.place(name)
            if (declared := changed.get(("Stream", place.id))) is None:
                return place
            parsed = parse(declared, defaults)
            assert isinstance(parsed, StreamDocument)
            return replace(place, spec=parsed.spec)

        site = replace(site_of(self.settings, self.streams, record), stream=stream)
        try:
            flow = resolve_flow(document, lookup, site, defaults)
            flow.source.component.position_of(flow.site)  # raises Invalid if the stream doesn't exist
        except Invalid:
            return None
        return flow


def require_accepted(plans: Sequence[FlowPlan]) -> None:
    """Conflict, with a problem for each part that would be reset."""
    problems = [
        Problem(
            code="would_reset",
            message=f"{plan.kind.lower()} '{plan.name}': {step.part} '{step.id}' would be reset: {step.why}"
            + (f" (to rebuild the state: from {step.from_})" if step.from_ else ""),
            path=step.path,
            hint=HINT,
        )
        for plan in plans
        for step in plan.steps
        if step.effect == "resets"
    ]
    if problems:
        raise Conflict(*problems)
