"""Plans of edits, before they are saved: the same routes for every kind."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import Field

from penstock.api.bodies import JSON, YAML, OneBody, described
from penstock.api.errors import Responses, failures
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.views import View
from penstock.control.documents.edit_gate import Planned, Reset
from penstock.control.documents.edits import FlowPlan
from penstock.control.documents.service import Saved, Service
from penstock.control.registry.records import DiffEntry
from penstock.engine.plan.edit_effects import StepEffect
from penstock.errors import Problem
from penstock.specs.positions import PositionText

MERGE = "application/merge-patch+json"

_ACCEPT = "Accept that the flow loses state or its position in the source."
_ACCEPTED = (
    "Saved, but not confirmed to run yet: poll `Location`. `running_revision` equals `revision` once the "
    "new revision runs; if it fails to start, it is rolled back to the previous revision, with an `error`."
)
_FROM = "With an accepted reset, the start position in the stream. Default: the current position of the flow."


def _reset(
    accept_reset: Annotated[bool, Query(description=_ACCEPT)] = False,
    begin: Annotated[PositionText | None, Query(alias="from", description=_FROM)] = None,
) -> Reset:
    return Reset(accept_reset, begin)


ResetParameters = Annotated[Reset, Depends(_reset)]
"""The user's decision on an edit that would lose state or progress."""


def accepted(kind: Kind) -> Responses:
    """The declared response to an edit whose new revision has not yet proven to run."""
    return {202: {"model": kind.info, "description": _ACCEPTED}} if kind.runs else {}


def shown_edit(service: Service, kind: Kind, response: Response, saved: Saved) -> Any:
    """The response to an edit: 202 with `Location` while the new revision has not yet proven to run."""
    record, warnings = saved.record, saved.warnings
    response.headers["ETag"] = record.etag
    if saved.unproven and record.flow is not None:
        response.status_code = 202
        response.headers["Location"] = url = kind.url(record.name)
        message = f"revision {record.revision} is saved, but not confirmed to run yet: {record.flow.phase}"
        hint = (
            f"GET {url}: the revision runs when running_revision is {record.revision}; if it fails to "
            "start, it is rolled back to the previous revision, and error says why"
        )
        warnings = [*warnings, Problem(code="unproven", message=message, hint=hint)]
    return kind.shown(service, record, warnings=warnings)


class DependentPlan(View):
    """The effects of an edit on a flow that refers to the document."""

    kind: str
    name: str
    steps: list[StepEffect]
    resets: bool


class EditPlanView(View):
    """The effects of an edit. Nothing was changed."""

    valid: bool
    errors: list[Problem]
    warnings: list[Problem]
    changes: Sequence[DiffEntry] = Field(description="Changed fields.")
    steps: list[StepEffect] = Field(
        description="Effect on each part of the flow; empty if the document doesn't run."
    )
    resets: bool = Field(description="Whether saving needs `accept_reset`.")
    dependents: list[DependentPlan] = Field(description="Effects on flows that refer to the document.")


def plan_routes(service: Service, kind: Kind) -> APIRouter:
    """The route of one kind for plans of edits."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}", tags=[kind.place])

    @router.post(
        "/plan",
        summary=f"Preview the effects of an edit of {kind.one}",
        description="Accepts a whole document, as PUT does, or a patch, as PATCH does: a body without "
        "`metadata` or `spec`, or of type `{MERGE}`, is a patch. Nothing is changed.",
        operation_id=f"plan{kind.name}",
        responses=failures(400, 403, 404, 413, 422),
        openapi_extra=described({"type": "object"}, JSON, YAML, MERGE),
    )
    def plan(
        name: Name, raw: OneBody, content_type: Annotated[str, Header(include_in_schema=False)] = ""
    ) -> EditPlanView:
        merge = content_type.startswith(MERGE) or not _is_whole(raw)
        return plan_view(service.gate.plan(kind.name, name, raw, merge=merge))

    return router


def plan_view(planned: Planned) -> EditPlanView:
    """The view of a plan."""
    own = [plan for plan in planned.flows if _is_of(plan, planned)]
    others = [plan for plan in planned.flows if not _is_of(plan, planned)]
    return EditPlanView(
        valid=planned.analysis.valid,
        errors=planned.analysis.errors,
        warnings=planned.analysis.warnings,
        changes=planned.changes,
        steps=[step for plan in own for step in plan.steps],
        resets=any(plan.resets for plan in planned.flows),
        dependents=[
            DependentPlan(kind=each.kind, name=each.name, steps=each.steps, resets=each.resets)
            for each in others
        ],
    )


def _is_whole(raw: Any) -> bool:
    return isinstance(raw, dict) and {"metadata", "spec"} <= raw.keys()


def _is_of(plan: FlowPlan, planned: Planned) -> bool:
    return (plan.kind, plan.id) == (planned.record.kind, planned.record.id)
