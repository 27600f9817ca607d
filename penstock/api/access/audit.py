"""The audit trail, for admins."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from penstock.api.errors import failures
from penstock.api.views import View
from penstock.control.access.access import Access

_NEWEST = 2**63 - 1


class AuditEntry(View):
    """A change, or an attempted change."""

    id: int
    at: datetime
    user: str | None = Field(description="Null if the request had no valid session or token.")
    via: str | None = Field(description="How the user was known: local, password, oidc, token or cli.")
    address: str | None = Field(description="Where the request came from; null for the command line.")
    action: str = Field(description="Such as `pipeline.update`, `flow.pause` or `session.login`.")
    target: str = Field(description="Such as `pipeline/orders`.")
    status: int = Field(description="The HTTP status of the answer: below 400 it has succeeded.")
    before: dict[str, Any] | None = Field(description="What it was before; secrets are masked.")
    after: dict[str, Any] | None = Field(description="What it is since then; secrets are masked.")


class AuditPage(View):
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    next: int | None = Field(description="The `before` of the next page; null if this is the last one.")


def audit_routes(access: Access) -> APIRouter:
    """The route of the audit trail."""
    router = APIRouter(tags=["access"])

    @router.get("/audit", summary="Read the audit trail", operation_id="listAudit", responses=failures(403))
    def audit(
        user: Annotated[str | None, Query(max_length=200)] = None,
        action: Annotated[str | None, Query(max_length=200)] = None,
        target: Annotated[str | None, Query(max_length=200)] = None,
        before: Annotated[
            int | None, Query(ge=0, le=_NEWEST, description="Id of the last one known.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> AuditPage:
        found = access.audit.entries(user=user, action=action, target=target, before=before, limit=limit + 1)
        shown = found[:limit]
        return AuditPage(
            entries=[AuditEntry.model_validate(vars(entry)) for entry in shown],
            next=shown[-1].id if len(found) > limit else None,
        )

    return router
