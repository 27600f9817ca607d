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

_ACCEPT = "Accept that what the flow remembers, or its place in the source, is lost."
_ACCEPTED = (
    "It is saved, and has not been shown to run yet: `Location` is where to look. `running_revision` is "
    "`revision` once it does; if it does not start, the revision before it comes back, with an `error`."
)
_FROM = "With an accepted reset, where to begin in the stream; by default where the flow is now."


def _reset(
    accept_reset: Annotated[bool, Query(description=_ACCEPT)] = False,
    begin: Annotated[PositionText | None, Query(alias="from", description=_FROM)] = None,
) -> Reset:
    return Reset(accept_reset, begin)


ResetParameters = Annotated[Reset, Depends(_reset)]
"""What the user says to an edit that would lose something."""


def accepted(kind: Kind) -> Responses:
    """The declaration of the answer to an edit whose new revision has not shown yet that it runs."""
    return {202: {"model": kind.info, "description": _ACCEPTED}} if kind.runs else {}


def shown_edit(service: Service, kind: Kind, response: Response, saved: Saved) -> Any:
    """The answer to an edit: 202, with where to look, while it is open whether the new revision starts."""
    record, warnings = saved.record, saved.warnings
    response.headers["ETag"] = record.etag
    if saved.unproven and record.flow is not None:
        response.status_code = 202
        response.headers["Location"] = url = kind.url(record.name)
        message = (
            f"revision {record.revision} is saved, and has not shown yet that it runs: {record.flow.phase}"
        )
        hint = (
            f"GET {url}: it runs when running_revision is {record.revision}; if it does not start, the "
            "revision before it comes back, and error says why"
        )
        warnings = [*warnings, Problem(code="unproven", message=message, hint=hint)]
    return kind.shown(service, record, warnings=warnings)


class DependentPlan(View):
    """What an edit does to a flow that refers to the document."""

    kind: str
    name: str
    steps: list[StepEffect]
    resets: bool


class EditPlanView(View):
    """What an edit would do. Nothing was changed."""

    valid: bool
    errors: list[Problem]
    warnings: list[Problem]
    changes: Sequence[DiffEntry] = Field(description="Field by field.")
    steps: list[StepEffect] = Field(description="Each part of the flow; none if it does not run.")
    resets: bool = Field(description="Whether saving it needs `accept_reset`.")
    dependents: list[DependentPlan] = Field(description="Flows that refer to it.")


def plan_routes(service: Service, kind: Kind) -> APIRouter:
    """The route of one kind."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}", tags=[kind.place])

    @router.post(
        "/plan",
        summary=f"Tell what an edit of {kind.one} would do",
        description="Takes a whole document, as PUT does; or a patch, as PATCH does: that is what has no "
        f"`metadata` or no `spec`, or is sent as `{MERGE}`. Nothing is changed.",
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
    """A plan as it is shown."""
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
